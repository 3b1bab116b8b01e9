/// A list of IDs in the order of their last use. Every call costs O(1).
struct RecencyList {
  private struct Links {
    var older: String?
    var newer: String?
  }

  private var links: [String: Links] = [:]
  /// The ID whose last use is the longest ago.
  private(set) var oldest: String?
  private var newest: String?

  /// The number of IDs.
  var count: Int { links.count }

  /// Adds an ID that is not in the list as the most recently used.
  mutating func append(_ id: String) {
    links[id] = Links(older: newest)
    if let newest { links[newest]?.newer = id } else { oldest = id }
    newest = id
  }

  /// Removes an ID if it is in the list.
  mutating func remove(_ id: String) {
    guard let gone = links.removeValue(forKey: id) else { return }
    if let older = gone.older { links[older]?.newer = gone.newer } else { oldest = gone.newer }
    if let newer = gone.newer { links[newer]?.older = gone.older } else { newest = gone.older }
  }
}
