package import DocumentModel
import WireFormat

/// A writer for documents in any format that an export has.
///
/// Documents are written in name order. Text is passed on in pieces; memory is one piece and what the format needs.
package struct DocumentFileWriter {
  /// A format of files.
  package enum Format: String, CaseIterable, Sendable {
    /// The format of ``FixtureTreeWriter``: one JSON object.
    case tree
    /// One JSON object per document, each on a line of its own; ``DocumentLinesReader`` reads it.
    case ndjson
    /// The format of ``CSVWriter``: the documents of one collection.
    case csv

    /// Returns the format that the ending of a file's name names, also before `.gz` and `.zst`, or `nil`.
    package init?(nameOfFile name: String) {
      let endings: [(String, Format)] = [(".json", .tree), (".ndjson", .ndjson), (".jsonl", .ndjson), (".csv", .csv)]
      guard let found = endings.first(where: { FixtureReader.isName(name, endingWith: $0.0) }) else { return nil }
      self = found.1
    }
  }

  /// The length from which text is passed on, in bytes.
  private static let pieceBytesMin = 256 << 10

  private let values: FixtureValueWriter
  private let format: Format
  private var tree: FixtureTreeWriter?
  private var csv: CSVWriter?
  /// The lines that were not passed on yet.
  private var text: [UInt8] = []
  /// The number of documents written so far.
  package private(set) var count = 0
  /// The number of documents that the format cannot contain, because they are below the documents of the collection.
  package private(set) var skipped = 0

  /// Starts a file for the documents of `root` and below. `patterns` must cover their collections if the format is
  /// ``Format/tree``; others ignore it.
  /// - Throws: ``CollectionShape/InvalidPattern`` if a pattern is invalid, ``FixtureTreeError`` if the format cannot
  ///   contain the documents of `root`, or if a temporary file cannot be created.
  package init(_ format: Format, database: DatabaseID, below root: ResourcePath, patterns: [String]) throws {
    values = FixtureValueWriter(documentsRoot: database.documentsRoot)
    self.format = format
    switch format {
    case .tree: tree = try FixtureTreeWriter(database: database, patterns: patterns)
    case .ndjson: break
    case .csv: csv = try CSVWriter(database: database, collection: root)
    }
  }

  /// Adds a document. Its name must come after those of all earlier documents.
  /// - Throws: ``WireError`` if the fields are damaged, ``FixtureTreeError`` if the format cannot contain them, and any
  ///   error of `write`.
  package mutating func add(
    _ key: DocumentKey, _ fields: EncodedFields, _ write: ([UInt8]) throws -> Void
  ) throws {
    switch format {
    case .tree:
      try tree?.write(key, fields)
      if let length = tree?.output.count, length >= Self.pieceBytesMin { try write(tree?.takeOutput() ?? []) }
    case .ndjson:
      try appendLine(key, fields)
      if text.count >= Self.pieceBytesMin {
        try write(text)
        text.removeAll()
      }
    case .csv:
      guard try csv?.add(key, fields) == true else {
        skipped += 1
        return
      }
    }
    count += 1
  }

  private mutating func appendLine(_ key: DocumentKey, _ fields: EncodedFields) throws(WireError) {
    text.append(contentsOf: "{\"path\": ".utf8)
    key.path.bytes.withUnsafeBytes { JSONStringText.append($0, to: &text) }
    text.append(contentsOf: ", \"fields\": ".utf8)
    // With the line start this far away, the length limit never applies.
    _ = try values.appendInline(fields, isApart: false, lineStart: Int.max / 2, to: &text)
    text.append(contentsOf: "}\n".utf8)
  }

  /// Ends the file and passes on the rest of its text.
  /// - Throws: ``WireError`` if fields are damaged, ``FixtureTreeError`` if a temporary file cannot be read, and any
  ///   error of `write`.
  package mutating func finish(_ write: ([UInt8]) throws -> Void) throws {
    switch format {
    case .tree:
      try tree?.finish()
      try write(tree?.takeOutput() ?? [])
    case .ndjson: try write(text)
    case .csv: try csv?.finish(pieceBytes: Self.pieceBytesMin, write)
    }
  }
}
