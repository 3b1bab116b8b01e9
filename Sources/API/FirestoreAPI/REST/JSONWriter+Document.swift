import DocumentModel
import WireFormat

extension JSONWriter {
  /// Appends a stored document as a Document object. `root` is the name of the documents root. Costs one pass over
  /// the document's bytes.
  mutating func append(
    _ key: DocumentKey, _ document: StoredDocument, root: [UInt8], mask: FieldMask?
  ) throws(WireError) {
    try EncodedDocument.with(key, document, root: root) { (encoded) throws(WireError) in
      try DocumentJSON.append(encoded, mask: mask, to: &self)
    }
  }

  /// Appends the full name of a document as a string.
  mutating func name(_ key: DocumentKey, in database: DatabaseID) {
    string(ResourceName(database: database, path: key.path).text)
  }
}
