/// The documents and index entries that a query has read.
package struct QueryCost: Equatable, Sendable {
  /// Documents that were read from the store.
  package var documents = 0
  /// Index entries that were read.
  package var entries = 0

  /// A query that has not read anything.
  package init() {}
}

/// Measures the work of one slice and reports when the slice has done enough.
///
/// One unit is about a tenth of a microsecond.
struct SliceBudget {
  private(set) var work: QueryCost
  private var left: Int

  /// Starts a slice of about `units` units. The cost is added to that of earlier slices, `work`.
  init(units: Int, after work: QueryCost = QueryCost()) {
    left = units
    self.work = work
  }

  /// Whether the slice has used up its units.
  var isSpent: Bool { left <= 0 }

  /// The number of entries that may be read in one go without making the slice too long.
  var entriesLeft: Int { max(1, left) }

  mutating func readEntries(_ count: Int = 1) {
    work.entries += count
    left -= count
  }

  mutating func readDocument(bytes: Int) {
    work.documents += 1
    left -= 8 + bytes >> 8
  }

  /// Counts a step that reads neither a document nor an entry, such as a row of the catalog.
  mutating func passed() { left -= 2 }
}

/// The outcome of one step of an iterator.
enum IteratorStep {
  /// The iterator is at a candidate.
  case found
  /// The slice has used up its units. The next slice continues from here.
  case paused
  /// No candidates are left.
  case end
}
