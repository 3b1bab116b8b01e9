/// Ids in the order in which they were used. Every call costs O(1).
struct RecencyList {
  private struct Links {
    var older: String?
    var newer: String?
  }

  private var links: [String: Links] = [:]
  /// The one that was longest without use.
  private(set) var oldest: String?
  private var newest: String?

  /// How many there are.
  var count: Int { links.count }

  /// Adds an id that is not there as the one used last.
  mutating func append(_ id: String) {
    links[id] = Links(older: newest)
    if let newest { links[newest]?.newer = id } else { oldest = id }
    newest = id
  }

  /// Takes an id out, if it is there.
  mutating func remove(_ id: String) {
    guard let gone = links.removeValue(forKey: id) else { return }
    if let older = gone.older { links[older]?.newer = gone.newer } else { oldest = gone.newer }
    if let newer = gone.newer { links[newer]?.older = gone.older } else { newest = gone.older }
  }
}
