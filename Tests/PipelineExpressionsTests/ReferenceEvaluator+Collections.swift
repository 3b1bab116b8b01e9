import DocumentModel

/// Arrays and maps.
extension ReferenceEvaluator {
  func array(_ name: String, _ values: Arguments) -> Outcome? {
    let isArray: (Int, Value) -> Bool = { _, value in Self.isArray(value) }
    switch name {
    case "array": return .value(.array(values.map { Self.value($0) ?? .null }))
    case "array_concat": return propagate(values, isArray) { .value(.array($0.flatMap(Self.items))) }
    case "array_length": return propagate(values, isArray) { .value(.integer(Int64(Self.items($0[0]).count))) }
    case "array_reverse": return propagate(values, isArray) { .value(.array(Self.items($0[0]).reversed())) }
    case "array_first": return propagate(values, isArray) { Self.items($0[0]).first.map { .value($0) } ?? .absent }
    case "array_last": return propagate(values, isArray) { Self.items($0[0]).last.map { .value($0) } ?? .absent }
    case "array_contains_all", "array_contains_any":
      return propagate(values, isArray) { values in
        let (all, wanted) = (Self.items(values[0]), Self.items(values[1]))
        let isFound: (Value) -> Bool = { value in all.contains { Value.compare($0, value) == .equal } }
        return Self.boolean(name == "array_contains_all" ? wanted.allSatisfy(isFound) : wanted.contains(where: isFound))
      }
    case "maximum", "minimum":
      return propagate(values, isArray) { values in
        extreme(Self.items(values[0]).filter { $0 != .null }, isGreatest: name == "maximum")
      }
    case "sum": return propagate(values, isArray) { sum(Self.items($0[0])) }
    case "length":
      let accept: (Int, Value) -> Bool = { _, value in
        if case .map = value { true } else { Self.isArray(value) || Self.isText(value) }
      }
      return propagate(values, accept) { values in
        switch values[0] {
        case .array(let items): return .value(.integer(Int64(items.count)))
        case .string(let text): return .value(.integer(Int64(text.unicodeScalars.count)))
        case .bytes(let bytes): return .value(.integer(Int64(bytes.count)))
        case .map(let map): return .value(.integer(Int64(map.vectorComponents?.count ?? map.entries.count)))
        default: return Self.failed
        }
      }
    case "array_contains", "array_get", "array_first_n", "array_last_n", "maximum_n", "minimum_n", "array_slice",
      "array_index_of", "array_index_of_all":
      if let value = Self.value(values[0]), value != .null, !Self.isArray(value) { return Self.failed }
      return indexed(name, values)
    case "join": return join(values)
    default: return nil
    }
  }

  private func indexed(_ name: String, _ values: Arguments) -> Outcome {
    let items: [Value]? = Self.isNothing(values[0]) ? nil : Self.value(values[0]).map(Self.items)
    switch name {
    case "array_contains":
      guard let items else { return Self.null }
      return Self.boolean(items.contains { Self.equal(.value($0), values[1]) })
    case "array_get":
      guard let index = Self.integer(values[1]) else { return Self.failed }
      guard let items else { return Self.null }
      let place = Int128(index) + (index < 0 ? Int128(items.count) : 0)
      return place >= 0 && place < Int128(items.count) ? .value(items[Int(place)]) : .absent
    case "array_first_n", "array_last_n", "maximum_n", "minimum_n":
      guard let count = Self.integer(values[1]), count >= 0 else { return Self.failed }
      guard let items else { return Self.null }
      let taken = Int(min(count, Int64(items.count)))
      if name == "array_first_n" { return .value(.array(Array(items.prefix(taken)))) }
      if name == "array_last_n" { return .value(.array(Array(items.suffix(taken)))) }
      let wanted: Ordering = name == "maximum_n" ? .greater : .less
      let sorted = items.filter { $0 != .null }.sorted { Value.compare($0, $1) == wanted }
      return .value(.array(Array(sorted.prefix(taken))))
    case "array_slice":
      guard let start = Self.integer(values[1]) else { return Self.failed }
      var length = Int64.max
      if values.count == 3 {
        guard let given = Self.integer(values[2]), given >= 0 else { return Self.failed }
        length = given
      }
      return items.map { .value(.array(Self.slice($0, start, length))) } ?? Self.null
    default:
      let mode = values.count == 3 ? Self.string(values[2]) : "first"
      guard mode == "first" || mode == "last" else { return Self.failed }
      guard let items, !Self.isAbsent(values[1]) else { return Self.null }
      let found = items.indices.filter { Self.equal(.value(items[$0]), values[1]) }.map(Int64.init)
      if name == "array_index_of_all" { return .value(.array(found.map(Value.integer))) }
      return .value(.integer((mode == "last" ? found.last : found.first) ?? -1))
    }
  }

