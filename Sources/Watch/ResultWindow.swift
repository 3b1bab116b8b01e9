import DocumentModel

/// The first results of a query in order, up to a place behind the last that is shown.
///
/// It knows everything up to its last entry, and where it is complete everything there is. What lies behind the places
/// shown is slack: it moves up when documents leave, so that the query need not be run for each.
struct ResultWindow: Sendable {
  /// A result.
  struct Entry: Equatable, Sendable {
    /// Its place in the order, different for each.
    var place: [UInt8]
    /// Where it is.
    var path: ResourcePath
  }

  /// The places that are shown.
  let places: Range<Int>
  /// The results, in order.
  private(set) var entries: [Entry]
  /// Whether there are no more results than these.
  private(set) var isComplete: Bool

  /// Takes results in order, the first ``capacity(_:)`` or all there are.
  init(_ places: Range<Int>, _ entries: [Entry]) {
    self.places = places
    self.entries = entries
    isComplete = entries.count < Self.capacity(places)
  }

  /// How many results a window of some places starts with.
  static func capacity(_ places: Range<Int>) -> Int { places.upperBound + slack(places) }

  private static func slack(_ places: Range<Int>) -> Int { min(max(places.count / 2, 8), 100) }

  /// The results that are shown.
  var shown: [ResourcePath] { entries.dropFirst(places.lowerBound).prefix(places.count).map(\.path) }

  /// Whether more results left than there was slack, so that the query has to be run.
  var isShort: Bool { !isComplete && entries.count < places.upperBound }

  /// Puts a result in its place, where that is known. One that is there already stays as it is.
  mutating func insert(_ entry: Entry) {
    let index = firstIndex(atOrAfter: entry.place)
    if index < entries.count {
      if entries[index].place == entry.place { return }
    } else if !isComplete {
      // Others that are not known may come before it.
      return
    }
    entries.insert(entry, at: index)
    if entries.count > Self.capacity(places) + Self.slack(places) {
      entries.removeLast(entries.count - Self.capacity(places))
      isComplete = false
    }
  }

  /// Takes a result out, if it is there. Cost: a search by place.
  mutating func remove(place: [UInt8]) {
    let index = firstIndex(atOrAfter: place)
    if index < entries.count, entries[index].place == place { entries.remove(at: index) }
  }

  /// Takes a result out whose place is not known. Cost: a look at every entry.
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
