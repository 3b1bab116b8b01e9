package import DocumentModel
package import FixtureTree
import Glibc
import WireFormat

/// A writer for the documents of an export: a folder `NAME` with the files that ``ExportMetadata`` describes. The
/// official emulator loads it.
///
/// The overall metadata is written last, so an incomplete export cannot be loaded. Files of an earlier export in the
/// same folder are replaced. Memory: one document and a buffer.
package struct DocumentsWriter: ~Copyable {
  /// The number of documents so far.
  package private(set) var documents = 0

  private static let kindFolder = "all_namespaces/all_kinds"
  private static let kindFile = "\(kindFolder)/all_namespaces_all_kinds\(ExportMetadata.kindSuffix)"

  private let folder: String
  private let name: String
  private let started: Timestamp
  private let encoder: EntityEncoder
  private var outputs: [String] = []
  private var output: OutputLog?
  private var outputDocuments = 0
  private var bytes = 0
  private var record: [UInt8] = []

  /// Returns whether a text can be the name of an export: one path segment.
  package static func isName(_ text: String) -> Bool {
    !text.isEmpty && text != "." && text != ".." && text.utf8.count <= 200
      && text.utf8.allSatisfy { $0 >= 0x20 && $0 != UInt8(ascii: "/") }
  }

  /// Starts an export named `name`, one path segment, in a folder. The folder is created if it is missing.
  /// - Throws: `FixtureTreeError` if the folder cannot be written.
  package init(
    _ parent: String, name: String, database: DatabaseID, started: Timestamp
  ) throws(FixtureTreeError) {
    folder = "\(parent)/\(name)"
    self.name = name
    self.started = started
    encoder = EntityEncoder(database: database)
    try ExportFiles.makeFolder("\(folder)/\(Self.kindFolder)")
    unlink(Self.overallFile(folder, name))
    try beginOutput()
  }

  /// Adds a document.
  /// - Throws: `FixtureTreeError` if a file cannot be written, or the fields are damaged.
  package mutating func write(_ key: DocumentKey, _ fields: EncodedFields) throws(FixtureTreeError) {
    record.removeAll(keepingCapacity: true)
    do throws(WireError) { try encoder.append(key, fields, to: &record) } catch {
      throw FixtureTreeError(file: folder, path: key.path.text, message: "\(error)")
    }
    if outputDocuments == ExportLimits.outputDocumentsMax {
      try endOutput()
      try beginOutput()
    }
    try record.withRawBytes { (bytes) throws(FixtureTreeError) in try output?.append(bytes) }
    outputDocuments += 1
    documents += 1
  }

  /// Completes the export.
  /// - Throws: `FixtureTreeError` if a file cannot be written.
  package mutating func finish(at ended: Timestamp) throws(FixtureTreeError) {
    try endOutput()
    try ExportFiles.write(
      ExportMetadata.kinds(export: name, started: started, ended: ended, outputs: outputs),
      to: "\(folder)/\(Self.kindFile)")
    let overall = try OutputLog(Self.overallFile(folder, name))
    for record in [
      Array(ExportMetadata.version.utf8),
      ExportMetadata.overall(file: Self.kindFile, documents: documents, bytes: bytes),
    ] {
      try record.withRawBytes { (bytes) throws(FixtureTreeError) in try overall.append(bytes) }
    }
    try overall.finish()
  }

  private static func overallFile(_ folder: String, _ name: String) -> String {
    "\(folder)/\(name)\(ExportMetadata.overallSuffix)"
  }

  private mutating func beginOutput() throws(FixtureTreeError) {
    let name = "output-\(outputs.count)"
    outputs.append(name)
    outputDocuments = 0
    output = try OutputLog("\(folder)/\(Self.kindFolder)/\(name)")
  }

  private mutating func endOutput() throws(FixtureTreeError) {
    try output?.finish()
    bytes += output?.byteCount ?? 0
    output = nil
  }
}
