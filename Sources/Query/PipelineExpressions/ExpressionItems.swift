import WireFormat

/// A cursor over the items of an array. For other values it is empty. A damaged item is an error and ends the array.
struct ExpressionItems {
  private var items: UnsafeBufferPointer<ExpressionValue>.Iterator
  private var encoded: EncodedArray.Iterator?

  init(_ array: ExpressionValue) {
    items = UnsafeBufferPointer(start: nil, count: 0).makeIterator()
    switch array {
    case .array(let values): items = values.makeIterator()
    case .encodedArray(let bytes): encoded = EncodedArray(bytes).makeIterator()
    default: break
    }
  }

  @inline(__always)
  mutating func next() -> ExpressionValue? {
    guard encoded != nil else { return items.next() }
    do throws(WireError) {
      return try encoded?.next().map { ExpressionValue($0) }
    } catch {
      encoded = nil
      return .error(ExpressionFault(.damaged))
    }
  }

  /// The number of items of an array.
  static func count(_ array: ExpressionValue) -> Int {
    switch array {
    case .array(let items): items.count
    case .encodedArray(let bytes): (try? EncodedArray(bytes).count) ?? 0
    default: 0
    }
  }
}

/// A cursor over the entries of a map, ascending by the bytes of their keys. For other values it is empty.
struct ExpressionEntries {
  private var entries: UnsafeBufferPointer<ExpressionEntry>.Iterator
  private var encoded: EncodedMap.Iterator?

  init(_ map: ExpressionValue) {
    entries = UnsafeBufferPointer(start: nil, count: 0).makeIterator()
    switch map {
    case .map(let values): entries = values.makeIterator()
    case .encodedMap(let bytes): encoded = EncodedMap(mapValue: bytes).makeIterator()
    default: break
    }
  }

  init(fields: EncodedMap) {
    entries = UnsafeBufferPointer(start: nil, count: 0).makeIterator()
    encoded = fields.makeIterator()
  }

  @inline(__always)
  mutating func next() -> ExpressionEntry? {
    guard encoded != nil else { return entries.next() }
    do throws(WireError) {
      guard let entry = try encoded?.next() else { return nil }
      return ExpressionEntry(key: entry.key, value: ExpressionValue(entry.value))
    } catch {
      encoded = nil
      return nil
    }
  }

  /// The number of entries of a map.
  static func count(_ map: ExpressionValue) -> Int {
    if case .map(let entries) = map { return entries.count }
    var cursor = ExpressionEntries(map)
    var count = 0
    while cursor.next() != nil { count += 1 }
    return count
  }
}
