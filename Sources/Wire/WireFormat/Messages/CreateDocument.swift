package import DocumentModel

/// The request of CreateDocument.
package struct CreateDocumentRequest: DecodableMessage, Equatable, Sendable {
  package static let typeName: StaticString = "google.firestore.v1.CreateDocumentRequest"
  /// The collection of the new document.
  package let collection: ResourcePath
  /// The ID of the new document. If it is `nil` or empty, the server chooses one.
  package var documentID: String?
  package var document = DecodedDocument.empty
  /// The fields to return, or `nil` for all.
  package var mask: FieldMask?

  /// Creates an empty document in a collection.
  package init(in collection: ResourcePath) { self.collection = collection }

  package mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(3, "document_id") {
      documentID = try field.string()
    } else if field.matches(4, "document") {
      document = try field.document()
    } else if field.matches(5, "mask") {
      mask = try field.message(DocumentMask())
    } else {
      field.ignore("parent")
      field.ignore("collection_id")
    }
  }

  /// Returns the request, whose document must not have a name.
  ///
  /// - Throws: ``WireError/model(_:)``.
  package func decoded() throws(WireError) -> CreateDocumentRequest {
    guard document.name.isEmpty else { throw .model(.documentNameSet) }
    return self
  }
}
