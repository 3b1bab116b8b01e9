package import DocumentModel

/// The request of GetDocument.
package struct GetDocumentRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.GetDocumentRequest"
  /// The document to read.
  package let key: DocumentKey
  /// The fields to return, or `nil` for all.
  package var mask: FieldMask?
  /// The state to read.
  package var consistency = ConsistencySelector.latest

  /// Requests the newest version of a document.
  package init(_ key: DocumentKey) { self.key = key }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "mask") {
      mask = try field.message(DocumentMask())
    } else if try !field.reads(at: &consistency, transaction: 3, readTime: 5) {
      field.ignore("name")
    }
  }
}

/// A document in a response: the fields that a mask selects.
package struct MaskedDocument: EncodableMessage {
  package let document: EncodedDocument
  /// The fields to send, or `nil` for all.
  package let mask: FieldMask?

  package init(_ document: EncodedDocument, mask: FieldMask?) {
    self.document = document
    self.mask = mask
  }

  package func append(to out: inout JSONWriter) throws(WireError) {
    try DocumentJSON.appendMembers(of: document, mask: mask, to: &out)
  }

  package func append(to out: inout ProtobufMessageWriter) throws(WireError) {
    try DocumentProtobuf.append(document, mask: mask, to: &out.bytes)
  }
}
