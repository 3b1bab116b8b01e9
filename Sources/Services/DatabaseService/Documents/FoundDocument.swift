package import DocumentModel
package import DocumentStore

/// A document on its way to a client, borrowed from a snapshot.
package struct FoundDocument {
  /// Where it is.
  package var key: DocumentKey
  /// The document; `nil` for one that is missing but has descendants.
  package var stored: StoredDocument?
}
