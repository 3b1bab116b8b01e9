package import DocumentModel

/// The shape of a query: everything but its values. Queries that need the same indexes have equal shapes.
///
/// The shape is a 64-bit hash with a per-process seed. Two different shapes collide with a probability of about
/// 2⁻⁶⁴.
package struct QueryShape: Hashable, Sendable {
  private let hash: Int

  /// Takes the shape of a query, its database and the fields aggregated over its results.
  ///
  /// Cost: one pass over the names in the query, no allocation.
  package init(_ query: Query, aggregated: [FieldPath] = [], in database: DatabaseID) {
    var hasher = Hasher()
    hasher.combine(text: database.project)
    hasher.combine(text: database.database)
    hasher.combine(query.includesDescendants)
    hasher.combine(text: query.collectionID ?? "")
    if let filter = query.filter { hasher.combine(filter) }
    hasher.combine(UInt8(1))
    for order in query.orders {
      hasher.combine(order.path)
      hasher.combine(order.isDescending)
    }
    hasher.combine(UInt8(2))
    for field in aggregated { hasher.combine(field) }
    if let search = query.findNearest {
      hasher.combine(search.field)
      hasher.combine(search.vector.count)
    }
    hash = hasher.finalize()
  }
}

extension Hasher {
  fileprivate mutating func combine(text: String) {
    var copy = text
    copy.withUTF8 { combine(bytes: UnsafeRawBufferPointer($0)) }
    combine(UInt8(0xFF))
  }

  /// Hashes the fields and operators of a filter. A list of values counts as one value.
  fileprivate mutating func combine(_ filter: QueryFilter) {
    switch filter {
    case .field(let path, let op, _):
      combine(UInt8(op.rawValue))
      combine(path)
    case .unary(let path, let op):
      combine(UInt8(0x20 | op.rawValue))
      combine(path)
    case .and(let filters), .or(let filters):
      if case .and = filter { combine(UInt8(0x40)) } else { combine(UInt8(0x41)) }
      for filter in filters { combine(filter) }
      combine(UInt8(0x42))
    }
  }
}
