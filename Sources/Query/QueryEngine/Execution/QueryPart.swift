import DocumentModel
import DocumentStore
import KeyEncoding
import KeyValue

/// A part of a query that scans the names of one collection: the documents in a range of names.
///
/// Several executions of the query, each restricted to one of its parts, together find what one execution finds.
package struct QueryPart: Sendable {
  let range: NameRange

  /// Divides the documents of a collection after one of them into at most `countMax` parts, in name order. The bounds are
  /// names of documents that exist. The parts have similar sizes if names are spread evenly. Cost: some seeks for each
  /// part.
  /// - Parameters:
  ///   - number: the number of the collection in the store.
  ///   - code: the ``NameCode`` of its path.
  ///   - first: the ID after which the parts begin, as ``OrderedCode/append(lastID:to:)`` writes it.
  /// - Throws: ``StorageError`` if a read fails.
  static func parts(
    of number: UInt64, code: [UInt8], after first: [UInt8], _ snapshot: any KeyValueSnapshot, countMax: Int
  ) throws(StorageError) -> [QueryPart] {
    var key = StorageKey()
    key.begin(.documents)
    key.append(number: number)
    let divider = NameDivider(cursor: try snapshot.makeCursor(), prefix: key.bytes)
    guard let last = try divider.last(), Ordering.raw(first, last) == .less else { return [] }
    var bounds = [first, last]
    while 2 * (bounds.count - 1) <= countMax {
      var halved = [first]
      for (low, high) in zip(bounds, bounds.dropFirst()) {
        if let middle = try divider.middle(between: low, and: high) { halved.append(middle) }
        halved.append(high)
      }
      guard halved.count > bounds.count else { break }
      bounds = halved
    }
    let names = bounds.map { id in
      var name = code
      id.withUnsafeBytes { OrderedCode.append(segmentOfLastID: $0, to: &name) }
      return name
    }
    return names.indices.dropLast().map { index in
      var range = NameRange()
      range.raise(to: index == 0 ? NameRange.key(after: names[0]) : NameRange.key(names[index]))
      // The last part has no upper bound: documents after the last one may have existed at the version of the query.
      if index + 2 < names.count { range.reduce(to: NameRange.key(names[index + 1])) }
      return QueryPart(range: range)
    }
  }
}

/// Finds documents between others, by the bytes of their IDs.
private struct NameDivider {
  let cursor: any KeyValueCursor
  let prefix: [UInt8]

  /// The number of times that a range is narrowed to the documents in it.
  private static let attemptsMax = 8

  /// Returns the last ID of the collection, or `nil` if it has no documents.
  func last() throws(StorageError) -> [UInt8]? {
    let end = QueryPlanner.successor(of: prefix)
    return try seek { (cursor) throws(StorageError) in
      try Self.lend(end) { (key) throws(StorageError) in try cursor.seek(before: key) }
    }
  }

  /// Returns the ID of a document between two others, or `nil` if it finds none.
  func middle(between low: [UInt8], and end: [UInt8]) throws(StorageError) -> [UInt8]? {
    var high = end
    for _ in 0..<Self.attemptsMax {
      let probe = prefix + Self.middle(low, high)
      let after = try seek { (cursor) throws(StorageError) in
        try Self.lend(probe) { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
      }
      if let after, Ordering.raw(low, after) == .less, Ordering.raw(after, high) == .less { return after }
      // No document is in the upper half.
      let before = try seek { (cursor) throws(StorageError) in
        try Self.lend(probe) { (key) throws(StorageError) in try cursor.seek(before: key) }
      }
      guard let before, Ordering.raw(low, before) == .less, Ordering.raw(before, high) == .less else { break }
      high = before
    }
    return high == end ? nil : high
  }

  /// Returns bytes about halfway between two others, which differ.
  private static func middle(_ low: [UInt8], _ high: [UInt8]) -> [UInt8] {
    let common = zip(low, high).prefix { $0 == $1 }.count
    func number(_ bytes: [UInt8]) -> UInt64 {
      (0..<8).reduce(0) { $0 << 8 | UInt64(common + $1 < bytes.count ? bytes[common + $1] : 0) }
    }
    let (from, to) = (number(low), number(high))
    let half = from + (to - min(from, to)) / 2
    return low[..<common] + (0..<8).map { UInt8(truncatingIfNeeded: half >> (56 - 8 * UInt64($0))) }
  }

  /// Moves the cursor and returns the ID at which it is, or `nil` outside the collection.
  private func seek(_ move: (any KeyValueCursor) throws(StorageError) -> Bool) throws(StorageError) -> [UInt8]? {
    guard try move(cursor), cursor.key.starts(with: prefix) else { return nil }
    return Array(cursor.key.dropFirst(prefix.count))
  }

  private static func lend(
    _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(StorageError) -> Bool
  ) throws(StorageError) -> Bool {
    // `withUnsafeBytes` rethrows untyped errors, so the outcome is returned as a value.
    try bytes.withUnsafeBytes { bytes -> Result<Bool, StorageError> in
      do throws(StorageError) { return .success(try body(bytes)) } catch { return .failure(error) }
    }.get()
  }
}
