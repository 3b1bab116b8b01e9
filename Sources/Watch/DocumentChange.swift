package import DocumentModel
import DocumentStore

/// The change of a document in a target. `Document` is the form of the document's state: bytes that are valid only
/// during a call, or a ``WatchedDocument`` that listeners share.
package enum DocumentChange<Document> {
  /// The document matches the target: the client adds it, or replaces the state that it has.
  case modified(Document)
  /// The document no longer belongs to the target. The payload is its new state; `nil` if that still matches the
  /// filter but other documents took its place, or if the client must not see it.
  case removed(Document?)
  /// The document does not exist.
  case deleted
}

extension DocumentChange: Sendable where Document: Sendable {}

extension DocumentChange {
  /// Returns the same change with another form of the document.
  package func map<Other>(_ transform: (Document) -> Other) -> DocumentChange<Other> {
    switch self {
    case .modified(let document): .modified(transform(document))
    case .removed(let document): .removed(document.map(transform))
    case .deleted: .deleted
    }
  }
}

/// The state of a document in an event.
package enum DocumentState {
  /// Stored bytes. Borrowed: valid only during the call that receives the event.
  case stored(StoredDocument)
  /// A state that listeners share.
  case shared(WatchedDocument)

  /// The version of the document's last change.
  package var updateVersion: Int64 {
    switch self {
    case .stored(let document): document.updateVersion
    case .shared(let document): document.updateVersion
    }
  }

  /// Calls `body` with the encoded fields.
  /// - Throws: Any error of `body`.
  package func withFields<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R {
    switch self {
    case .stored(let document): try body(document.fields)
    case .shared(let document): try document.fields.bytes.withUnsafeBytes(body)
    }
  }

  /// Returns the document with only the fields that a mask selects; `nil` selects all.
  /// - Throws: ``WireError`` if the document's bytes are malformed.
  package func kept(_ key: DocumentKey, by mask: FieldMask?) throws -> DocumentState {
    guard let mask else { return self }
    switch self {
    case .stored(let document): return .shared(try WatchedDocument(key, document, keptBy: mask))
    case .shared(let document): return .shared(try document.kept(by: mask))
    }
  }
}
