import Synchronization

/// The indexes that a planner chose for queries, by a hash of the shape of the query.
///
/// They belong to one ``IndexCatalog``. If the indexes of the database change, the next catalog begins with none.
/// Memory: at most ``countMax`` shapes; the table is emptied if more come.
package final class IndexChoices: Sendable {
  /// The most shapes that are kept.
  package static let countMax = 256

  private let table = Mutex<[Int: [StoredIndex]]>([:])

  /// Returns the indexes of a shape, or `nil` if none are kept. Cost: a short lock and a lookup.
  package func indexes(of shape: Int) -> [StoredIndex]? { table.withLock { $0[shape] } }

  /// Keeps the indexes of a shape.
  package func set(_ indexes: [StoredIndex], of shape: Int) {
    table.withLock { table in
      if table.count >= Self.countMax, table[shape] == nil { table.removeAll() }
      table[shape] = indexes
    }
  }
}
