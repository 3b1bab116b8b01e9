import Basics
import DocumentModel
import WireFormat

/// Items by their hash: finds the items that equal a value without comparing it with all of them. Its memory is in the
/// arena: 8 bytes for each item, and 4 to 8 bytes more.
///
/// Items with equal hashes form a chain, so adding one takes constant time even if all are equal. Hashes have a secret
/// seed, so a client cannot choose values that share a chain, except ints that round to one float.
struct ItemIndex {
  private let heads: UnsafeMutableBufferPointer<Int32>
  private let nexts: UnsafeMutablePointer<Int32>
  private let hashes: UnsafeMutablePointer<Int32>

  /// An empty index for at most `count` items. Returns `nil` if the arena is full.
  init?(count: Int, _ arena: inout Arena) {
    var capacity = 16
    while capacity < count { capacity *= 2 }
    guard count < Int(Int32.max), let heads = arena.take(Int32.self, capacity),
      let nexts = arena.take(Int32.self, count), let hashes = arena.take(Int32.self, count)
    else { return nil }
    heads.initialize(repeating: -1, count: capacity)
    self.heads = UnsafeMutableBufferPointer(start: heads, count: capacity)
    self.nexts = nexts
    self.hashes = hashes
  }

  /// Adds the item of a number. Numbers ascend from 0 without gaps, except those of items that equal nothing.
  func add(_ item: Int, hash: Int) {
    let head = hash & (heads.count - 1)
    (nexts + item).initialize(to: heads[head])
    (hashes + item).initialize(to: Int32(truncatingIfNeeded: hash >> 32))
    heads[head] = Int32(item)
  }

  /// Returns the number of an item with this hash for which `isWanted` returns `true`, or `nil`.
  func first(hash: Int, where isWanted: (Int) -> Bool) -> Int? {
    let wanted = Int32(truncatingIfNeeded: hash >> 32)
    var item = heads[hash & (heads.count - 1)]
    while item >= 0 {
      if hashes[Int(item)] == wanted, isWanted(Int(item)) { return Int(item) }
      item = nexts[Int(item)]
    }
    return nil
  }
}

/// Finds values among the items of a list or set: by hash if that is faster, otherwise by comparing them one by one.
struct ItemSearch {
  /// The greatest number of items or values that are compared one by one.
  static let linearMax = 8

  private let items: UnsafeBufferPointer<RuleValue>
  private let how: RuleComparison
  private let index: ItemIndex?

  /// Prepares a search for `count` values. Cost: a hash of each item, if there are many items and values.
  init(_ items: UnsafeBufferPointer<RuleValue>, _ how: RuleComparison, count: Int, _ evaluator: Evaluator) {
    self.items = items
    self.how = how
    let isLarge = items.count > Self.linearMax && count > Self.linearMax
    index = isLarge ? evaluator.index(of: items, how) : nil
  }

  /// Whether an item equals a value. Returns `false` once a budget is used up.
  func contains(_ value: RuleValue, _ evaluator: Evaluator) -> Bool {
    guard let index else { return evaluator.isIn(value, .set(items), how) }
    switch evaluator.hash(of: value, how) {
    case .hash(let hash):
      return index.first(hash: hash) { evaluator.equal(value, items[$0], how) || evaluator.stopped != nil } != nil
        && evaluator.stopped == nil
    case .equalsNothing: return false
    case .unknown: return evaluator.isIn(value, .set(items), how)
    }
  }
}

/// The hash of a value.
enum ItemHash {
  /// Equal values have equal hashes.
  case hash(Int)
  /// No value equals this one, not even itself.
  case equalsNothing
  /// The value contains one that a query does not determine.
  case unknown
}

extension Evaluator {
  /// Returns an index of the items. Returns `nil` if one of them contains an unknown value, or if a budget is used up.
  fileprivate func index(of items: UnsafeBufferPointer<RuleValue>, _ how: RuleComparison) -> ItemIndex? {
    guard charge(items.count * 2), let index = ItemIndex(count: items.count, &arena) else {
      _ = outOfMemory()
      return nil
    }
    for (number, item) in items.enumerated() {
      switch hash(of: item, how) {
      case .hash(let hash): index.add(number, hash: hash)
      case .equalsNothing: break
      case .unknown: return nil
      }
      if stopped != nil { return nil }
    }
    return index
  }

  /// Returns a hash that values have in common if ``equal(_:_:_:)`` returns `true` for them.
  func hash(of value: RuleValue, _ how: RuleComparison) -> ItemHash {
    // With the access to the index, whose memory is seldom in the cache of the processor.
    guard charge(64) else { return .equalsNothing }
    var hasher = Hasher()
    switch add(value, to: &hasher, how, depth: 0) {
    case .known: return .hash(hasher.finalize())
    case .equalsNothing: return .equalsNothing
    case .unknown: return .unknown
    }
  }

