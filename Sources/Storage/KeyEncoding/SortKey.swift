package import DocumentModel
package import WireFormat

/// The encoding of a document's position in the order of a query, as bytes that sort.
///
/// The key concatenates the codes of the order's fields, with every bit inverted for a descending field. Codes are
/// self-delimiting, so inverted codes remain distinct. The code of a path is not, so ``endOfName`` follows it.
///
/// A value takes part only as far as an index entry holds it, ``Limits/indexedValueBytesMax``. Values that agree
/// that far are ordered by the next part of the order, both in index entries and in a sort.
package enum SortKey {
  /// Ends a name. It sorts below every label of a segment.
  package static let endOfName: UInt8 = 0x00

  /// Appends the key of a document, given the ``NameCode`` of its path. Returns `false` if the document lacks a
  /// field of the order and so is not a result.
  /// - Throws: ``WireError`` if the stored bytes are not valid fields.
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

  /// Inverts every bit from an offset on.
  package static func invert(_ key: inout [UInt8], from start: Int) {
    for index in start..<key.count { key[index] = ~key[index] }
  }

  /// Returns whether a key lies between two positions.
  ///
  /// A position may have fewer fields than the key. It equals every key that agrees with all of its fields.
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

/// A position in the order of a query: the codes of the first fields, each inverted if its order descends.
package struct SortBound: Sendable {
  /// The first bytes of the ``SortKey`` of the documents at the position.
  package var code: [UInt8]
  /// Whether the position lies before the documents with this key, rather than after them.
  package var isBefore: Bool

  /// Returns the code in ascending form. All fields of the order must have the same direction.
  package func plain(isDescending: Bool) -> [UInt8] { isDescending ? code.map { ~$0 } : code }

  package init(code: [UInt8], isBefore: Bool) {
    self.code = code
    self.isBefore = isBefore
  }

  /// Returns the position after a document in name order, whether the document exists or not.
  package static func after(_ path: ResourcePath) -> SortBound {
    SortBound(code: NameCode.encode(path) + [SortKey.endOfName], isBefore: false)
  }
}
