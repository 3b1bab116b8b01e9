import Basics
import WireFormat

/// Methods of lists, sets, maps and map differences.
extension Evaluator {
  /// Calls a method of a collection.
  func callCollection(_ builtin: Builtin, _ values: UnsafeBufferPointer<RuleValue>) -> RuleValue {
    metUnknown = false
    let result = collection(builtin, values)
    return metUnknown && !result.isFailure ? failure(.unknownByQuery) : result
  }

  private func collection(_ builtin: Builtin, _ values: UnsafeBufferPointer<RuleValue>) -> RuleValue {
    let receiver = values[0]
    switch receiver {
    case .partialMap: return partial(builtin, values)
    case .partialKeys(let known, _): return partialKeys(known, builtin, values)
    default: break
    }
    if values.count > 1 {
      switch values[1] {
      case .partialMap: return failure(.unknownByQuery)
      case .partialKeys(let known, _): return compared(receiver, builtin, toPartial: known)
      default: break
      }
    }
    switch builtin {
    case .mapGet: return mapGet(receiver, values[1], values[2])
    case .addedKeys, .removedKeys, .changedKeys, .unchangedKeys, .affectedKeys: return keys(builtin, receiver)
    case .mapSize, .keys, .values:
      if builtin == .mapSize, let map = encodedMap(receiver) {
        return count(map).map { .int(Int64($0)) } ?? stopFailure
      }
      guard let entries = entries(receiver) else { return stopFailure }
      if builtin == .mapSize { return .int(Int64(entries.count)) }
      return builtin == .keys ? sortedKeys(entries) : list(entries.map(\.value))
    case .diff:
      guard let pair = arena.take(RuleValue.self, 2) else { return outOfMemory() }
      pair.initialize(to: receiver)
      (pair + 1).initialize(to: values[1])
      return .mapDiff(UnsafePointer(pair))
    case .listSize:
      if case .encodedList(let bytes) = receiver {
        guard let count = try? EncodedArray(bytes).count else { return failure(.damaged) }
        guard charge(bytes.count >> 4 + count * 4) else { return stopFailure }
        return .int(Int64(count))
      }
      return .int(Int64(items(receiver)?.count ?? 0))
    case .setSize: return .int(Int64(items(receiver)?.count ?? 0))
    default: break
    }
    guard let mine = items(receiver) else { return stopFailure }
    guard values.count > 1 else { return set(mine, and: nil) }
    let other = values[1]
    guard let others = items(other) else { return stopFailure }
    switch builtin {
    case .listHasAll: return bool(contains(mine, all: others, .strict))
    case .listHasAny: return bool(contains(mine, anyOf: others, .strict))
    case .listHasOnly: return bool(contains(others, all: mine, .strict))
    case .setHasAll: return bool(contains(mine, all: others, .lenient))
    case .setHasAny: return bool(contains(mine, anyOf: others, .lenient))
    case .setHasOnly: return bool(contains(others, all: mine, .lenient))
    case .concat: return concatenated(mine, others)
    case .removeAll: return filtered(mine, others, .strict, keepsFound: false).map(RuleValue.list) ?? stopFailure
    case .union: return set(mine, and: others)
    case .intersection: return filtered(mine, others, .lenient, keepsFound: true).map(RuleValue.set) ?? stopFailure
    case .difference: return filtered(mine, others, .lenient, keepsFound: false).map(RuleValue.set) ?? stopFailure
    default: return failure(.damaged)
    }
  }

  private func contains(
    _ items: UnsafeBufferPointer<RuleValue>, all values: UnsafeBufferPointer<RuleValue>, _ how: RuleComparison
  ) -> Bool {
    let search = ItemSearch(items, how, count: values.count, self)
    return values.allSatisfy { search.contains($0, self) }
  }

  private func contains(
    _ items: UnsafeBufferPointer<RuleValue>, anyOf values: UnsafeBufferPointer<RuleValue>, _ how: RuleComparison
  ) -> Bool {
    let search = ItemSearch(items, how, count: values.count, self)
    return values.contains { stopped != nil || search.contains($0, self) }
  }

