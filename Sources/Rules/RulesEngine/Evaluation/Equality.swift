import Basics
import DocumentModel
import WireFormat

/// The rules for comparing values inside collections.
enum RuleComparison {
  /// For lists and maps: `1` differs from `1.0`, and `0.0` from `-0.0`.
  case strict
  /// For sets and `diff()`: ints and floats compare as numbers at every depth, and NaN equals itself.
  case lenient
}

extension Evaluator {
  /// Evaluates `left == right`, or `left != right` if `isNegated`. The operands must not be failures.
  func equality(_ left: RuleValue, _ right: RuleValue, isNegated: Bool) -> RuleValue {
    switch (left, right) {
    case (.string(let a), .string(let b)):
      guard charge(min(a.count, b.count) >> 3) else { return stopFailure }
      return .bool(RuleBytes.equal(a, b) != isNegated)
    case (.constraint(let constraints), _): return constrained(constraints, equals: right, isNegated: isNegated)
    case (_, .constraint(let constraints)): return constrained(constraints, equals: left, isNegated: isNegated)
    case (.partialMap, .null), (.null, .partialMap), (.partialKeys, .null), (.null, .partialKeys):
      return .bool(isNegated)
    case (.partialMap, _), (_, .partialMap), (.partialKeys, _), (_, .partialKeys): return failure(.unknownByQuery)
    case (.int(let a), .float(let b)): return .bool((Double(a) == b) != isNegated)
    case (.float(let a), .int(let b)): return .bool((a == Double(b)) != isNegated)
    case (.float(let a), .float(let b)): return .bool((a == b) != isNegated)
    default:
      metUnknown = false
      return bool(equal(left, right, .strict) != isNegated)
    }
  }

  /// Whether two values are equal. Returns `false` once the budget of work is used up.
  ///
  /// Recurses as deep as the values nest. Limits of documents, of expressions and ``nestingMax`` bound the depth.
  func equal(_ a: RuleValue, _ b: RuleValue, _ how: RuleComparison) -> Bool {
    guard charge(12) else { return false }
    switch (a, b) {
    case (.constraint, _), (_, .constraint), (.partialMap, _), (_, .partialMap), (.partialKeys, _), (_, .partialKeys):
      // Inside lists and maps, the emulator treats an unknown value as different.
      if mode == .sound || how == .lenient { metUnknown = true }
      return false
    case (.null, .null): return true
    case (.bool(let x), .bool(let y)): return x == y
    case (.int(let x), .int(let y)): return x == y
    case (.int(let x), .float(let y)): return how == .lenient && Double(x) == y
    case (.float(let x), .int(let y)): return how == .lenient && x == Double(y)
    case (.float(let x), .float(let y)):
      return how == .lenient ? x == y || x.isNaN && y.isNaN : x.bitPattern == y.bitPattern && !x.isNaN
    case (.string(let x), .string(let y)), (.bytes(let x), .bytes(let y)), (.vector(let x), .vector(let y)):
      return charge(min(x.count, y.count) >> 3) && RuleBytes.equal(x, y)
    case (.timestamp(let x), .timestamp(let y)), (.duration(let x), .duration(let y)): return x == y
    case (.latlng(let x1, let x2), .latlng(let y1, let y2)):
      return x1.bitPattern == y1.bitPattern && x2.bitPattern == y2.bitPattern
    case (.path(let x), .path(let y)):
      return x.count == y.count
        && zip(x, y).allSatisfy {
          charge(8 + $0.text.count >> 3) && $0.isBound && $1.isBound && RuleBytes.equal($0.text, $1.text)
        }
    case (.list, .list), (.list, .encodedList), (.encodedList, .list), (.encodedList, .encodedList):
      return nested { equalLists(a, b, how) }
    case (.set(let x), .set(let y)):
      guard x.count == y.count else { return false }
      let search = ItemSearch(y, .lenient, count: x.count, self)
      return x.allSatisfy { search.contains($0, self) }
    case (.mapDiff, _), (_, .mapDiff): return false
    default:
      guard a.type == .map, b.type == .map else { return false }
      return nested { equalMaps(a, b, how) }
    }
  }

