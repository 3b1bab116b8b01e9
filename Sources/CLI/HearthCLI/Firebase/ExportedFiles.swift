import Digests
import DocumentModel
import Files
import FirebaseExport
import FixtureTree
import Glibc
import WireFormat

/// The files of a Firebase export: the folder `storage_export`.
///
/// `buckets.json` lists the buckets. Each file has its metadata in `metadata/PATH.json` and its content in
/// `blobs/PATH`. PATH depends on the version of firebase-tools; bucket and name are in the metadata. Source: `storage/files.ts` and
/// `storage/metadata.ts` of firebase-tools, and exports in public repositories.
struct ExportedFiles {
  /// The outcome of an import.
  struct Outcome {
    var files = 0
    var bytes = 0
    var failed = 0
  }

  /// A file of the export.
  private struct Item {
    var metadata: JSONTree
    var blob: String
    var bucket: String
    var name: String
    /// Whether a bucket of Hearth can have a file of that name.
    var isPossible: Bool
  }

  /// Facts about the files that a user should know.
  private(set) var notes: [String] = []

  private let folder: String
  private let buckets: [String]
  private static let suffix = ".json"
  /// The maximum size of the metadata of one file, in bytes.
  private static let metadataBytesMax = 1 << 20
  /// The number of damaged files that an error lists.
  private static let listedMax = 10

  /// Reads and checks the whole folder: the lists, the metadata, and the content of every file with its size and its MD5
  /// hash, or its CRC-32C if the metadata have no hash. `progress` receives the files and bytes so far. Cost: one pass
  /// over all content.
  /// - Throws: ``CommandFailure`` or `FixtureTreeError` that names the files that are damaged or missing.
  init(_ folder: String, progress: (Outcome) -> Void) throws {
    self.folder = folder
    buckets = try Self.buckets("\(folder)/buckets.json")
    try check(progress)
  }

  private static func buckets(_ path: String) throws -> [String] {
    let list = try JSONTree.read(ByteSource(file: path), bytesMax: ExportLimits.metadataBytesMax)
    guard case .array(let buckets)? = list.members.flatMap({ _ in list["buckets"] })?.kind else {
      throw CommandFailure.data("\(path) has no array 'buckets'; export the files again")
    }
    return try buckets.map { bucket in
      guard let id = bucket.members.flatMap({ _ in bucket["id"] })?.text else {
        throw CommandFailure.data("\(path) contains a bucket without 'id'; export the files again")
      }
      return id
    }
  }

  // MARK: Checks

  private mutating func check(_ progress: (Outcome) -> Void) throws {
    var damage: [String] = []
    var count = Outcome()
    try Self.forEachFile(below: "\(folder)/metadata") { path in
      do {
        guard let item = try item(path) else { return }
        count.bytes += try Self.checkContent(item)
        count.files += 1
        progress(count)
      } catch { damage.append(CommandFailure(error).message) }
    }
    var alone = (count: 0, first: "")
    let blobs = "\(folder)/blobs"
    try Self.forEachFile(below: blobs) { path in
      let metadata = "\(folder)/metadata\(path.dropFirst(blobs.count))\(Self.suffix)"
      guard access(metadata, F_OK) != 0 else { return }
      if alone.count == 0 { alone.first = path }
      alone.count += 1
    }
    if alone.count > 0, !ExportFolder.isFolder("\(folder)/metadata") {
      damage.append("the folder \(folder)/metadata is missing")
    } else if alone.count > 0 {
      notes.append(
        "left out \(alone.count) \(alone.count == 1 ? "file" : "files") without metadata, such as \(alone.first)")
    }
    guard damage.isEmpty else { throw Self.failure(folder, damage) }
  }

  private static func failure(_ folder: String, _ damage: [String]) -> CommandFailure {
    var lines = ["\(folder) is damaged or incomplete, so nothing was imported:"]
    lines += damage.prefix(listedMax).map { "  \($0)" }
    if damage.count > listedMax { lines.append("  and \(damage.count - listedMax) more") }
    lines.append("export or copy it again, or import the other parts: hearth import --only firestore,auth …")
    return .data(lines.joined(separator: "\n"))
  }

  /// Reads the content of a file, compares it with the metadata, and returns its size.
  private static func checkContent(_ item: Item) throws -> Int {
    let source = try LocalSource(item.blob, follows: false)
    if let size = number(item.metadata["size"]), size != source.size {
      throw CommandFailure.data("\(item.blob) has \(source.size) bytes, but its metadata name \(size)")
    }
    var digest = MessageDigest(.md5)
    while case let piece = source.next(atMost: .max), !piece.isEmpty { piece.withUnsafeBytes { digest.update($0) } }
    if let failure = source.failure { throw failure }
    if let hash = item.metadata["md5Hash"]?.text, !hash.isEmpty {
      guard let found = digest.finish(), Base64.decode(hash) == found else {
        throw CommandFailure.data("\(item.blob) does not have the MD5 hash that its metadata name")
      }
    } else if let sum = sum(item.metadata["crc32c"]), sum != Base64.decode(source.crc32c) {
      throw CommandFailure.data("\(item.blob) does not have the CRC-32C that its metadata name")
    }
    return source.size
  }

