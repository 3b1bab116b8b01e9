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

  /// Appends a Document object.
  mutating func append(_ document: Document, in database: DatabaseID, mask: FieldMask?) throws(WireError) {
    try EncodedDocument.with(document, root: database.documentsRootBytes) { (encoded) throws(WireError) in
      try DocumentJSON.append(encoded, mask: mask, to: &self)
    }
  }

  /// Writes the name of a member.
  mutating func key(_ name: String) {
    var copy = name
    copy.withUTF8 { key(UnsafeRawBufferPointer($0)) }
  }

  /// Returns the text as a whole response body, with a line break at its end.
  consuming func finish() -> [UInt8] {
    bytes.append(UInt8(ascii: "\n"))
    return bytes
  }

  /// Returns the text written so far and removes it. Writing continues afterwards.
  mutating func take() -> [UInt8] {
    defer { bytes.removeAll() }
    return bytes
  }

  /// Appends the full name of a document as a string.
  mutating func name(_ key: DocumentKey, in database: DatabaseID) {
    string(ResourceName(database: database, path: key.path).text)
  }
}