  /// Runs `body` one level deeper. A damaged document may nest deeper than the stack allows, so the depth is limited.
  private func nested(_ body: () -> Bool) -> Bool {
    guard nesting < Self.nestingMax else {
      work = 0
      return charge(1)
    }
    nesting += 1
    defer { nesting -= 1 }
    return body()
  }

  private static let nestingMax = 1200

  private func equalLists(_ a: RuleValue, _ b: RuleValue, _ how: RuleComparison) -> Bool {
    var left = ItemCursor(a, self)
    var right = ItemCursor(b, self)
    while true {
      switch (left.next(), right.next()) {
      case (nil, nil): return true
      case (let x?, let y?):
        if !equal(x, y, how) { return false }
      default: return false
      }
    }
  }

  private func equalMaps(_ a: RuleValue, _ b: RuleValue, _ how: RuleComparison) -> Bool {
    if let left = encodedMap(a), let right = encodedMap(b) { return equalMaps(left, right, how) }
    guard let left = entries(a), let right = entries(b), left.count == right.count,
      let sorted = sortedByKey(right)
    else { return false }
    var place = 0
    return left.allSatisfy { entry in
      find(entry.key, in: sorted, near: &place).map { equal(entry.value, $0, how) } ?? false
    }
  }

  /// Compares stored maps, whose keys ascend, entry by entry. Takes no memory.
  private func equalMaps(_ a: EncodedMap, _ b: EncodedMap, _ how: RuleComparison) -> Bool {
    var left = a.makeIterator()
    var right = b.makeIterator()
    while true {
      switch ((try? left.next()) ?? nil, (try? right.next()) ?? nil) {
      case (nil, nil): return true
      case (let x?, let y?):
        guard charge(8 + x.key.count >> 3), RuleBytes.equal(x.key, y.key), equal(value(x.value), value(y.value), how)
        else { return false }
      default: return false
      }
    }
  }

  /// Returns the view of a stored map, or `nil` for other values.
  func encodedMap(_ value: RuleValue) -> EncodedMap? {
    switch value {
    case .encodedMap(let bytes): EncodedMap(mapValue: bytes)
    case .encodedFields(let bytes): EncodedMap(documentFields: bytes)
    default: nil
    }
  }

  /// Whether a list or set contains a value.
  func isIn(_ value: RuleValue, _ container: RuleValue, _ how: RuleComparison) -> Bool {
    var items = ItemCursor(container, self)
    while let item = items.next() {
      if equal(value, item, how) { return true }
      if stopped != nil { return false }
    }
    return false
  }

  // MARK: Contents

  /// Returns the items of a list or set as an array. Returns `nil` if a budget is used up, or if the value is neither or
  /// is ``RuleValue/partialKeys(_:isSet:)``.
  func items(_ list: RuleValue) -> UnsafeBufferPointer<RuleValue>? {
    switch list {
    case .list(let items), .set(let items): return items
    case .encodedList(let bytes):
      guard charge(bytes.count >> 3), let count = try? EncodedArray(bytes).count, charge(count * 16),
        let copy = arena.take(RuleValue.self, count)
      else {
        _ = outOfMemory()
        return nil
      }
      var cursor = ItemCursor(list, self)
      var index = 0
      while index < count, let item = cursor.next() {
        (copy + index).initialize(to: item)
        index += 1
      }
      return UnsafeBufferPointer(start: copy, count: index)
    default: return nil
    }
  }

  /// Returns the entries of a map as an array, in their order. Returns `nil` if a budget is used up or the value is
  /// not a map.
  func entries(_ map: RuleValue) -> UnsafeBufferPointer<MapEntry>? {
    switch map {
    case .map(let entries), .partialMap(let entries): return entries
    case .encodedMap(let bytes): return encodedEntries(EncodedMap(mapValue: bytes))
    case .encodedFields(let bytes): return encodedEntries(EncodedMap(documentFields: bytes))
    case .object(let object): return objectEntries(object)
    default: return nil
    }
  }

