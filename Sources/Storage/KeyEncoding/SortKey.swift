package import DocumentModel
package import WireFormat

/// The place of a document in the order of a query, as bytes that sort.
///
/// The codes of the order's fields, one behind the other, turned over (every bit) where the order descends. Codes end
/// themselves, so turning over keeps them apart; a path's code does not, and gets ``endOfName`` behind it.
///
/// Of each value as much takes part as an index holds, ``Limits/indexedValueBytesMax``: values that agree so far stand
/// by what follows in the order, whether entries or a sort give it.
package enum SortKey {
  /// Below every label of a segment.
  package static let endOfName: UInt8 = 0x00

  /// Appends the key of a document with a ``NameCode``; returns `false` where it lacks a field of the order and so is
  /// no result.
  package static func append(
    _ orders: [Order], _ fields: EncodedMap, name: [UInt8], to key: inout [UInt8]
  ) throws(WireError) -> Bool {
    for order in orders {
      let start = key.count
      if order.path.isDocumentName {
        key.append(contentsOf: name)
        key.append(endOfName)
      } else {
        guard let value = try fields.value(at: order.path) else { return false }
        try OrderedCode.append(value, to: &key, budget: Limits.indexedValueBytesMax)
      }
      if order.isDescending { invert(&key, from: start) }
    }
    return true
  }

  /// Turns bytes over.
  package static func invert(_ key: inout [UInt8], from start: Int) {
    for index in start..<key.count { key[index] = ~key[index] }
  }

  /// Whether a key lies at or behind a start bound, and at or before an end bound.
  ///
  /// A bound may name fewer fields than the key: what agrees with all of them is equal to it.
  package static func isWithin(_ key: [UInt8], start: SortBound?, end: SortBound?) -> Bool {
    if let start {
      let order = compare(key, toPrefix: start.code)
      if order == .less || (order == .equal && !start.isBefore) { return false }
    }
    if let end {
      let order = compare(key, toPrefix: end.code)
      if order == .greater || (order == .equal && end.isBefore) { return false }
    }
    return true
  }

  private static func compare(_ key: [UInt8], toPrefix prefix: [UInt8]) -> Ordering {
    key.starts(with: prefix) ? .equal : Ordering.raw(key, prefix)
  }
}

/// A position in the order of a query: the codes of its first fields, each turned over where the order descends.
package struct SortBound: Sendable {
  /// The first bytes of the ``SortKey`` of what stands at the position.
  package var code: [UInt8]
  /// Whether the position lies before what stands there, else behind it.
  package var isBefore: Bool

  /// The code in ascending form, where all fields of the order have one direction.
  package func plain(isDescending: Bool) -> [UInt8] { isDescending ? code.map { ~$0 } : code }

  /// Creates a position.
  package init(code: [UInt8], isBefore: Bool) {
    self.code = code
    self.isBefore = isBefore
  }

  /// The position behind a document, or where one would stand, in an order by name.
  package static func behind(_ path: ResourcePath) -> SortBound {
    SortBound(code: NameCode.encode(path) + [SortKey.endOfName], isBefore: false)
  }
}
