import DocumentModel

/// The first results of a query in order, up to some position after the last one shown.
///
/// A window contains all results up to its last entry; if it is complete, it contains all results. The results after
/// the shown ones are slack: they take the places of documents that leave, so that the query need not run each time.
struct ResultWindow: Sendable {
  /// A result.
  struct Entry: Equatable, Sendable {
    /// The position of the result in the order, unique to each result.
    var place: [UInt8]
    /// The path of the document.
    var path: ResourcePath
  }

  /// The positions of the shown results, counted from 0.
  let places: Range<Int>
  /// The results, in order.
  private(set) var entries: [Entry]
  /// Whether the entries are all results of the query.
  private(set) var isComplete: Bool

  /// Takes results in order: the first ``capacity(_:)``, or all results if there are fewer.
  init(_ places: Range<Int>, _ entries: [Entry]) {
    self.places = places
    self.entries = entries
    isComplete = entries.count < Self.capacity(places)
  }

  /// The initial number of results in a window that shows these positions.
  static func capacity(_ places: Range<Int>) -> Int { places.upperBound + slack(places) }

  private static func slack(_ places: Range<Int>) -> Int { min(max(places.count / 2, 8), 100) }

  /// The results that are shown.
  var shown: [ResourcePath] { entries.dropFirst(places.lowerBound).prefix(places.count).map(\.path) }

  /// Whether more results have left than there was slack, so that the query must run again.
  var isShort: Bool { !isComplete && entries.count < places.upperBound }

  /// Inserts a result if its position is known. A result that is already present does not change.
  mutating func insert(_ entry: Entry) {
    let index = firstIndex(atOrAfter: entry.place)
    if index < entries.count {
      if entries[index].place == entry.place { return }
    } else if !isComplete {
      // Results that are not in the window may precede it.
      return
    }
    entries.insert(entry, at: index)
    if entries.count > Self.capacity(places) + Self.slack(places) {
      entries.removeLast(entries.count - Self.capacity(places))
      isComplete = false
    }
  }

  /// Removes a result, if present. Cost: a binary search by position.
  mutating func remove(place: [UInt8]) {
    let index = firstIndex(atOrAfter: place)
    if index < entries.count, entries[index].place == place { entries.remove(at: index) }
  }

  /// Removes a result whose position is not known. Cost: a pass over all entries.
  mutating func remove(_ path: ResourcePath) { entries.removeAll { $0.path == path } }

  private func firstIndex(atOrAfter place: [UInt8]) -> Int {
    var low = 0
    var high = entries.count
    while low < high {
      let middle = (low + high) / 2
      if Ordering.raw(entries[middle].place, place) == .less { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
