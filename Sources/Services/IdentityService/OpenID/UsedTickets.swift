/// The IDs of tickets that were used, until they end. Memory is bounded: if there are too many, the one that was used
/// first is forgotten. Cost: a constant time for each ticket, however many are remembered.
struct UsedTickets {
  private var expiries: [String: Int64] = [:]
  /// The IDs in the order of their use. Those before ``start`` are forgotten.
  private var order: [String] = []
  private var start = 0
  private let countMax: Int

  init(countMax: Int) { self.countMax = countMax }

  /// The number of remembered tickets.
  var count: Int { expiries.count }

  /// Remembers a ticket until it ends. Returns false if it was used before.
  mutating func use(_ id: String, until expirySeconds: Int64, nowSeconds: Int64) -> Bool {
    while start < order.count, (expiries[order[start]] ?? 0) <= nowSeconds { forgetFirst() }
    guard expiries[id] == nil else { return false }
    while expiries.count >= countMax { forgetFirst() }
    if start > countMax {
      order.removeFirst(start)
      start = 0
    }
    expiries[id] = expirySeconds
    order.append(id)
    return true
  }

  private mutating func forgetFirst() {
    expiries[order[start]] = nil
    start += 1
  }
}
