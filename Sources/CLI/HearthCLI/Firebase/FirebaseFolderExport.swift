import Basics
import DatabaseService
import Digests
import DocumentModel
import DocumentStore
import FirebaseExport
import FixtureTree
import Glibc
import WireFormat

/// The export of a project to a folder that `firebase emulators:start --import` and `hearth import` read.
///
/// The folder is written beside its place, and gets its name when it is complete. An unfinished folder of a killed process
/// is removed. If that process had moved the earlier export away, the export gets its name back.
struct FirebaseFolderExport {
  let folder: String
  let database: DatabaseID
  private let unfinishedOutput: UnfinishedOutput
  private var unfinished: String { unfinishedOutput.path }

  private static let exportName = "firestore_export"
  /// The versions that the metadata name: those of the programs whose output has this form.
  private static let documentsVersion = "1.19.8"
  private static let toolsVersion = "13.0.0"

  /// Checks that the folder can be created. With `replaces`, it may be an earlier export.
  /// - Throws: ``CommandFailure`` if the folder exists and is not empty.
  init(_ folder: String, database: DatabaseID, replaces: Bool) throws {
    self.folder = LocalPath.withoutLastSlashes(folder)
    self.database = database
    unfinishedOutput = UnfinishedOutput(of: self.folder)
    for old in UnfinishedOutput.entries(of: self.folder, ending: "old") where old.isFolder {
      if access(self.folder, F_OK) == 0 { FolderEntries.removeAll(old.path) } else { rename(old.path, self.folder) }
    }
    var status = stat()
    guard lstat(self.folder, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      throw CommandFailure.failed("\(folder) exists and is not a folder")
    }
    let entries = try FolderEntries.list(self.folder)
    let isExport = access("\(self.folder)/\(ExportFolder.metadataFile)", F_OK) == 0
    guard entries.isEmpty || isExport && replaces else {
      throw CommandFailure.failed(
        isExport
          ? "\(folder) contains an export; add --force to replace it, or name another folder"
          : "\(folder) is not empty; name another folder")
    }
    // The folder is replaced as a whole, so it must not contain anything else.
    let parts = [ExportFolder.metadataFile, "firestore_export", "auth_export", "storage_export", "database_export"]
    for entry in entries {
      let name = FileLocation.lastPart(entry.path)
      guard parts.contains(name) else {
        throw CommandFailure.failed("\(folder) also contains \(name), which --force would remove; name another folder")
      }
    }
  }

  /// Writes the parts, and returns what was written.
  /// - Throws: ``CommandFailure`` or an error of the source or the file system. Nothing is left then.
  func run(
    _ parts: ExportParts, documents: ((inout DocumentsWriter) throws -> Void)?, accounts: AccountsClient?,
    files: FilesClient?
  ) throws -> ExportSummary {
    // The server is asked before documents are copied.
    if let accounts { try Self.require("accounts", parts) { try accounts.forEachPage { _ in false } } }
    if let files { try Self.require("files", parts) { _ = try files.buckets() } }
    defer { FolderEntries.removeAll(unfinished) }
    try ExportFiles.makeFolder(unfinished)
    unfinishedOutput.lock()
    var summary = ExportSummary()
    var metadata = JSONWriter(.pretty)
    metadata.beginObject()
    metadata.add("version", Self.toolsVersion)
    if let documents {
      var writer = try DocumentsWriter(unfinished, name: Self.exportName, database: database, started: Self.now)
      try documents(&writer)
      try writer.finish(at: Self.now)
      summary.documents = ImportOutcome(documents: writer.documents)
      Self.part("firestore", version: Self.documentsVersion, path: Self.exportName, to: &metadata) { json in
        json.add("metadata_file", "\(Self.exportName)/\(Self.exportName).overall_export_metadata")
      }
    }
    if let accounts {
      summary.accounts = try write(accounts)
      Self.part("auth", version: Self.toolsVersion, path: "auth_export", to: &metadata)
    }
    if let files {
      summary.files = try write(files)
      Self.part("storage", version: Self.toolsVersion, path: "storage_export", to: &metadata)
    }
    metadata.endObject()
    try ExportFiles.write(metadata.bytes, to: "\(unfinished)/\(ExportFolder.metadataFile)")
    try finish()
    return summary
  }

  /// Sends a first request about a part.
  /// - Throws: the error of `request`, with advice if the server does not know the part.
  private static func require(_ part: String, _ parts: ExportParts, _ request: () throws -> Void) throws {
    do { try request() } catch var failure as CommandFailure
      where [404, 405, 501].contains(failure.httpStatus) && parts.contains(.documents)
    {
      failure.message +=
        "\nthis server does not serve \(part), as Firebase's Firestore emulator, which has documents only; add --only "
        + "firestore"
      throw failure
    }
  }

  private static var now: Timestamp { Timestamp(uncheckedMicroseconds: Clock.system.now()) }

  private static func part(
    _ name: StaticString, version: String, path: String, to json: inout JSONWriter,
    _ more: (inout JSONWriter) -> Void = { _ in }
  ) {
    json.key(name)
    json.beginObject()
    json.add("version", version)
    json.add("path", path)
    more(&json)
    json.endObject()
  }