  /// The parts of deeper values do not count for the hash.
  private static let hashDepthMax = 24

  private enum Hashed {
    case known, equalsNothing, unknown

    mutating func join(_ other: Hashed) {
      if other == .unknown || self == .known { self = other }
    }
  }

  private func add(_ value: RuleValue, to hasher: inout Hasher, _ how: RuleComparison, depth: Int) -> Hashed {
    guard charge(16), depth < Self.hashDepthMax else { return .known }
    hasher.combine(tag(value, how))
    switch value {
    case .failure, .mapDiff: return .equalsNothing
    case .constraint, .partialMap, .partialKeys: return .unknown
    case .null: break
    case .bool(let flag): hasher.combine(flag)
    case .int(let number): add(number, to: &hasher, how)
    case .float(let number): return add(number, to: &hasher, how)
    case .string(let bytes), .bytes(let bytes), .vector(let bytes): add(bytes, to: &hasher)
    case .timestamp(let moment), .duration(let moment):
      hasher.combine(moment.seconds)
      hasher.combine(moment.nanos)
    case .latlng(let latitude, let longitude):
      hasher.combine(latitude.bitPattern)
      hasher.combine(longitude.bitPattern)
    case .path(let segments):
      for segment in segments {
        if !segment.isBound { return .equalsNothing }
        add(segment.text, to: &hasher)
      }
    // Equal sets can contain different numbers, because ints round to floats.
    case .set(let items): hasher.combine(items.count)
    case .list, .encodedList: return addItems(value, to: &hasher, how, depth: depth)
    case .encodedMap(let bytes): return addEntries(EncodedMap(mapValue: bytes), to: &hasher, how, depth: depth)
    case .encodedFields(let bytes):
      return addEntries(EncodedMap(documentFields: bytes), to: &hasher, how, depth: depth)
    case .map, .object:
      var sum = 0
      var result = Hashed.known
      for entry in entries(value) ?? UnsafeBufferPointer(start: nil, count: 0) {
        result.join(add(entry.key, entry.value, to: &sum, how, depth: depth))
      }
      hasher.combine(sum)
      return result
    }
    return .known
  }

  /// Returns a number for the type. Types whose values can be equal share one.
  private func tag(_ value: RuleValue, _ how: RuleComparison) -> UInt8 {
    switch value.type {
    case .float: how == .lenient ? 1 : 2
    case .int: 1
    case .string: 3
    case .bytes: 4
    case .timestamp: 5
    case .duration: 6
    case .list: 7
    case .map: 8
    case .path: 9
    default: 0
    }
  }

  private func add(_ number: Int64, to hasher: inout Hasher, _ how: RuleComparison) {
    hasher.combine(how == .strict ? UInt64(bitPattern: number) : Double(number).bitPattern)
  }

  private func add(_ number: Double, to hasher: inout Hasher, _ how: RuleComparison) -> Hashed {
    switch how {
    case .strict:
      hasher.combine(number.bitPattern)
      return number.isNaN ? .equalsNothing : .known
    case .lenient:
      // 0.0 equals -0.0, and every NaN equals the others.
      hasher.combine(number == 0 ? 0 : number.isNaN ? Double.nan.bitPattern : number.bitPattern)
      return .known
    }
  }

  private func add(_ bytes: UnsafeRawBufferPointer, to hasher: inout Hasher) {
    guard charge(bytes.count >> 1) else { return }
    hasher.combine(bytes.count)
    hasher.combine(bytes: bytes)
  }

  private func addItems(
    _ list: RuleValue, to hasher: inout Hasher, _ how: RuleComparison, depth: Int
  ) -> Hashed {
    var result = Hashed.known
    var items = ItemCursor(list, self)
    while stopped == nil, let item = items.next() { result.join(add(item, to: &hasher, how, depth: depth + 1)) }
    return result
  }

  private func addEntries(
    _ map: EncodedMap, to hasher: inout Hasher, _ how: RuleComparison, depth: Int
  ) -> Hashed {
    var sum = 0
    var result = Hashed.known
    var entries = map.makeIterator()
    while stopped == nil, let entry = (try? entries.next()) ?? nil {
      result.join(add(entry.key, value(entry.value), to: &sum, how, depth: depth))
    }
    hasher.combine(sum)
    return result
  }

  /// Adds an entry to the sum of its map, which does not depend on the order of the entries.
  private func add(
    _ key: UnsafeRawBufferPointer, _ value: RuleValue, to sum: inout Int, _ how: RuleComparison, depth: Int
  ) -> Hashed {
    var hasher = Hasher()
    add(key, to: &hasher)
    let result = add(value, to: &hasher, how, depth: depth + 1)
    sum &+= hasher.finalize()
    return result
  }
}
