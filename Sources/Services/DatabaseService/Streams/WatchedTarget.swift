import DocumentModel
import Watch

/// A target of a Listen stream, and how far its client is.
final class WatchedTarget {
  /// The client's number.
  let id: Int32
  /// The feed's number: never used again, where a client may use its own again.
  let number: Int
  /// What is followed.
  let selection: TargetSelection
  /// Whether it ends with its first consistent state.
  let isOnce: Bool
  /// How many documents the client says that it has at the resume point.
  let expectedCount: Int?
  /// The version that the client has of it; `nil` for nothing.
  var lastSentVersion: Int64?
  /// Whether the client has something that is to be forgotten first.
  var isResetDue: Bool
  /// Whether it has fallen behind what the stream tells, so that nothing told is consistent until it has caught up.
  var isBehind = false
  /// Whether CURRENT was told, and holds.
  var isCurrent = false
  /// Whether the stream still has it.
  var isActive = true
  /// Whether its admission hangs on the time of day.
  var usesTime = false
  /// When its admission was last judged, in microseconds since 1970.
  var authorizedAt: Int64 = 0
  /// Whether its admission rests on documents.
  var isGuarded = false
  /// The version of the documents of a document target that were judged; 0 for what was missing.
  var authorizedVersions: [DocumentKey: Int64] = [:]

  /// Bytes of its operands, counted where it is followed.
  let operandBytes: Int

  /// The fields that the client is told of; `nil` for all.
  var projection: FieldMask? {
    if case .query(let query) = selection { query.projection } else { nil }
  }

  init(_ target: ListenTarget, id: Int32, number: Int, _ selection: TargetSelection, lastSentVersion: Int64?, isResetDue: Bool) {
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
