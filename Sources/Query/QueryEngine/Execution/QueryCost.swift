/// What running a query cost.
package struct QueryCost: Equatable, Sendable {
  /// Documents that were read from the store.
  package var documents = 0
  /// Index entries that were read.
  package var entries = 0

  /// No work.
  package init() {}
}

/// Measures the work of one slice and says when it is enough.
///
/// A unit is about a tenth of a microsecond.
struct SliceBudget {
  private(set) var work: QueryCost
  private var left: Int

  /// Starts a slice of about so many units, on top of the work done before it.
  init(units: Int, after work: QueryCost = QueryCost()) {
    left = units
    self.work = work
  }

  /// Whether the slice is at its end.
  var isSpent: Bool { left <= 0 }

  /// Entries that may be read now in one go: few enough that the slice stays short.
  var entriesLeft: Int { max(1, left) }

  mutating func readEntries(_ count: Int = 1) {
    work.entries += count
    left -= count
  }

  mutating func readDocument(bytes: Int) {
    work.documents += 1
    left -= 8 + bytes >> 8
  }

  /// Counts what is neither, such as a row of the catalogue.
  mutating func passed() { left -= 2 }
}

/// What a step of a source came to.
enum IteratorStep {
  /// There is a candidate.
  case found
  /// The slice is spent; the next one goes on from here.
  case paused
  /// There are no more candidates.
  case end
}
