import Accounts
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
    /// The metadata as the server stores them.
    var attributes: ObjectAttributes
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

  /// Reads and checks the whole folder: the lists, the metadata, which must be within the limits of the server, and the
  /// content of every file with its size and its MD5 hash, or its CRC-32C if the metadata have no hash. `progress`
  /// receives the files and bytes so far. Cost: one pass over all content, and memory for the names of all files.
  /// - Throws: ``CommandFailure`` or `FixtureTreeError` that names the files that are damaged or missing.
  init(_ folder: String, progress: (Outcome) -> Void) throws {
    self.folder = folder
    buckets = try Self.buckets("\(folder)/buckets.json")
    for id in buckets where !ObjectName.isBucket(id) {
      notes.append("left out the bucket \"\(id)\", because a bucket cannot have this name")
    }
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
    var seen: [ObjectName: String] = [:]
    try forEachMetadata(damage: { damage.append($0) }) { path in
      do {
        let item = try item(path)
        if let earlier = seen.updateValue(path, forKey: ObjectName(bucket: item.bucket, name: item.name)) {
          throw CommandFailure.data(
            "\(path) and \(earlier) are metadata of the same file, gs://\(item.bucket)/\(item.name)")
        }
        if item.isPossible { try Self.checkLimits(item, path) }
        count.bytes += try Self.checkContent(item)
        count.files += 1
        progress(count)
      } catch { damage.append(CommandFailure(error).message) }
    }
    var alone = (count: 0, first: "")
    let blobs = "\(folder)/blobs"
    try Self.forEachEntry(below: blobs) { entry in
      let path = entry.path
      let metadata = "\(folder)/metadata\(path.dropFirst(blobs.count))\(Self.suffix)"
      // A file with metadata is checked with them.
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
    if !["metadata", "blobs"].contains(where: { ExportFolder.isFolder("\(folder)/\($0)") }) {
      notes.append(
        "\(folder) contains no files, only a list of buckets; if the project has files, export or copy it again")
    }
    guard damage.isEmpty else { throw Self.failure(folder, damage) }
  }

  private static func failure(_ folder: String, _ damage: [String]) -> CommandFailure {
    var lines = ["\(folder) cannot be imported, so nothing was imported:"]
    lines += damage.prefix(listedMax).map { "  \($0)" }
    if damage.count > listedMax { lines.append("  and \(damage.count - listedMax) more") }
    return .data(lines.joined(separator: "\n"))
  }

  /// Checks the metadata as the server does, so that it does not reject the file after others are stored.
  private static func checkLimits(_ item: Item, _ path: String) throws {
    do throws(FilesError) { try item.attributes.check() } catch {
      guard case .invalid(let reason) = error else { throw error }
      throw CommandFailure.data("\(path): the server would reject these metadata: \(reason)")
    }
  }

  /// Reads the content of a file, compares it with the metadata, and returns its size.
  private static func checkContent(_ item: Item) throws -> Int {
    let source = try content(item)
    var digest = MessageDigest(.md5)
    while case let piece = source.next(atMost: .max), !piece.isEmpty { piece.withUnsafeBytes { digest.update($0) } }
    if let failure = source.failure { throw failure }
    // Libcrypto refuses MD5 if it is configured so.
    if let hash = item.metadata["md5Hash"]?.text, !hash.isEmpty, let found = digest.finish() {
      guard Base64.decode(hash) == found else {
        throw CommandFailure.data("\(item.blob) does not have the MD5 hash that its metadata name")
      }
    } else if let sum = sum(item.metadata["crc32c"]), sum != Base64.decode(source.crc32c) {
      throw CommandFailure.data("\(item.blob) does not have the CRC-32C that its metadata name")
    }
    return source.size
  }

  /// Opens the content of a file, which must have the size that the metadata name.
  private static func content(_ item: Item) throws -> LocalSource {
    var status = stat()
    if lstat(item.blob, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
      let isLink = status.st_mode & S_IFMT == S_IFLNK
      throw CommandFailure.data(
        isLink
          ? "\(item.blob) is a symbolic link, which the import does not follow; copy the file itself"
          : "\(item.blob) is not a regular file, but must contain gs://\(item.bucket)/\(item.name)")
    }
    let source = try LocalSource(item.blob, follows: false)
    if let size = number(item.metadata["size"]), size != source.size {
      throw CommandFailure.data("\(item.blob) has \(source.size) bytes, but its metadata name \(size)")
    }
    return source
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

  /// Returns the file of a metadata file.
  private func item(_ path: String) throws -> Item {
    let root = "\(folder)/metadata"
    let metadata = try JSONTree.read(ByteSource(file: path), bytesMax: Self.metadataBytesMax)
    guard metadata.members != nil, let bucket = metadata["bucket"]?.text, let name = metadata["name"]?.text else {
      throw CommandFailure.data("\(path) names no bucket and file")
    }
    let isPossible = (try? ObjectName(checking: bucket, name)) != nil
    return Item(
      metadata: metadata, blob: "\(folder)/blobs\(path.dropFirst(root.count).dropLast(Self.suffix.count))",
      bucket: bucket, name: name, attributes: Self.attributes(metadata), isPossible: isPossible)
  }

  /// Passes the path of each metadata file to `body`. `damage` receives a text about each entry that is not a regular
  /// file.
  private func forEachMetadata(damage: (String) -> Void = { _ in }, _ body: (String) throws -> Void) throws {
    try Self.forEachEntry(below: "\(folder)/metadata") { entry in
      switch entry.kind {
      case .file, .folder: if entry.path.hasSuffix(Self.suffix) { try body(entry.path) }
      case .link, .special:
        damage("\(entry.path) is \(entry.kind.text), which the import does not follow; copy the file itself")
      case .misnamed: damage("\(entry.path) is \(entry.kind.text); export or copy it again")
      }
    }
  }

  /// Passes everything below a folder to `body`, except the folders.
  private static func forEachEntry(below folder: String, _ body: (FolderEntries.Entry) throws -> Void) throws {
    guard ExportFolder.isFolder(folder) else { return }
    for entry in try FolderEntries.list(folder) {
      if entry.isFolder { try forEachEntry(below: entry.path, body) } else { try body(entry) }
    }
  }

  // MARK: Import

  /// Uploads all files and creates missing buckets. Files that no bucket can have, or that the server rejects, are
  /// reported one by one.
  /// - Throws: ``CommandFailure``, `FixtureTreeError` or `HTTPClientError` if a file cannot be read or uploaded.
  func send(to client: FilesClient, progress: (Outcome, Int) -> Void) throws -> Outcome {
    var outcome = Outcome()
    var made = Set<String>()
    func prepare(_ bucket: String) throws {
      if made.insert(bucket).inserted { try client.makeBucket(bucket) }
    }
    for id in buckets where ObjectName.isBucket(id) { try prepare(id) }
    func skip(_ item: Item, _ reason: String) {
      outcome.failed += 1
      let name = "gs://\(item.bucket)/\(item.name)"
      Terminal.error.write("hearth: skipped a file: \(TerminalText.line("\(name) \(reason)"))\n")
    }
    try forEachMetadata { path in
      let item = try item(path)
      if item.isPossible {
        try prepare(item.bucket)
        do {
          let size = try Self.upload(item, client) { progress(outcome, $0) }
          outcome.files += 1
          outcome.bytes += size
        } catch let failure as CommandFailure where [400, 413].contains(failure.httpStatus) {
          skip(item, "was rejected: \(failure.message)")
        }
      } else {
        skip(item, "is not a possible name of a file")
      }
      progress(outcome, 0)
    }
    return outcome
  }

  /// Uploads a file with its metadata, and returns its size.
  private static func upload(_ item: Item, _ client: FilesClient, progress: (Int) -> Void) throws -> Int {
    let source = try content(item)
    let type = item.attributes.contentType ?? "application/octet-stream"
    var settings = fields(item.attributes)
    // A header field cannot contain every text.
    let isPlain = type.utf8.allSatisfy { (0x21...0x7E).contains($0) || $0 == 0x20 } && type.utf8.last != 0x20
    if !settings.entries.isEmpty || !isPlain { settings["contentType"] = .string(type) }
    try client.upload(
      source, as: item.name, in: item.bucket, type: type, settings: settings.entries.isEmpty ? [] : settings.json,
      progress: progress)
    if let sum = sum(item.metadata["crc32c"]), sum != Base64.decode(source.crc32c) {
      throw CommandFailure.failed("\(item.blob) changed while it was imported; import it again")
    }
    return source.size
  }

  /// Returns the metadata of the export as attributes of an object.
  private static func attributes(_ metadata: JSONTree) -> ObjectAttributes {
    var attributes = ObjectAttributes()
    attributes.contentType = metadata["contentType"]?.text
    attributes.cacheControl = metadata["cacheControl"]?.text
    attributes.contentDisposition = metadata["contentDisposition"]?.text
    attributes.contentLanguage = metadata["contentLanguage"]?.text
    // The emulator writes `identity` for content without encoding.
    if let encoding = metadata["contentEncoding"]?.text, encoding != "identity" {
      attributes.contentEncoding = encoding
    }
    for member in metadata["customMetadata"]?.members ?? [] {
      attributes.metadata[member.name] = member.value.text
    }
    // An array or, in older exports, a text with commas.
    let tokens = metadata["downloadTokens"]?.elements.compactMap(\.text).joined(separator: ",") ?? ""
    let text = metadata["downloadTokens"]?.text ?? tokens
    if !text.isEmpty { attributes.metadata[CustomMetadata.downloadTokensName] = text }
    return attributes
  }

  /// Returns attributes other than the media type as members of an object of Cloud Storage's API.
  private static func fields(_ attributes: ObjectAttributes) -> MapValue {
    var fields = MapValue()
    fields["cacheControl"] = attributes.cacheControl.map { .string($0) }
    fields["contentDisposition"] = attributes.contentDisposition.map { .string($0) }
    fields["contentLanguage"] = attributes.contentLanguage.map { .string($0) }
    fields["contentEncoding"] = attributes.contentEncoding.map { .string($0) }
    if !attributes.metadata.isEmpty {
      fields["metadata"] = .map(MapValue(attributes.metadata.entries.map { ($0.name, .string($0.value)) }))
    }
    return fields
  }
}
