import Foundation

/// The server's order of values (firestore-api.md, section 3). A listener sorts its results by it.
enum ValueOrder {
  /// Returns a negative number if `a` precedes `b`, a positive number if it follows `b`, or 0.
  static func compare(_ a: Value, _ b: Value) -> Int {
    let difference = rank(a) - rank(b)
    if difference != 0 { return difference }
    switch (a, b) {
    case (.boolean(let a), .boolean(let b)): return (a ? 1 : 0) - (b ? 1 : 0)
    case (.integer(let a), .integer(let b)): return sign(a, b)
    case (.double(let a), .double(let b)): return compare(a, b)
    case (.integer(let a), .double(let b)): return compare(a, b)
    case (.double(let a), .integer(let b)): return -compare(b, a)
    case (.timestamp(let a), .timestamp(let b)): return sign(a, b)
    case (.string(let a), .string(let b)): return compare(a.utf8, b.utf8)
    case (.bytes(let a), .bytes(let b)): return compare(a, b)
    case (.reference(let a), .reference(let b)): return compare(a, b)
    case (.geoPoint(let a), .geoPoint(let b)):
      let difference = compare(a.latitude, b.latitude)
      return difference != 0 ? difference : compare(a.longitude, b.longitude)
    case (.array(let a), .array(let b)): return compare(a, b)
    case (.vector(let a), .vector(let b)):
      let difference = a.components.count - b.components.count
      return difference != 0 ? difference : first(zip(a.components, b.components).lazy.map { compare($0, $1) })
    case (.map(let a), .map(let b)): return compare(a, b)
    default: return 0
    }
  }

  private static func rank(_ value: Value) -> Int {
    switch value {
    case .null: 0
    case .boolean: 1
    case .integer, .double: 2
    case .timestamp: 3
    case .string: 4
    case .bytes: 5
    case .reference: 6
    case .geoPoint: 7
    case .array: 8
    case .vector: 9
    case .map: 10
    }
  }

  private static func sign<T: Comparable>(_ a: T, _ b: T) -> Int { a < b ? -1 : a == b ? 0 : 1 }

  /// Returns the first difference other than 0, or 0.
  private static func first(_ differences: some Sequence<Int>) -> Int { differences.first { $0 != 0 } ?? 0 }

  private static func compare(_ a: some Sequence<UInt8>, _ b: some Sequence<UInt8>) -> Int {
    if a.lexicographicallyPrecedes(b) { return -1 }
    return b.lexicographicallyPrecedes(a) ? 1 : 0
  }

  /// Compares doubles. NaN precedes all numbers and equals itself.
  private static func compare(_ a: Double, _ b: Double) -> Int {
    if a.isNaN || b.isNaN { return (a.isNaN ? 0 : 1) - (b.isNaN ? 0 : 1) }
    return sign(a, b)
  }

  /// Compares exactly, even if no double equals the integer.
  private static func compare(_ a: Int, _ b: Double) -> Int {
    if b.isNaN { return 1 }
    if b >= 0x1p63 { return -1 }
    if b < -0x1p63 { return 1 }
    let whole = Int(b.rounded(.towardZero))
    return a != whole ? sign(a, whole) : sign(0, b - b.rounded(.towardZero))
  }

  private static func compare(_ a: [Value], _ b: [Value]) -> Int {
    let difference = first(zip(a, b).lazy.map { compare($0, $1) })
    return difference != 0 ? difference : a.count - b.count
  }

  private static func compare(_ a: [String: Value], _ b: [String: Value]) -> Int {
    let (left, right) = (sorted(a), sorted(b))
    for (l, r) in zip(left, right) {
      let names = compare(l.key.utf8, r.key.utf8)
      if names != 0 { return names }
      let values = compare(l.value, r.value)
      if values != 0 { return values }
    }
    return left.count - right.count
  }

  private static func sorted(_ fields: [String: Value]) -> [(key: String, value: Value)] {
    fields.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }
  }

  /// Compares names segment by segment. Numeric IDs precede the others.
  private static func compare(_ a: DocumentReference, _ b: DocumentReference) -> Int {
    for (a, b) in [(a.client.project, b.client.project), (a.client.database, b.client.database)]
    where !a.hasBytes(of: b) {
      return compare(a.utf8, b.utf8)
    }
    let slash = UInt8(ascii: "/")
    let (left, right) = (a.path.utf8.split(separator: slash), b.path.utf8.split(separator: slash))
    for (l, r) in zip(left, right) {
      let difference: Int
      switch (number(l), number(r)) {
      case (let l?, let r?): difference = sign(l, r)
      case (_?, nil): difference = -1
      case (nil, _?): difference = 1
      case (nil, nil): difference = compare(l, r)
      }
      if difference != 0 { return difference }
    }
    return left.count - right.count
  }

  /// Returns the number of a numeric ID such as `__id7__`, or `nil` for other IDs.
  private static func number(_ id: Substring.UTF8View) -> Int? {
    guard id.starts(with: "__id".utf8), id.count > 6, id.suffix(2).elementsEqual("__".utf8) else { return nil }
    return Int(String(decoding: id.dropFirst(4).dropLast(2), as: UTF8.self))
  }
}
