package import DocumentModel

/// The change of a document in a target.
package struct TargetDocumentChange: Sendable {
  /// The state of the document after the change.
  package enum State: Sendable {
    /// The document matches the target.
    case matches(WatchedDocument)
    /// The document belonged to the target, and in its present state no longer matches it.
    case left(WatchedDocument)
    /// The document does not exist.
    case deleted
    /// The document belonged to the target and still matches the filter, but other documents took its place.
    case removed
  }

  package let key: DocumentKey
  package let state: State

  /// The approximate memory use of the change, in bytes.
  var bytes: Int {
    switch state {
    case .matches(let document), .left(let document): 128 + 2 * key.path.bytes.count + document.fields.bytes.count
    case .deleted, .removed: 64 + key.path.bytes.count
    }
  }
}

/// The changes of a target's documents between two versions, shared by all subscriptions to the same query or
/// document.
package final class TargetDelta: Sendable {
  /// The changes, at most one per document.
  package let changes: [TargetDocumentChange]
  let bytes: Int

  init(_ changes: [TargetDocumentChange]) {
    self.changes = changes
    bytes = changes.reduce(0) { $0 + $1.bytes }
  }
}

/// All changes between two versions in the targets of one listener.
package struct WatchBatch: Sendable {
  /// The changes of one target.
  package struct Part: Sendable {
    /// The target ID.
    package let target: Int
    /// The changes, or `nil` if they are not known and the listener must refresh the target.
    package let delta: TargetDelta?
  }

  /// The version after the changes.
  package let version: Int64
  /// The targets with changes.
  package let parts: [Part]

  var bytes: Int { parts.reduce(64) { $0 + 32 + ($1.delta?.bytes ?? 0) } }
}

/// The version from which targets are followed.
package struct WatchStart: Sendable {
  /// A target that is now followed.
  package struct Target: Sendable {
    /// The target ID.
    package let target: Int
    /// The target's documents at the version, in order, if the hub knows them.
    package let documents: [ResourcePath]?
  }

  /// The version. The listener is notified of all later changes.
  package let version: Int64
  package let targets: [Target]
}