  /// Returns the values that are among `items`, or those that are not, in their order. Returns `nil` if a budget is
  /// used up.
  private func filtered(
    _ values: UnsafeBufferPointer<RuleValue>, _ items: UnsafeBufferPointer<RuleValue>, _ how: RuleComparison,
    keepsFound: Bool
  ) -> UnsafeBufferPointer<RuleValue>? {
    guard charge(values.count * 4), let memory = arena.take(RuleValue.self, values.count) else {
      _ = outOfMemory()
      return nil
    }
    let search = ItemSearch(items, how, count: values.count, self)
    var count = 0
    for value in values {
      let isFound = search.contains(value, self)
      if stopped != nil { return nil }
      guard isFound == keepsFound else { continue }
      (memory + count).initialize(to: value)
      count += 1
    }
    return stopped == nil ? UnsafeBufferPointer(start: memory, count: count) : nil
  }

  private func concatenated(
    _ first: UnsafeBufferPointer<RuleValue>, _ second: UnsafeBufferPointer<RuleValue>
  ) -> RuleValue {
    let count = first.count + second.count
    guard charge(count * 4), let memory = arena.take(RuleValue.self, count) else { return outOfMemory() }
    let joined = UnsafeMutableBufferPointer(start: memory, count: count)
    _ = joined.initialize(from: first)
    _ = UnsafeMutableBufferPointer(rebasing: joined[first.count...]).initialize(from: second)
    return .list(UnsafeBufferPointer(joined))
  }

  private func copy(_ values: [RuleValue]) -> UnsafeBufferPointer<RuleValue>? {
    guard stopped == nil, charge(values.count * 4), let memory = arena.take(RuleValue.self, values.count) else {
      _ = outOfMemory()
      return nil
    }
    let buffer = UnsafeMutableBufferPointer(start: memory, count: values.count)
    _ = buffer.initialize(from: values)
    return UnsafeBufferPointer(buffer)
  }

  private func list(_ values: [RuleValue]) -> RuleValue {
    copy(values).map(RuleValue.list) ?? stopFailure
  }

  private func set(_ distinct: [RuleValue]) -> RuleValue {
    copy(distinct).map(RuleValue.set) ?? stopFailure
  }

  /// Returns the distinct values of one or two sequences, in the order of their first appearance.
  private func set(_ first: UnsafeBufferPointer<RuleValue>, and second: UnsafeBufferPointer<RuleValue>?) -> RuleValue {
    let count = first.count + (second?.count ?? 0)
    guard charge(count * 4), let memory = arena.take(RuleValue.self, count) else { return outOfMemory() }
    var distinct = 0
    var index = count > ItemSearch.linearMax ? ItemIndex(count: count, &arena) : nil
    for values in [first, second].compactMap(\.self) {
      for value in values {
        if case .constraint = value { metUnknown = true }
        if let known = index {
          switch hash(of: value, .lenient) {
          case .hash(let hash):
            let isKnown = known.first(hash: hash) { equal(value, memory[$0], .lenient) || stopped != nil } != nil
            if stopped != nil { return stopFailure }
            if isKnown { continue }
            known.add(distinct, hash: hash)
          case .equalsNothing: break
          // Compare this value and those after it with all others, to know whether a comparison reads it.
          case .unknown: index = nil
          }
        }
        if index == nil, isIn(value, .set(UnsafeBufferPointer(start: memory, count: distinct)), .lenient) { continue }
        if stopped != nil { return stopFailure }
        (memory + distinct).initialize(to: value)
        distinct += 1
      }
    }
    return .set(UnsafeBufferPointer(start: memory, count: distinct))
  }

  /// Returns the keys as a list, ascending by UTF-16 code units.
  private func sortedKeys(_ entries: UnsafeBufferPointer<MapEntry>) -> RuleValue {
    guard charge(entries.reduce(0) { $0 + 16 + $1.key.count }) else { return stopFailure }
    var keys = entries.map(\.key)
    let isSorted = zip(keys, keys.dropFirst()).allSatisfy { UTF16Text.compare($0, $1) < 0 }
    if !isSorted {
      // Each comparison of two keys may read all their bytes.
      let levels = Int.bitWidth - keys.count.leadingZeroBitCount
      guard charge(keys.count * levels * (16 + keys.reduce(0) { max($0, $1.count) })) else { return stopFailure }
      keys.sort { UTF16Text.compare($0, $1) < 0 }
    }
    return list(keys.map(RuleValue.string))
  }

