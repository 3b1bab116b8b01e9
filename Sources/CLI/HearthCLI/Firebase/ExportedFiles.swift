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

  private let folder: String
  private static let suffix = ".json"
  /// The maximum size of the metadata of one file, in bytes.
  private static let metadataBytesMax = 1 << 20

  init(_ folder: String) { self.folder = folder }

  /// Uploads all files and creates missing buckets. Files without content are reported, and so are those that no bucket
  /// can have.
  /// - Throws: ``CommandFailure``, `FixtureTreeError` or `HTTPClientError` if a file cannot be read or uploaded.
  func send(to client: FilesClient, progress: (Outcome, Int) -> Void) throws -> Outcome {
    var outcome = Outcome()
    var buckets = Set<String>()
    func prepare(_ bucket: String) throws {
      if buckets.insert(bucket).inserted { try client.makeBucket(bucket) }
    }
    let list = try JSONTree.read(ByteSource(file: "\(folder)/buckets.json"), bytesMax: ExportLimits.metadataBytesMax)
    for bucket in list["buckets"]?.elements ?? [] {
      if let id = bucket["id"]?.text, ObjectName.isBucket(id) { try prepare(id) }
    }
    let root = "\(folder)/metadata"
    try Self.forEachFile(below: root) { path in
      guard path.hasSuffix(Self.suffix) else { return }
      let blob = "\(folder)/blobs\(path.dropFirst(root.count).dropLast(Self.suffix.count))"
      do {
        let metadata = try JSONTree.read(ByteSource(file: path), bytesMax: Self.metadataBytesMax)
        guard let bucket = metadata["bucket"]?.text, let name = metadata["name"]?.text else {
          throw CommandFailure.data("\(path) names no bucket and file")
        }
        do throws(FilesError) { _ = try ObjectName(checking: bucket, name) } catch {
          throw CommandFailure.data("gs://\(bucket)/\(name) is not a possible name of a file")
        }
        let source = try LocalSource(blob, follows: false)
        try prepare(bucket)
        try client.upload(
          source, as: name, in: bucket, type: metadata["contentType"]?.text ?? "application/octet-stream"
        ) { progress(outcome, $0) }
        try client.setMetadata(Self.fields(metadata), of: name, in: bucket)
        outcome.files += 1
        outcome.bytes += source.size
      } catch let failure as CommandFailure where failure.exitCode == ExitCode.data {
        outcome.failed += 1
        Terminal.error.write("hearth: skipped a file: \(TerminalText.line(failure.message))\n")
      }
      progress(outcome, 0)
    }
    return outcome
  }

  private static func forEachFile(below folder: String, _ body: (String) throws -> Void) throws {
    guard ExportFolder.isFolder(folder) else { return }
    for entry in try FolderEntries.list(folder) {
      if entry.isFolder { try forEachFile(below: entry.path, body) } else { try body(entry.path) }
    }
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
