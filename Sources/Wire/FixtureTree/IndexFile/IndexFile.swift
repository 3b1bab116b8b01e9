package import DocumentModel
import WireFormat

/// The reading and writing of `firestore.indexes.json`, the index file of a database (firestore-api.md, section
/// 10.3).
package enum IndexFile {
  /// An index file, in bytes. A longer file is an error; a thousand indexes of a hundred fields each fit.
  package static let bytesMax = 16 << 20
  /// The composite and vector indexes in one index file, and as many field overrides. A file with more is an error.
  package static let declarationsMax = 1000
  /// The fields of one index in an index file. A file with more is an error. Source: firestore-api.md, section 12.
  package static let fieldsMax = 100

  /// Reads the index configuration in a file.
  /// - Throws: ``FixtureTreeError`` with line and column for the first mistake: invalid JSON, an unknown key, an
  ///   invalid value, or a combination of fields that no index supports.
  package static func read(file path: String) throws(FixtureTreeError) -> IndexConfiguration {
    try read(ByteSource(file: path))
  }

  /// Reads an index configuration from a source. Errors contain the source's name.
  /// - Throws: ``FixtureTreeError``, as ``read(file:)`` does.
  package static func read(_ source: ByteSource) throws(FixtureTreeError) -> IndexConfiguration {
    let root = try JSONTree.read(source, bytesMax: bytesMax)
    let reader = IndexFileReader(file: source.name)
    return try reader.configuration(root)
  }
}
