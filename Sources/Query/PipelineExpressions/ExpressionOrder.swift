import DocumentModel
import KeyEncoding
import WireFormat

/// The order and equality of computed values (pipelines.md, section 2).
enum ExpressionOrder {
  /// Whether two values are equal: numbers by value, NaN equals itself, and absent differs from null.
  @inline(__always)
  static func equal(_ a: ExpressionValue, _ b: ExpressionValue) -> Bool {
    switch (a, b) {
    case (.integer(let x), .integer(let y)): x == y
    case (.string(let x), .string(let y)): x.count == y.count && EncodedMap.compare(x, y) == .equal
    case (.absent, .absent): true
    case (.absent, _), (_, .absent): false
    default: compare(a, b) == .equal
    }
  }

  /// Compares values of one type, as `less_than` does. Returns `nil` if the types differ. Null, NaN and absent are
  /// types of their own.
  @inline(__always)
  static func strict(_ a: ExpressionValue, _ b: ExpressionValue) -> Ordering? {
    switch (a, b) {
    case (.integer(let x), .integer(let y)): return Ordering(x, y)
    case (.string(let x), .string(let y)): return EncodedMap.compare(x, y)
    case (.absent, .absent): return .equal
    case (.absent, _), (_, .absent): return nil
    default: return bracket(a) == bracket(b) ? compare(a, b) : nil
    }
  }

  /// Compares in the full order of `sort`, in which absent counts as null. Errors must not be compared.
  ///
  /// Cost: linear in the smaller value. Recurses as deep as the values nest, at most
  /// ``ExpressionLimits/valueDepthMax`` levels.
  static func compare(_ a: ExpressionValue, _ b: ExpressionValue) -> Ordering {
    switch (a, b) {
    case (.integer(let x), .integer(let y)): return Ordering(x, y)
    case (.string(let x), .string(let y)), (.bytes(let x), .bytes(let y)): return EncodedMap.compare(x, y)
    case (.boolean(let x), .boolean(let y)): return Ordering(x ? 1 : 0, y ? 1 : 0)
    case (.timestamp(let x), .timestamp(let y)): return Ordering(x, y)
    default: break
    }
    let (left, right) = (bracket(a), bracket(b))
    guard left == right else { return Ordering(left, right) }
    switch (a, b) {
    case (.double(let x), .double(let y)): return x.isNaN ? .equal : Ordering(x, y)
    case (.integer(let x), .double(let y)): return Value.compare(x, y)
    case (.double(let x), .integer(let y)): return Value.compare(y, x).reversed
    case (.reference(let x), .reference(let y)): return compareReferences(x, y)
    case (.geoPoint(let x), .geoPoint(let y)): return Value.compare(x, y)
    case (.vector(let x), .vector(let y)): return compareVectors(x, y)
    case (.bson, _), (_, .bson): return compareBSON(a, b)
    default: break
    }
    switch left {
    case .array: return compareArrays(a, b)
    case .map: return compareMaps(a, b)
    default: return .equal
    }
  }

  /// The position of the value's type in the full order.
  static func bracket(_ value: ExpressionValue) -> TypeBracket {
    switch value {
    case .error, .absent, .null: .null
    case .boolean: .boolean
    case .integer: .number
    case .double(let number): number.isNaN ? .nan : .number
    case .timestamp: .timestamp
    case .string: .string
    case .bytes: .bytes
    case .reference: .reference
    case .geoPoint: .geoPoint
    case .array, .encodedArray: .array
    case .map, .encodedMap: .map
    case .vector: .vector
    case .bson(let bytes): bracketOfBSON(value, bytes)
    }
  }

  private static func bracketOfBSON(_ value: ExpressionValue, _ bytes: UnsafeRawBufferPointer) -> TypeBracket {
    let number = value.ordinary
    if case .bson = number {
      return (try? EncodedMap(mapValue: bytes).bson)?.type.bracket ?? .map
    }
    return bracket(number)
  }

  /// The steps that a comparison with the value may take, for the budget of work.
  static func cost(_ value: ExpressionValue) -> Int {
    switch value {
    case .string(let bytes), .bytes(let bytes), .reference(let bytes), .encodedArray(let bytes),
      .encodedMap(let bytes), .vector(let bytes), .bson(let bytes):
      8 + bytes.count >> 2
    case .array(let items): 8 + 32 * items.count
    case .map(let entries): 8 + 48 * entries.count
    default: 8
    }
  }

  private static func compareArrays(_ a: ExpressionValue, _ b: ExpressionValue) -> Ordering {
    var left = ExpressionItems(a)
    var right = ExpressionItems(b)
    while true {
      switch (left.next(), right.next()) {
      case (nil, nil): return .equal
      case (nil, _?): return .less
      case (_?, nil): return .greater
      case (let x?, let y?):
        let order = compare(x, y)
        if order != .equal { return order }
      }
    }
  }

  private static func compareMaps(_ a: ExpressionValue, _ b: ExpressionValue) -> Ordering {
    var left = ExpressionEntries(a)
    var right = ExpressionEntries(b)
    while true {
      switch (left.next(), right.next()) {
      case (nil, nil): return .equal
      case (nil, _?): return .less
      case (_?, nil): return .greater
      case (let x?, let y?):
        let keys = EncodedMap.compare(x.key, y.key)
        if keys != .equal { return keys }
        let order = compare(x.value, y.value)
        if order != .equal { return order }
      }
    }
  }

  private static func compareVectors(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Ordering {
    guard let left = (try? EncodedMap(mapValue: a).vectorComponents) ?? nil,
      let right = (try? EncodedMap(mapValue: b).vectorComponents) ?? nil
    else { return EncodedMap.compare(a, b) }
    let counts = Ordering((try? left.count) ?? 0, (try? right.count) ?? 0)
    return counts == .equal ? compareArrays(.encodedArray(left.bytes), .encodedArray(right.bytes)) : counts
  }

  /// Compares document names segment by segment, numeric IDs by their number.
  private static func compareReferences(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Ordering {
    var left = a[...]
    var right = b[...]
    let slash = UInt8(ascii: "/")
    while true {
      let x = left.prefix { $0 != slash }
      let y = right.prefix { $0 != slash }
      let order: Ordering
      if x.first == UInt8(ascii: "_") || y.first == UInt8(ascii: "_") {
        order = ResourceID.compare(x, y)
      } else {
        order = EncodedMap.compare(UnsafeRawBufferPointer(rebasing: x), UnsafeRawBufferPointer(rebasing: y))
      }
      if order != .equal { return order }
      left = left.dropFirst(x.count)
      right = right.dropFirst(y.count)
      guard !left.isEmpty, !right.isEmpty else { return Ordering(left.count, right.count) }
      left.removeFirst()
      right.removeFirst()
    }
  }

  /// Compares values of one bracket of which at least one is a BSON value.
  private static func compareBSON(_ a: ExpressionValue, _ b: ExpressionValue) -> Ordering {
    let (left, right) = (a.ordinary, b.ordinary)
    if case .bson = left, case .bson = right {
      var (x, y): ([UInt8], [UInt8]) = ([], [])
      guard ExpressionWriter.appendSortKey(left, to: &x), ExpressionWriter.appendSortKey(right, to: &y) else {
        return .equal
      }
      return Ordering.raw(x, y)
    }
    // Numbers are ordinary now, and other BSON values have brackets of their own.
    if case .bson = left { return .equal }
    if case .bson = right { return .equal }
    return compare(left, right)
  }
}
