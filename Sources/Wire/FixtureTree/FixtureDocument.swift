package import DocumentModel

/// One document of a file.
package struct FixtureDocument: Hashable, Sendable {
  package var key: DocumentKey
  /// The fields, checked as for a write.
  package var fields: EncodedFields
  /// The line where the document starts, or the number of its record in a binary file, from 1, for errors that are
  /// found later.
  package var line: Int

  package init(key: DocumentKey, fields: EncodedFields, line: Int) {
    self.key = key
    self.fields = fields
    self.line = line
  }
}
