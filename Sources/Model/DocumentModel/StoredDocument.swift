/// A document in its stored form, read in place: its versions and the encoded fields.
package struct StoredDocument {
  /// The commit version that created the document.
  package let createVersion: Int64
  /// The commit version that last changed the document.
  package let updateVersion: Int64
  /// The encoded fields, valid as long as the snapshot they came from.
  package let fields: UnsafeRawBufferPointer

  /// Creates a document from its parts. Valid as long as `fields`.
  package init(createVersion: Int64, updateVersion: Int64, fields: UnsafeRawBufferPointer) {
    self.createVersion = createVersion
    self.updateVersion = updateVersion
    self.fields = fields
  }

  /// Returns the document with other fields, for a response with computed fields. Valid as long as `fields`.
  package func with(fields: UnsafeRawBufferPointer) -> StoredDocument {
    StoredDocument(createVersion: createVersion, updateVersion: updateVersion, fields: fields)
  }
}
