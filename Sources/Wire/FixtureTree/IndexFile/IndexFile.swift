package import DocumentModel

/// `firestore.indexes.json`: the indexes of a database as a file (firestore-api.md, section 10.3).
package enum IndexFile {
  /// The longest file that is read, in bytes: a thousand indexes of a hundred fields each fit.
  package static let bytesMax = 16 << 20
  /// Indexes of several fields that one file may declare, and as many fields that differ from the rest.
  package static let declarationsMax = 1000
  /// Fields of one index.
  package static let fieldsMax = 100

  /// What a file declares.
  /// - Throws: ``FixtureTreeError`` with line and column for the first mistake: no JSON, an unknown key, a value that
  ///   is none of the legal ones, or a combination that no index can have.
  package static func read(file path: String) throws(FixtureTreeError) -> IndexConfiguration {
    try read(ByteSource(file: path))
  }

  /// What a text declares; errors carry the source's name.
  /// - Throws: as ``read(file:)``.
  package static func read(_ source: ByteSource) throws(FixtureTreeError) -> IndexConfiguration {
    let root = try PositionedJSON.read(source, bytesMax: bytesMax)
    let reader = IndexFileReader(file: source.name)
    return try reader.configuration(root)
  }
}
