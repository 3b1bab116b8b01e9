import Basics
import DocumentModel
import Synchronization

/// Counts of commits since the start of the server, over all databases.
package final class CommitCounters: Sendable {
  /// How a commit ended.
  package enum Outcome: Int, CaseIterable, Sendable {
    /// Durable.
    case ok
    /// The transaction conflicted with another commit.
    case aborted
    /// Denied by security rules.
    case denied
    /// A precondition failed, a limit was exceeded, or the store failed.
    case failed
  }

  /// The upper bounds of the classes of ``groups``.
  package static let groupBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048]

  private let outcomes = InlineArray<4, Atomic<Int>> { _ in Atomic(0) }
  private let durationClasses = InlineArray<16, Atomic<Int>> { _ in Atomic(0) }
  private let groupClasses = InlineArray<13, Atomic<Int>> { _ in Atomic(0) }
  private let durationSum = Atomic(0)
  private let written = Atomic(0)

  /// Creates counters that start at 0.
  package init() {
    // The sizes in the types are literals, so check them against the counts.
    precondition(outcomes.count == Outcome.allCases.count, "one counter is needed per outcome")
    precondition(durationClasses.count == DurationClasses.count, "one counter is needed per duration class")
    precondition(groupClasses.count == Self.groupBounds.count + 1, "one counter per bound and one more are needed")
  }

  /// Counts a group of `members` commits.
  func count(group members: Int) {
    groupClasses[Self.groupBounds.count { members > $0 }].wrappingAdd(1, ordering: .relaxed)
  }

  /// Counts one commit: its result, its number of writes, and the microseconds since it was submitted.
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

  /// The number of commits with an outcome.
  package subscript(outcome: Outcome) -> Int { outcomes[outcome.rawValue].load(ordering: .relaxed) }
  /// The number of writes in commits that succeeded.
  package var writes: Int { written.load(ordering: .relaxed) }
  /// The number of commits in each of the `DurationClasses`.
  package var durations: [Int] { durationClasses.indices.map { durationClasses[$0].load(ordering: .relaxed) } }
  /// The total duration of all commits, in microseconds.
  package var microseconds: Int { durationSum.load(ordering: .relaxed) }
  /// The number of groups in each size class: one for each of ``groupBounds``, then one for larger groups.
  package var groups: [Int] { groupClasses.indices.map { groupClasses[$0].load(ordering: .relaxed) } }
}
