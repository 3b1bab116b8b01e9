/// The rules for one segment of a path, which is a collection ID or a document ID.
package enum ResourceID {
  /// Returns the number in a numeric ID `__id<int64>__`, or `nil` for any other ID.
  ///
  /// Each number has exactly one ID: leading zeros, `+` and the number 0 are not accepted.
  package static func number(_ id: some Sequence<UInt8>) -> Int64? {
    var iterator = id.makeIterator()
    for expected in "__id".utf8 {
      guard iterator.next() == expected else { return nil }
    }
    var byte = iterator.next()
    let negative = byte == UInt8(ascii: "-")
    if negative { byte = iterator.next() }
    var value: Int64 = 0
    var digits = 0
    var leadingZero = false
    while let digit = byte, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(digit) {
      if digits == 0 { leadingZero = digit == UInt8(ascii: "0") }
      let (product, overflowed) = value.multipliedReportingOverflow(by: 10)
      let step = Int64(digit - UInt8(ascii: "0"))
      let (sum, carried) =
        negative ? product.subtractingReportingOverflow(step) : product.addingReportingOverflow(step)
      guard !overflowed, !carried else { return nil }
      value = sum
      digits += 1
      byte = iterator.next()
    }
    guard digits > 0, !leadingZero else { return nil }
    guard byte == UInt8(ascii: "_"), iterator.next() == UInt8(ascii: "_"), iterator.next() == nil else { return nil }
    return value
  }

  /// Returns whether an ID matches `__.*__`. The service reserves these IDs.
  package static func isReserved(_ id: some BidirectionalCollection<UInt8>) -> Bool {
    let underscore = UInt8(ascii: "_")
    guard id.count >= 4 else { return false }
    let second = id.index(after: id.startIndex)
    let last = id.index(before: id.endIndex)
    return id[id.startIndex] == underscore && id[second] == underscore && id[last] == underscore
      && id[id.index(before: last)] == underscore
  }

  /// Compares two IDs in name order: numeric IDs come first, by number, then all others by their UTF-8 bytes.
  ///
  /// Source: firestore-api.md, section 3.1.
  package static func compare<A: Collection<UInt8>, B: Collection<UInt8>>(_ a: A, _ b: B) -> Ordering {
    switch (number(a), number(b)) {
    case (let x?, let y?): Ordering(x, y)
    case (_?, nil): .less
    case (nil, _?): .greater
    case (nil, nil): Ordering.bytes(a, b)
    }
  }
}

/// The result of a three-way comparison.
package enum Ordering: Int8, Sendable {
  case less = -1
  case equal = 0
  case greater = 1

  /// Compares two values of one type.
  package init<T: Comparable>(_ a: T, _ b: T) {
    self = a < b ? .less : (a == b ? .equal : .greater)
  }

  /// The opposite ordering.
  package var reversed: Ordering {
    switch self {
    case .less: .greater
    case .equal: .equal
    case .greater: .less
    }
  }

  /// Compares bytes as unsigned numbers. A prefix sorts before a longer sequence.
  package static func bytes<A: Collection<UInt8>, B: Collection<UInt8>>(_ a: A, _ b: B) -> Ordering {
    var other = b.makeIterator()
    for byte in a {
      guard let otherByte = other.next() else { return .greater }
      if byte != otherByte { return byte < otherByte ? .less : .greater }
    }
    return other.next() == nil ? .equal : .less
  }
}