  /// Gives the folder its name, and removes an earlier export.
  private func finish() throws {
    let old = "\(folder).\(getpid()).old"
    let hadOld = rename(folder, old) == 0
    guard rename(unfinished, folder) == 0 else {
      let reason = String(cString: strerror(errno))
      if hadOld { rename(old, folder) }
      throw CommandFailure.failed("\(folder) cannot be written: \(reason)")
    }
    if hadOld { FolderEntries.removeAll(old) }
  }

  // MARK: Accounts

  private func write(_ client: AccountsClient) throws -> ExportedAccounts.Outcome {
    var outcome = ExportedAccounts.Outcome()
    let folder = "\(unfinished)/auth_export"
    try ExportFiles.makeFolder(folder)
    let output = try OutputFile("\(folder)/accounts.json", inNewFolder: true)
    try output.write(Array("{\"kind\":\"identitytoolkit#DownloadAccountResponse\",\"users\":[".utf8))
    try client.forEachPage { page in
      for user in page {
        var json = JSONWriter(.compact)
        json.append(user)
        try output.write(Array(outcome.imported == 0 ? "\n".utf8 : ",\n".utf8) + json.bytes)
        outcome.imported += 1
      }
      return true
    }
    try output.write(Array("\n]}\n".utf8))
    try output.finish()
    try ExportFiles.write(
      Array("{\"signIn\":{\"allowDuplicateEmails\":false}}\n".utf8), to: "\(folder)/config.json")
    return outcome
  }

  // MARK: Files

  private func write(_ client: FilesClient) throws -> ExportedFiles.Outcome {
    var outcome = ExportedFiles.Outcome()
    let folder = "\(unfinished)/storage_export"
    for part in ["metadata", "blobs"] { try ExportFiles.makeFolder("\(folder)/\(part)") }
    let buckets = try client.buckets()
    var list = JSONWriter(.pretty)
    list.beginObject()
    list.add("buckets", buckets) { $1.add("id", $0) }
    list.endObject()
    try ExportFiles.write(list.bytes, to: "\(folder)/buckets.json")
    for bucket in buckets {
      try client.forEachPage(in: bucket, prefix: "") { page in
        for object in page.objects {
          let place = try Self.place(of: object)
          let output = try OutputFile("\(folder)/blobs/\(place)", inNewFolder: true)
          try client.download(object, output.write)
          try output.finish()
          let metadata = try client.metadata(object.name, in: object.bucket)
          try ExportFiles.write(Self.json(metadata, object), to: "\(folder)/metadata/\(place).json")
          outcome.files += 1
          outcome.bytes += object.size
        }
      }
    }
    return outcome
  }

  /// The longest file name of an export without its endings, in bytes. File systems allow 255 bytes.
  private static let placeBytesMax = 200

  /// Returns the name of an object's files: one path segment. Bucket and name are in the metadata, so any unique name
  /// is possible. A name that is too long becomes its digest. Source: `persistence.ts` of firebase-tools, which chooses
  /// random names for all files, and reads any name.
  private static func place(of object: FilesClient.Object) throws -> String {
    let path = Array("\(object.bucket)/\(object.name)".utf8)
    let place = ServerClient.encode(path)
    if place.utf8.count <= placeBytesMax { return place }
    guard let digest = path.withUnsafeBytes({ MessageDigest.compute(.sha256, $0) }) else {
      throw CommandFailure.failed("libcrypto cannot compute SHA-256; check the OpenSSL configuration")
    }
    return Hexadecimal.text(digest)
  }

  /// Returns the metadata of an object in the form of the export.
  private static func json(_ metadata: JSONTree, _ object: FilesClient.Object) -> [UInt8] {
    var json = JSONWriter(.pretty)
    json.beginObject()
    json.add("name", object.name)
    json.add("bucket", object.bucket)
    json.add("contentType", object.contentType)
    json.add("timeCreated", metadata["timeCreated"]?.text)
    json.add("updated", metadata["updated"]?.text)
    json.add("contentEncoding", metadata["contentEncoding"]?.text ?? "identity")
    json.add("contentDisposition", metadata["contentDisposition"]?.text)
    json.add("contentLanguage", metadata["contentLanguage"]?.text)
    json.add("cacheControl", metadata["cacheControl"]?.text)
    json.add("md5Hash", metadata["md5Hash"]?.text)
    json.add("etag", metadata["etag"]?.text)
    json.add("storageClass", "STANDARD")
    if let number = metadata["generation"]?.int64 { json.add("generation", Int(number)) }
    if let number = metadata["metageneration"]?.int64 { json.add("metageneration", Int(number)) }
    json.add("size", object.size)
    // The emulator writes the checksum as a number in text form.
    if let sum = Base64.decode(object.crc32c), sum.count == 4 {
      json.add("crc32c", String(sum.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }))
    }
    appendCustom(metadata, to: &json)
    json.endObject()
    return json.bytes
  }

  private static func appendCustom(_ metadata: JSONTree, to json: inout JSONWriter) {
    guard case .object(let members)? = metadata["metadata"]?.kind else { return }
    let tokens = members.first { $0.name == "firebaseStorageDownloadTokens" }?.value.text ?? ""
    json.key("downloadTokens")
    json.beginArray()
    for token in tokens.split(separator: ",") { json.string(String(token)) }
    json.endArray()
    json.key("customMetadata")
    json.beginObject()
    for member in members where member.name != "firebaseStorageDownloadTokens" {
      guard let text = member.value.text else { continue }
      var name = member.name
      name.withUTF8 { json.key(UnsafeRawBufferPointer($0)) }
      json.string(text)
    }
    json.endObject()
  }
}
