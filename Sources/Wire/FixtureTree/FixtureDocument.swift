package import DocumentModel

/// One document out of a file.
package struct FixtureDocument: Hashable, Sendable {
  /// Where it belongs.
  package var key: DocumentKey
  /// Its fields, checked as for a write.
  package var fields: EncodedFields
  /// The line on which it starts, for errors that are found later.
  package var line: Int

  /// Joins the parts.
  package init(key: DocumentKey, fields: EncodedFields, line: Int) {
    self.key = key
    self.fields = fields
    self.line = line
  }
}