  /// Evaluates `map.get(key, default)` or `map.get([key, …], default)`.
  private func mapGet(_ map: RuleValue, _ key: RuleValue, _ fallback: RuleValue) -> RuleValue {
    if case .string(let name) = key { return entry(map, name) ?? fallback }
    guard let path = items(key) else { return stopFailure }
    var current = map
    for step in path {
      guard charge(16) else { return stopFailure }
      guard case .string(let name) = step else { return failure(.type, text: "string", step) }
      guard let next = entry(current, name) else {
        switch current {
        case .partialMap: return failure(.unknownByQuery)
        // To the emulator, a field that a filter constrains is not a map.
        case .constraint where mode == .sound: return failure(.unknownByQuery)
        default: return fallback
        }
      }
      current = next
    }
    return current
  }

  /// Returns keys of a difference: those of the old map in its order, then those that only the new map has.
  private func keys(_ builtin: Builtin, _ difference: RuleValue) -> RuleValue {
    guard case .mapDiff(let pair) = difference else { return failure(.damaged) }
    guard let later = entries(pair[0]), let earlier = entries(pair[1]), let laterSorted = sortedByKey(later),
      let earlierSorted = sortedByKey(earlier), charge((later.count + earlier.count) * 8)
    else { return stopFailure }
    var keys: [RuleValue] = []
    var place = 0
    for entry in earlier {
      let isWanted: Bool
      if let now = find(entry.key, in: laterSorted, near: &place) {
        isWanted =
          switch builtin {
          case .addedKeys, .removedKeys: false
          case .unchangedKeys: equal(entry.value, now, .lenient)
          default: !equal(entry.value, now, .lenient)
          }
      } else {
        isWanted = builtin == .removedKeys || builtin == .affectedKeys
      }
      if stopped != nil { return stopFailure }
      if isWanted { keys.append(.string(entry.key)) }
    }
    place = 0
    if builtin == .addedKeys || builtin == .affectedKeys {
      for entry in later where find(entry.key, in: earlierSorted, near: &place) == nil {
        keys.append(.string(entry.key))
      }
    }
    return set(keys)
  }

  /// Calls a method of a map of which a query determines some fields. Only `get` of these fields has a value, and
  /// `keys()` contains their names.
  private func partial(_ builtin: Builtin, _ values: UnsafeBufferPointer<RuleValue>) -> RuleValue {
    if builtin == .keys, case .partialMap(let known) = values[0] { return .partialKeys(known, isSet: false) }
    guard builtin == .mapGet else { return failure(.unknownByQuery) }
    if case .string(let name) = values[1] { return entry(values[0], name) ?? failure(.unknownByQuery) }
    return mapGet(values[0], values[1], values[2])
  }

  /// Calls a method of the keys of a partial map. The known keys can prove that a key exists, never that one is
  /// missing.
  private func partialKeys(
    _ known: UnsafeBufferPointer<MapEntry>, _ builtin: Builtin, _ values: UnsafeBufferPointer<RuleValue>
  ) -> RuleValue {
    switch builtin {
    case .toSet: return .partialKeys(known, isSet: true)
    case .listHasAll, .setHasAll: return proven(items(values[1])?.allSatisfy { isKnownKey($0, known) })
    case .listHasAny, .setHasAny: return proven(items(values[1])?.contains { isKnownKey($0, known) })
    default: return failure(.unknownByQuery)
    }
  }

  /// Calls a method of a list or set with the keys of a partial map.
  private func compared(
    _ receiver: RuleValue, _ builtin: Builtin, toPartial known: UnsafeBufferPointer<MapEntry>
  ) -> RuleValue {
    switch builtin {
    case .listHasOnly, .setHasOnly: return proven(items(receiver)?.allSatisfy { isKnownKey($0, known) })
    case .listHasAny, .setHasAny: return proven(items(receiver)?.contains { isKnownKey($0, known) })
    default: return failure(.unknownByQuery)
    }
  }

  private func proven(_ isProven: Bool?) -> RuleValue {
    if stopped != nil { return stopFailure }
    return isProven == true ? .bool(true) : failure(.unknownByQuery)
  }

  /// Whether a value is one of the known keys of a partial map.
  func isKnownKey(_ value: RuleValue, _ known: UnsafeBufferPointer<MapEntry>) -> Bool {
    guard case .string(let name) = value else { return false }
    return known.contains { charge(4) && RuleBytes.equal($0.key, name) }
  }
}