  private func sum(_ items: [Value]) -> Outcome {
    let numbers = items.filter(Self.isNumber)
    guard !numbers.isEmpty else { return Self.null }
    var total: Value = .integer(0)
    for number in numbers {
      if case .integer(let x) = total, case .integer(let y) = number {
        let (sum, overflow) = x.addingReportingOverflow(y)
        if overflow { return Self.failed }
        total = .integer(sum)
      } else {
        total = .double(Self.double(total) + Self.double(number))
      }
    }
    return .value(total)
  }

  private func join(_ values: Arguments) -> Outcome {
    for value in values where Self.isAbsent(value) { return Self.failed }
    let all = values.compactMap(Self.value)
    guard all[0] == .null || Self.isArray(all[0]), all[1] == .null || Self.isText(all[1]) else { return Self.failed }
    if all.count == 3 {
      guard all[2] == .null || Self.isText(all[2]) else { return Self.failed }
      if all[2] == .null { return Self.null }
      guard all[1] == .null || Self.isString(all[1]) == Self.isString(all[2]) else { return Self.failed }
    }
    if all[0] == .null || all[1] == .null { return Self.null }
    var parts: [[UInt8]] = []
    for item in Self.items(all[0]) {
      let part = item == .null && all.count == 3 ? all[2] : item
      if part == .null { continue }
      guard Self.isText(part), Self.isString(part) == Self.isString(all[1]) else { return Self.failed }
      parts.append(Self.bytes(part))
    }
    let joined = Array(parts.joined(separator: Self.bytes(all[1])))
    return .value(Self.isString(all[1]) ? .string(String(decoding: joined, as: UTF8.self)) : .bytes(joined))
  }

  private static func bytes(_ value: Value) -> [UInt8] {
    switch value {
    case .string(let text): Array(text.utf8)
    case .bytes(let bytes): bytes
    default: []
    }
  }

  // MARK: Maps

  func map(_ name: String, _ values: Arguments) -> Outcome? {
    let isMap: (Int, Value) -> Bool = { _, value in Self.isMap(value) }
    switch name {
    case "map":
      var result: [String: Value?] = [:]
      for index in stride(from: 0, to: values.count, by: 2) {
        guard let key = Self.string(values[index]), result[key] == nil else { return Self.failed }
        result[key] = .some(Self.value(values[index + 1]))
      }
      return .value(.map(MapValue(result.compactMap { key, value in value.map { (key, $0) } })))
    case "map_get":
      guard let key = Self.string(values[1]) else { return Self.failed }
      guard let value = Self.value(values[0]), Self.isMap(value), case .map(let map) = value else { return .absent }
      return map[key].map { .value($0) } ?? .absent
    case "map_set":
      for index in stride(from: 1, to: values.count, by: 2) where Self.string(values[index]) == nil {
        return Self.failed
      }
      guard let value = Self.value(values[0]), Self.isMap(value), case .map(var map) = value else { return .absent }
      for index in stride(from: 1, to: values.count, by: 2) {
        if let key = Self.string(values[index]) { map[key] = Self.value(values[index + 1]) }
      }
      return .value(.map(map))
    case "map_remove":
      return propagate(values, { index, value in index == 0 ? Self.isMap(value) : Self.isString(value) }) { values in
        guard case .map(var map) = values[0] else { return Self.failed }
        for case .string(let key) in values.dropFirst() { map[key] = nil }
        return .value(.map(map))
      }
    case "map_merge":
      return propagate(values, isMap) { values in
        var result = MapValue()
        for case .map(let map) in values {
          for entry in map.entries { result[entry.key] = entry.value }
        }
        return .value(.map(result))
      }
    case "map_keys", "map_values", "map_entries":
      return propagate(values, isMap) { values in
        guard case .map(let map) = values[0] else { return Self.failed }
        return .value(
          .array(
            map.entries.map { entry in
              name == "map_keys"
                ? .string(entry.key)
                : name == "map_values"
                  ? entry.value : .map(MapValue([("k", .string(entry.key)), ("v", entry.value)]))
            }))
      }
    default: return nil
    }
  }
}
