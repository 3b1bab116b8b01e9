package import DocumentModel

/// A document to be sent to a client, borrowed from a snapshot.
package struct FoundDocument {
  package var key: DocumentKey
  /// The document; `nil` if it does not exist but has descendants.
  package var stored: StoredDocument?
}
