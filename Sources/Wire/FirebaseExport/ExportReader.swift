package import DocumentModel
package import FixtureTree

/// The documents of an export, which can be read several times. Each pass checks that no file has changed since
/// ``ExportFolder/find(_:)``.
package struct ExportedDocuments: Sendable {
  /// A file `output-N`.
  struct Output: Sendable {
    var path: String
    var stamp: StampedFile.Stamp
  }

  /// The export's path, for messages.
  package let name: String
  /// The number of documents that the metadata name, or `nil` if they do not.
  package let expectedCount: Int?
  let outputs: [Output]

  /// The size of the output files, in bytes.
  package var byteCount: Int { outputs.reduce(0) { $0 + $1.stamp.size } }

  init(name: String, outputs paths: [String], expectedCount: Int?) throws(FixtureTreeError) {
    self.name = name
    self.expectedCount = expectedCount
    var outputs: [Output] = []
    for path in paths { outputs.append(Output(path: path, stamp: try StampedFile(path).stamp)) }
    self.outputs = outputs
  }

  /// Returns a reader at the first document. The documents go to `database`.
  package func makeReader(database: DatabaseID) -> ExportReader { ExportReader(self, database: database) }
}

/// A reader for the documents of an export, one document at a time.
///
/// Memory: a buffer of 256 KiB, and one document. After an error, do not use it again.
package final class ExportReader {
  /// The number of output files that were begun.
  package var fileCount: Int { next }
  /// The path of the current output file, for errors.
  package var file: String { outputs.isEmpty ? documents.name : outputs[max(0, next - 1)].path }
  private let documents: ExportedDocuments
  private var outputs: [ExportedDocuments.Output] { documents.outputs }
  /// The index of the output file after the current one.
  private var next = 0
  private var count = 0
  private var log: RecordLogReader?
  private var source: StampedFile?
  private var decoder: EntityDecoder

  init(_ documents: ExportedDocuments, database: DatabaseID) {
    self.documents = documents
    decoder = EntityDecoder(database: database)
  }

  /// Returns the next document, or `nil` at the end.
  /// - Throws: `FixtureTreeError` with file and record if a file is damaged, incomplete or has changed, or if a record
  ///   cannot be a document.
  package func nextDocument() throws(FixtureTreeError) -> FixtureDocument? {
    while true {
      if let document = try documentOfCurrentFile() {
        count += 1
        return document
      }
      if next > 0 { try source?.requireUnchanged(since: outputs[next - 1].stamp) }
      guard next < outputs.count else { break }
      let file = try StampedFile(outputs[next].path)
      try file.requireUnchanged(since: outputs[next].stamp)
      source = file
      log = RecordLogReader(name: outputs[next].path) { (buffer) throws(FixtureTreeError) in
        try file.read(into: buffer)
      }
      next += 1
    }
    if let expected = documents.expectedCount, expected != count {
      throw FixtureTreeError(
        file: documents.name,
        message: "the export contains \(count) documents, but its metadata name \(expected), so a file is incomplete; "
          + "copy or download the export again")
    }
    if count == 0, documents.expectedCount == nil, documents.byteCount == 0 {
      throw FixtureTreeError(
        file: documents.name, message: "the export contains no record, only empty files; copy or download it again")
    }
    return nil
  }

  private func documentOfCurrentFile() throws(FixtureTreeError) -> FixtureDocument? {
    guard let log else { return nil }
    return try log.next { (record) throws(RecordError) in try decoder.document(record, record: log.number) }
  }

  /// Returns the counts of references since the last call.
  package func takeReferences() -> ReferenceCounts { decoder.takeReferences() }
}
