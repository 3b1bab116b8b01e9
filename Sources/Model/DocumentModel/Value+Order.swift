/// The position of a value's type in the order of all values (firestore-api.md, section 3).
package enum TypeBracket: UInt8, Comparable, Sendable {
  case null = 5
  case minKey = 7
  case boolean = 10
  case nan = 13
  case number = 15
  case timestamp = 20
  case bsonTimestamp = 22
  case string = 25
  case bytes = 30
  case binary = 32
  case reference = 37
  case objectID = 40
  case geoPoint = 45
  case regex = 47
  case array = 50
  case vector = 53
  case map = 55
  case maxKey = 60

  package static func < (a: TypeBracket, b: TypeBracket) -> Bool { a.rawValue < b.rawValue }
}

extension MapValue {
  fileprivate var bracket: TypeBracket {
    if vectorComponents != nil { return .vector }
    guard let (type, content) = bson else { return .map }
    if type == .decimal128, case .string(let text) = content { return BSONType.number(decimal: text.utf8).bracket }
    return type.bracket
  }
}

extension Value {
  /// The bracket that this value sorts in. NaN has its own bracket, below all other numbers.
  package var bracket: TypeBracket {
    switch self {
    case .null: .null
    case .boolean: .boolean
    case .integer: .number
    case .double(let number): number.isNaN ? .nan : .number
    case .timestamp: .timestamp
    case .string: .string
    case .bytes: .bytes
    case .reference: .reference
    case .geoPoint: .geoPoint
    case .array: .array
    case .map(let map): map.bracket
    }
  }

  /// Compares two values in the total order across types.
  ///
  /// Numbers with the same mathematical value are equal (`1` and `1.0`, `0.0` and `-0.0`), and so are all NaN
  /// values. Cost: linear in the size of the smaller value.
  package static func compare(_ a: Value, _ b: Value) -> Ordering {
    let (x, y) = (a.bracket, b.bracket)
    guard x == y else { return Ordering(x, y) }
    switch (a.compared, b.compared) {
    case (.boolean(let p), .boolean(let q)): return Ordering(p ? 1 : 0, q ? 1 : 0)
    case (.integer(let p), .integer(let q)): return Ordering(p, q)
    case (.double(let p), .double(let q)): return p.isNaN ? .equal : Ordering(p, q)
    case (.integer(let p), .double(let q)): return compare(p, q)
    case (.double(let p), .integer(let q)): return compare(q, p).reversed
    case (.timestamp(let p), .timestamp(let q)): return Ordering(p, q)
    case (.string(let p), .string(let q)): return Ordering.bytes(p.utf8, q.utf8)
    case (.bytes(let p), .bytes(let q)): return Ordering.bytes(p, q)
    case (.reference(let p), .reference(let q)): return compareReferences(p, q)
    case (.geoPoint(let p), .geoPoint(let q)): return compare(p, q)
    case (.array(let p), .array(let q)): return compare(p, q)
    case (.map(let p), .map(let q)):
      // The BSON values that `compared` leaves are maps with one key, so they compare as maps. A regex or a
      // timestamp is different: its parts have an order of their own.
      if x == .regex { return compareRegexes(p, q) }
      if x == .bsonTimestamp { return compareTimestamps(p, q) }
      guard let left = p.vectorComponents, let right = q.vectorComponents else { return compare(p, q) }
      return left.count == right.count ? compare(left, right) : Ordering(left.count, right.count)
    default: return .equal
    }
  }

  /// The value to compare in place of this one. For a BSON number, that is an ordinary number.
  private var compared: Value {
    guard case .map(let map) = self, let (type, content) = map.bson else { return self }
    switch (type, content) {
    case (.int32, .integer): return content
    case (.decimal128, .string(let text)): return BSONType.number(decimal: text.utf8)
    default: return self
    }
  }

  private static func compareRegexes(_ a: MapValue, _ b: MapValue) -> Ordering {
    let order = compareContent(a, b, BSONType.patternKey)
    return order == .equal ? compareContent(a, b, BSONType.optionsKey) : order
  }

  private static func compareTimestamps(_ a: MapValue, _ b: MapValue) -> Ordering {
    let order = compareContent(a, b, BSONType.secondsKey)
    return order == .equal ? compareContent(a, b, BSONType.incrementKey) : order
  }

  private static func compareContent(_ a: MapValue, _ b: MapValue, _ key: String) -> Ordering {
    guard case .map(let x)? = a.bson?.content, case .map(let y)? = b.bson?.content else { return .equal }
    return compare(x[key] ?? .null, y[key] ?? .null)
  }

  /// Compares an integer with a double exactly. The double must not be NaN.
  package static func compare(_ integer: Int64, _ double: Double) -> Ordering {
    // -2^63 and 2^63 are doubles. The integer part of every double between them fits an `Int64`.
    if double >= 0x1p63 { return .less }
    if double < -0x1p63 { return .greater }
    let whole = Int64(double)
    let order = Ordering(integer, whole)
    return order == .equal ? Ordering(0, double - Double(whole)) : order
  }

  /// Compares two points by latitude, then by longitude. NaN equals NaN and is below every number: a client cannot
  /// store it, but damaged bytes can hold it, and the order must stay total.
  package static func compare(_ a: GeoPoint, _ b: GeoPoint) -> Ordering {
    let latitude = compareDegrees(a.latitude, b.latitude)
    return latitude == .equal ? compareDegrees(a.longitude, b.longitude) : latitude
  }

  private static func compareDegrees(_ a: Double, _ b: Double) -> Ordering {
    if a.isNaN || b.isNaN { return Ordering(a.isNaN ? 0 : 1, b.isNaN ? 0 : 1) }
    return Ordering(a, b)
  }

  private static func compare(_ a: [Value], _ b: [Value]) -> Ordering {
    for (x, y) in zip(a, b) {
      let order = compare(x, y)
      if order != .equal { return order }
    }
    return Ordering(a.count, b.count)
  }

  private static func compare(_ a: MapValue, _ b: MapValue) -> Ordering {
    for (x, y) in zip(a.entries, b.entries) {
      let keys = Ordering.bytes(x.key.utf8, y.key.utf8)
      if keys != .equal { return keys }
      let values = compare(x.value, y.value)
      if values != .equal { return values }
    }
    return Ordering(a.entries.count, b.entries.count)
  }

  /// Compares document names segment by segment: project, database, then the path in name order.
  private static func compareReferences(_ a: String, _ b: String) -> Ordering {
    let slash = UInt8(ascii: "/")
    var left = a.utf8.split(separator: slash, omittingEmptySubsequences: false).makeIterator()
    var right = b.utf8.split(separator: slash, omittingEmptySubsequences: false).makeIterator()
    while true {
      switch (left.next(), right.next()) {
      case (nil, nil): return .equal
      case (nil, _?): return .less
      case (_?, nil): return .greater
      case (let x?, let y?):
        let order = ResourceID.compare(x, y)
        if order != .equal { return order }
      }
    }
  }
}
