package import DocumentModel

/// The request of DeleteDocument.
package struct DeleteDocumentRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.DeleteDocumentRequest"
  package let key: DocumentKey
  package var precondition = Precondition.none

  /// Deletes a document whether or not it exists.
  package init(_ key: DocumentKey) { self.key = key }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "current_document") {
      precondition = try field.message(PreconditionMembers())
    } else {
      field.ignore("name")
    }
  }
}
