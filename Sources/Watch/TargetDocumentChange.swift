package import DocumentModel

/// What became of a document, as a target sees it.
package struct TargetDocumentChange: Sendable {
  /// Its new state.
  package enum State: Sendable {
    /// It belongs to the target.
    case matches(WatchedDocument)
    /// It belonged to the target, and does no longer as it is.
    case left(WatchedDocument)
    /// It is gone.
    case deleted
    /// It belonged to the target, and others took its place.
    case removed
  }

  /// The document.
  package let key: DocumentKey
  /// What became of it.
  package let state: State

  /// About how much memory it holds, in bytes.
  var bytes: Int {
    switch state {
    case .matches(let document), .left(let document): 128 + 2 * key.path.bytes.count + document.fields.bytes.count
    case .deleted, .removed: 64 + key.path.bytes.count
    }
  }
}

/// What became of the documents of a target between two versions, shared by all who follow the same.
package final class TargetDelta: Sendable {
  /// The documents, each once.
  package let changes: [TargetDocumentChange]
  let bytes: Int

  init(_ changes: [TargetDocumentChange]) {
    self.changes = changes
    bytes = changes.reduce(0) { $0 + $1.bytes }
  }
}

/// Everything that happened between two versions to what one listener follows.
package struct WatchBatch: Sendable {
  /// What happened to a target.
  package struct Part: Sendable {
    /// The target, by the listener's number.
    package let target: Int
    /// Its changes; `nil` where they are not known and it has to be followed anew.
    package let delta: TargetDelta?
  }

  /// The version that is reached.
  package let version: Int64
  /// The targets that are touched.
  package let parts: [Part]

  var bytes: Int { parts.reduce(64) { $0 + 32 + ($1.delta?.bytes ?? 0) } }
}

/// A version from which on targets are followed.
package struct WatchStart: Sendable {
  /// A target.
  package struct Target: Sendable {
    /// The target, by the listener's number.
    package let target: Int
    /// Its documents at the version, in order, where the feed knows them.
    package let members: [ResourcePath]?
  }

  /// The version: what happens after it is told.
  package let version: Int64
  /// The targets.
  package let targets: [Target]
}