  private func encodedEntries(_ map: EncodedMap) -> UnsafeBufferPointer<MapEntry>? {
    guard let count = count(map), charge(count * 24) else { return nil }
    guard let copy = arena.take(MapEntry.self, count) else {
      _ = outOfMemory()
      return nil
    }
    var index = 0
    var iterator = map.makeIterator()
    while index < count, let entry = (try? iterator.next()) ?? nil {
      (copy + index).initialize(to: MapEntry(key: entry.key, value: value(entry.value)))
      index += 1
    }
    return UnsafeBufferPointer(start: copy, count: index)
  }

  /// Returns the number of entries of a stored map, or `nil` if the budget of work is used up.
  func count(_ map: EncodedMap) -> Int? {
    guard charge(map.bytes.count >> 4) else { return nil }
    var count = 0
    var entries = map.makeIterator()
    while charge(8), (try? entries.next()) ?? nil != nil { count += 1 }
    return stopped == nil ? count : nil
  }

  /// Returns the entries, ascending by the bytes of their keys, or `nil` if a budget is used up.
  func sortedByKey(_ entries: UnsafeBufferPointer<MapEntry>) -> UnsafeBufferPointer<MapEntry>? {
    var isSorted = true
    for index in entries.indices.dropFirst()
    where EncodedMap.compare(entries[index - 1].key, entries[index].key) != .less {
      isSorted = false
    }
    if isSorted { return entries }
    // Each comparison of two keys may read all their bytes.
    let levels = Int.bitWidth - entries.count.leadingZeroBitCount
    let comparison = entries.reduce(0) { max($0, $1.key.count) } >> 3 + 16
    guard charge(entries.count * levels * comparison), let copy = arena.take(MapEntry.self, entries.count) else {
      _ = outOfMemory()
      return nil
    }
    var sorted = UnsafeMutableBufferPointer(start: copy, count: entries.count)
    _ = sorted.initialize(from: entries)
    sorted.sort { EncodedMap.compare($0.key, $1.key) == .less }
    return UnsafeBufferPointer(sorted)
  }

  /// Returns the value of a key in sorted entries, or `nil` if they do not contain it.
  ///
  /// Cost: constant if the key is the one at `place`, otherwise a binary search. Sets `place` to the next entry, so
  /// keys that ascend in the same way are found at once.
  func find(
    _ key: UnsafeRawBufferPointer, in sorted: UnsafeBufferPointer<MapEntry>, near place: inout Int
  ) -> RuleValue? {
    guard charge(16 + key.count >> 3) else { return nil }
    if place < sorted.count, RuleBytes.equal(sorted[place].key, key) {
      place += 1
      return sorted[place - 1].value
    }
    guard charge(100 + key.count) else { return nil }
    var low = 0
    var high = sorted.count
    while low < high {
      let middle = (low + high) / 2
      switch EncodedMap.compare(sorted[middle].key, key) {
      case .less: low = middle + 1
      case .greater: high = middle
      case .equal:
        place = middle + 1
        return sorted[middle].value
      }
    }
    return nil
  }
}

/// A cursor over the items of a list or set. For other values, and for ``RuleValue/partialKeys(_:isSet:)``, it is empty.
struct ItemCursor {
  private var items: UnsafeBufferPointer<RuleValue>.Iterator
  private var encoded: EncodedArray.Iterator?
  private let evaluator: Evaluator

  init(_ list: RuleValue, _ evaluator: Evaluator) {
    self.evaluator = evaluator
    switch list {
    case .list(let values), .set(let values): items = values.makeIterator()
    case .encodedList(let bytes):
      items = UnsafeBufferPointer(start: nil, count: 0).makeIterator()
      encoded = EncodedArray(bytes).makeIterator()
    default: items = UnsafeBufferPointer(start: nil, count: 0).makeIterator()
    }
  }

  /// Returns the next item, or `nil` at the end. A damaged item is a failure and ends the list.
  mutating func next() -> RuleValue? {
    guard encoded != nil else { return items.next() }
    do throws(WireError) {
      guard evaluator.charge(12) else {
        encoded = nil
        return nil
      }
      return try encoded?.next().map(evaluator.value)
    } catch {
      encoded = nil
      return evaluator.failure(.damaged)
    }
  }
}
