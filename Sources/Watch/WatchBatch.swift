package import DocumentModel

/// The changes of a target's documents between two versions, shared by all subscriptions to the same query or
/// document.
package final class TargetDelta: Sendable {
  /// A changed document.
  package typealias Change = (key: DocumentKey, change: DocumentChange<WatchedDocument>)

  /// The changes, at most one per document.
  package let changes: [Change]
  /// The approximate memory use of the changes, in bytes.
  let bytes: Int

  init(_ changes: [Change]) {
    self.changes = changes
    bytes = changes.reduce(0) { $0 + Self.bytes($1) }
  }

  private static func bytes(_ change: Change) -> Int {
    switch change.change {
    case .modified(let document), .removed(let document?):
      128 + 2 * change.key.path.bytes.count + document.fields.bytes.count
    case .deleted, .removed(nil): 64 + change.key.path.bytes.count
    }
  }
}

/// All changes between two versions in the targets of one listener.
package struct WatchBatch: Sendable {
  /// The changes of one target.
  package struct Part: Sendable {
    /// The hub's number of the target.
    package let target: Int
    /// The changes, or `nil` if they are not known and the listener must refresh the target.
    package let delta: TargetDelta?
  }

  /// The version after the changes.
  package let version: Int64
  /// The targets with changes.
  package let parts: [Part]

  /// The approximate memory use of the batch, in bytes.
  var bytes: Int { parts.reduce(64) { $0 + 32 + ($1.delta?.bytes ?? 0) } }
}

/// The version from which targets are followed.
package struct WatchStart: Sendable {
  /// A target that is now followed.
  package struct Target: Sendable {
    /// The hub's number of the target.
    package let target: Int
    /// The target's documents at the version, in order, if the hub knows them.
    package let documents: [ResourcePath]?
  }

  /// The version. The listener is notified of all later changes.
  package let version: Int64
  package let targets: [Target]
}
