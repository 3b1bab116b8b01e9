package import LogEngine

/// The entries of a log after those that a replica has, as far as they may be applied.
///
/// A row can be visible before its owner knows that it is durable. To apply it then would show a listener what a read at
/// the owner does not show yet, and the row can still be lost. So an entry is applied only if it is *confirmed*:
/// - its owner says so with its renewals, or sends it;
/// - or an entry of the same epoch follows, because an owner appends only behind what it knows to be durable;
/// - or a later entry is confirmed.
package struct EntryTail: Sendable {
  /// The replica cannot continue, and must be loaded anew.
  package enum Break: Error, Equatable, Sendable {
    /// The log no longer has the entries after the replica.
    case truncated
    /// The entries after the replica have another history. Something that was durable was lost.
    case diverged
  }

  /// The position after the last entry that was applied.
  package private(set) var applied: LogPosition
  /// The greatest position up to which a data file has entries already.
  private let mark: LogPosition
  /// Whether the last observation shows that the log lacks the last entry that a data file has, and has no other one in its
  /// place: the engine lost what was acknowledged.
  package private(set) var isAhead = false
  private let secret: UInt64
  /// The entries that were visible after ``applied`` when the log was last read.
  private var waiting: [SharedEntry] = []
  /// The number of them that the same reading shows to be confirmed.
  private var confirmedCount = 0
  /// The last position that was confirmed in another way. A position, because a sequence could confirm another entry: one
  /// that was visible when the log was last read, and was lost since.
  private var confirmed = LogPosition()

  package init(after applied: LogPosition, mark: LogPosition = LogPosition(), secret: UInt64) {
    self.applied = applied
    self.mark = mark
    // A data file has only entries that were durable.
    confirmed = mark
    self.secret = secret
  }

  /// The newest position of a data file.
  var newest: LogPosition { isWhole ? applied : mark }

  /// Whether all data files are at the position after the last entry that was applied. Before that, some have later entries,
  /// which the log may have lost.
  package var isWhole: Bool { applied.sequence >= mark.sequence }

  /// Notes what is visible now. Entries that were visible before and are not any more were lost.
  /// - Throws: ``Break`` if the entries do not continue the replica.
  package mutating func see(_ observation: StoreObservation) throws(Break) {
    guard observation.firstSequence <= applied.sequence + 1 else { throw .truncated }
    isAhead = false
    // When the request was sent, the log had the last entry of the replica durably. If it has another one there, or none
    // although it was not truncated so far, the engine lost entries that were acknowledged.
    if observation.after == applied.sequence, observation.after >= observation.firstSequence {
      guard observation.previous == nil || observation.previous == applied else { throw .diverged }
      isAhead = observation.previous == nil || observation.head < mark.sequence
      if observation.previous == nil { return }
    }
    let entries = Array(observation.entries.drop { $0.position.sequence <= applied.sequence })
    // The answer to an earlier request may be older than what was applied meanwhile.
    guard entries.first.map({ $0.position.sequence == applied.sequence + 1 }) ?? true else { return }
    var previous = applied
    for entry in entries {
      guard entry.follows(previous, secret: secret) else { throw .diverged }
      previous = entry.position
    }
    waiting = entries
    confirmedCount = entries.prefix { $0.position.sequence <= observation.confirmed }.count
    for index in entries.indices.dropLast()
    where entries[index].position.epoch == entries[index + 1].position.epoch {
      confirmedCount = max(confirmedCount, index + 1)
    }
  }

  /// Notes entries that an owner sent, and so are confirmed, with all before them. Entries after a gap, and those that
  /// contradict the log as it was last read, are ignored.
  package mutating func follow(_ entries: [SharedEntry]) {
    for entry in entries where entry.position.sequence > applied.sequence {
      let index = entry.position.sequence - applied.sequence - 1
      guard index <= waiting.count else { return }
      if index < waiting.count {
        guard waiting[Int(index)] == entry else { return }
      } else {
        guard entry.follows(waiting.last?.position ?? applied, secret: secret) else { return }
        waiting.append(entry)
      }
      confirmedCount = max(confirmedCount, Int(index) + 1)
    }
  }

  /// Notes that the entries up to a position are confirmed.
  package mutating func confirm(upTo position: LogPosition) {
    if position.sequence > confirmed.sequence { confirmed = position }
  }

  /// Takes the entries to be applied next.
  package mutating func takeConfirmed() -> [SharedEntry] {
    if let last = waiting.firstIndex(where: { $0.position == confirmed }) {
      confirmedCount = max(confirmedCount, last + 1)
    }
    let taken = Array(waiting.prefix(confirmedCount))
    waiting.removeFirst(confirmedCount)
    confirmedCount = 0
    if let last = taken.last { applied = last.position }
    return taken
  }

  /// Notes that this node applied an entry of its own.
  package mutating func advance(past entry: SharedEntry) {
    applied = entry.position
    waiting = []
    confirmedCount = 0
  }
}
