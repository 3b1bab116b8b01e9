import DocumentModel
import Watch

/// A target of a Listen stream, and the state of its client.
final class WatchedTarget {
  /// The client's target ID.
  let id: Int32
  /// The hub's number. It is never reused, although a client may reuse its target IDs.
  let number: Int
  let selection: TargetSelection
  /// Whether the target ends when it is current (`once`).
  let isOnce: Bool
  /// The number of documents that the client has at the resume point, according to the client.
  let expectedCount: Int?
  /// The version that the client has of the target; `nil` for nothing.
  var lastSentVersion: Int64?
  /// Whether the client must first discard documents (RESET).
  var isResetDue: Bool
  /// Whether the target is behind the stream. No snapshot is consistent until it has caught up.
  var isBehind = false
  /// Whether CURRENT was sent and still holds.
  var isCurrent = false
  /// Whether the target is still part of the stream.
  var isActive = true
  /// Whether the authorization depends on the time.
  var usesTime = false
  /// The time of the last authorization, in microseconds since 1970.
  var authorizedAt: Int64 = 0
  /// Whether the authorization depends on documents.
  var isGuarded = false
  /// For a document target: the versions of the documents at their authorization; 0 for a document that does not
  /// exist.
  var authorizedVersions: [DocumentKey: Int64] = [:]

  /// The size of the query's operands, in bytes.
  let operandBytes: Int

  /// The fields that the client receives; `nil` for all.
  var projection: FieldMask? {
    if case .query(let query) = selection { query.projection } else { nil }
  }

  init(
    _ target: ListenTarget, id: Int32, number: Int, _ selection: TargetSelection, lastSentVersion: Int64?,
    isResetDue: Bool
  ) {
    self.id = id
    self.number = number
    self.selection = selection
    self.lastSentVersion = lastSentVersion
    self.isResetDue = isResetDue
    operandBytes = if case .query(let query) = selection { query.operandBytes } else { 0 }
    isOnce = target.endsWhenCurrent
    expectedCount = target.resumePoint == nil ? nil : target.expectedCount
  }
}