  private static func number(_ value: JSONTree?) -> Int? {
    value.flatMap { $0.int64 ?? $0.text.flatMap { Int64($0) } }.map { Int($0) }
  }

  /// Returns a CRC-32C as four bytes. The emulator writes a number in text form, Cloud Storage writes base64.
  private static func sum(_ value: JSONTree?) -> [UInt8]? {
    guard let value, value.text != "" else { return nil }
    if let number = number(value) {
      return withUnsafeBytes(of: UInt32(truncatingIfNeeded: number).bigEndian) { Array($0) }
    }
    return value.text.flatMap { Base64.decode($0) }
  }

  // MARK: Items

  /// Returns the file of a metadata file, or `nil` if the path is not that of a metadata file.
  private func item(_ path: String) throws -> Item? {
    guard path.hasSuffix(Self.suffix) else { return nil }
    let root = "\(folder)/metadata"
    let metadata = try JSONTree.read(ByteSource(file: path), bytesMax: Self.metadataBytesMax)
    guard metadata.members != nil, let bucket = metadata["bucket"]?.text, let name = metadata["name"]?.text else {
      throw CommandFailure.data("\(path) names no bucket and file")
    }
    let isPossible = (try? ObjectName(checking: bucket, name)) != nil
    return Item(
      metadata: metadata, blob: "\(folder)/blobs\(path.dropFirst(root.count).dropLast(Self.suffix.count))",
      bucket: bucket, name: name, isPossible: isPossible)
  }

  private static func forEachFile(below folder: String, _ body: (String) throws -> Void) throws {
    guard ExportFolder.isFolder(folder) else { return }
    for entry in try FolderEntries.list(folder) {
      if entry.isFolder { try forEachFile(below: entry.path, body) } else { try body(entry.path) }
    }
  }

  // MARK: Import

  /// Uploads all files and creates missing buckets. Files with names that no bucket can have are reported.
  /// - Throws: ``CommandFailure``, `FixtureTreeError` or `HTTPClientError` if a file cannot be read or uploaded.
  func send(to client: FilesClient, progress: (Outcome, Int) -> Void) throws -> Outcome {
    var outcome = Outcome()
    var made = Set<String>()
    func prepare(_ bucket: String) throws {
      if made.insert(bucket).inserted { try client.makeBucket(bucket) }
    }
    for id in buckets where ObjectName.isBucket(id) { try prepare(id) }
    try Self.forEachFile(below: "\(folder)/metadata") { path in
      guard let item = try item(path) else { return }
      if item.isPossible {
        let source = try LocalSource(item.blob, follows: false)
        try prepare(item.bucket)
        try client.upload(
          source, as: item.name, in: item.bucket,
          type: item.metadata["contentType"]?.text ?? "application/octet-stream"
        ) { progress(outcome, $0) }
        try client.setMetadata(Self.fields(item.metadata), of: item.name, in: item.bucket)
        outcome.files += 1
        outcome.bytes += source.size
      } else {
        outcome.failed += 1
        let name = TerminalText.line("gs://\(item.bucket)/\(item.name)")
        Terminal.error.write("hearth: skipped a file: \(name) is not a possible name of a file\n")
      }
      progress(outcome, 0)
    }
    return outcome
  }

  /// Returns the metadata to set, as members of an object of Cloud Storage's API.
  private static func fields(_ metadata: JSONTree) -> MapValue {
    var fields = MapValue()
    fields["cacheControl"] = metadata["cacheControl"]?.text.map { .string($0) }
    fields["contentDisposition"] = metadata["contentDisposition"]?.text.map { .string($0) }
    fields["contentLanguage"] = metadata["contentLanguage"]?.text.map { .string($0) }
    // The emulator writes `identity` for content without encoding.
    if let encoding = metadata["contentEncoding"]?.text, encoding != "identity" {
      fields["contentEncoding"] = .string(encoding)
    }
    var custom = MapValue()
    for member in metadata["customMetadata"]?.members ?? [] {
      custom[member.name] = member.value.text.map { .string($0) }
    }
    // An array or, in older exports, a text with commas.
    let tokens = metadata["downloadTokens"]?.elements.compactMap(\.text).joined(separator: ",") ?? ""
    let text = metadata["downloadTokens"]?.text ?? tokens
    if !text.isEmpty { custom["firebaseStorageDownloadTokens"] = .string(text) }
    if !custom.entries.isEmpty { fields["metadata"] = .map(custom) }
    return fields
  }
}
