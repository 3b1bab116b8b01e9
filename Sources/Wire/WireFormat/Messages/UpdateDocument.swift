package import DocumentModel

/// The request of UpdateDocument.
package struct UpdateDocumentRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.UpdateDocumentRequest"
  /// The document to write. The name in ``document`` is ignored.
  package let key: DocumentKey
  package var document = DecodedDocument.empty
  /// The fields to write, or `nil` to replace the document.
  package var updateMask: FieldMask?
  /// The fields to return, or `nil` for all.
  package var mask: FieldMask?
  package var precondition = Precondition.none

  /// Replaces a document by an empty one.
  package init(_ key: DocumentKey) { self.key = key }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "document") {
      document = try field.document()
    } else if field.matches(2, "update_mask") {
      updateMask = try field.message(DocumentMask(isForWrite: true))
    } else if field.matches(3, "mask") {
      mask = try field.message(DocumentMask())
    } else if field.matches(4, "current_document") {
      precondition = try field.message(PreconditionMembers())
    }
  }
}
