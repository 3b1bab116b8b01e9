package import LogEngine

/// The append of one entry, until its outcome is certain.
///
/// It repeats the same entry: the log has one entry at a position, so a repetition cannot append it twice. Two answers need
/// care:
/// - The entry is found at its position. An earlier try succeeded, but the row may be visible before it is durable. So a
///   transaction that settles the position must be answered first.
/// - The entry before it is missing. If an earlier try was lost, that one may have succeeded, and the log may have been
///   truncated since.
package struct EntryAppend: Sendable {
  /// The next task of the caller, or the outcome.
  package enum Step: Equatable, Sendable {
    case perform(TableRequest)
    /// The entry is in the log, durably.
    case appended
    /// The entry is not in the log and never will be: another owner is at its position.
    case refused
    /// Another owner has the log, and it cannot be found out whether the entry is in it.
    case unknown
  }

  package let entry: SharedEntry
  package let previous: LogPosition
  /// Whether the answer to an earlier try was lost.
  private var isInDoubt = false

  package init(_ entry: SharedEntry, behind previous: LogPosition) {
    self.entry = entry
    self.previous = previous
  }

  /// The first step, and that after a lost answer.
  package var request: TableRequest { .append(entry, behind: previous) }

  /// Returns the step after an answer; `nil` is a lost one.
  package mutating func receive(_ reply: TableReply?) -> Step {
    switch reply {
    case .appended, .settled: return .appended
    case .refused(let found?): return found == entry.position ? .perform(.settle(entry.position)) : .refused
    case .refused(nil): return isInDoubt ? .unknown : .refused
    default:
      isInDoubt = true
      return .perform(request)
    }
  }
}
