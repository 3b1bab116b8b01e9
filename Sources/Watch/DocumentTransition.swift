import DocumentModel
import DocumentStore

/// A document at two versions, read once for all views that it may affect.
final class DocumentTransition {
  let key: DocumentKey
  /// The previous state, or `nil` if the document did not exist or its previous state is not known.
  let before: StoredDocument?
  /// Whether the previous state is known.
  let isBeforeKnown: Bool
  /// The new state; `nil` if the document does not exist.
  let now: StoredDocument?
  private var sharedDocument: WatchedDocument?

  init(_ key: DocumentKey, before: StoredDocument?, isBeforeKnown: Bool, now: StoredDocument?) {
    self.key = key
    self.before = before
    self.isBeforeKnown = isBeforeKnown
    self.now = now
  }

  /// The new state in a form that listeners share.
  var document: WatchedDocument? {
    if let sharedDocument { return sharedDocument }
    guard let now else { return nil }
    sharedDocument = WatchedDocument(key, now)
    return sharedDocument
  }
}
