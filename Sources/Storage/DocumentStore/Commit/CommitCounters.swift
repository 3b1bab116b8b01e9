import Basics
import Synchronization

/// What the writers of all databases did since the start.
package final class CommitCounters: Sendable {
  /// How a commit ended.
  package enum Outcome: Int, CaseIterable, Sendable {
    /// Durable.
    case ok
    /// A transaction that others were faster than.
    case aborted
    /// Not allowed by rules.
    case denied
    /// A precondition, a limit, or the disk.
    case failed
  }

  /// Upper bounds of the classes of ``groups``.
  package static let groupBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]

  private let outcomes = InlineArray<4, Atomic<Int>> { _ in Atomic(0) }
  private let durationClasses = InlineArray<16, Atomic<Int>> { _ in Atomic(0) }
  private let groupClasses = InlineArray<13, Atomic<Int>> { _ in Atomic(0) }
  private let durationSum = Atomic(0)
  private let written = Atomic(0)

  /// Starts at 0.
  package init() {
    // The counts are literals of types, which cannot be derived.
    precondition(outcomes.count == Outcome.allCases.count, "a place for each outcome")
    precondition(durationClasses.count == DurationClasses.count, "a place for each class")
    precondition(groupClasses.count == Self.groupBounds.count + 1, "a class for each bound, and one more")
  }

  /// Counts a group that was written together.
  func count(group members: Int) {
    groupClasses[Self.groupBounds.count { members > $0 }].wrappingAdd(1, ordering: .relaxed)
  }

  /// Counts one commit of so many writes, `microseconds` after it stood in line.
  func count(_ result: Result<CommitOutcome, CommitError>, writes: Int, microseconds: Int) {
    let outcome: Outcome =
      switch result {
      case .success: .ok
      case .failure(.aborted): .aborted
      case .failure(.denied): .denied
      case .failure: .failed
      }
    outcomes[outcome.rawValue].wrappingAdd(1, ordering: .relaxed)
    if outcome == .ok { written.wrappingAdd(writes, ordering: .relaxed) }
    durationClasses[DurationClasses.place(of: microseconds)].wrappingAdd(1, ordering: .relaxed)
    durationSum.wrappingAdd(microseconds, ordering: .relaxed)
  }

  /// How many commits ended so.
  package subscript(outcome: Outcome) -> Int { outcomes[outcome.rawValue].load(ordering: .relaxed) }
  /// Writes of commits that succeeded.
  package var writes: Int { written.load(ordering: .relaxed) }
  /// How many commits took how long: a number for each of `DurationClasses`.
  package var durations: [Int] { durationClasses.indices.map { durationClasses[$0].load(ordering: .relaxed) } }
  /// How long all commits took.
  package var microseconds: Int { durationSum.load(ordering: .relaxed) }
  /// How many groups had how many members: a number for each of ``groupBounds``, and one for more.
  package var groups: [Int] { groupClasses.indices.map { groupClasses[$0].load(ordering: .relaxed) } }
}
