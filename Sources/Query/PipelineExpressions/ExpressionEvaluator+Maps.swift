import Basics
import DocumentModel
import WireFormat

/// Maps (pipelines.md, section 4.8).
extension ExpressionEvaluator {
  func map(_ function: ExpressionFunction, _ arguments: Arguments) -> ExpressionValue {
    switch function {
    case .map: return newMap(arguments)
    case .mapGet:
      guard case .string(let key) = arguments[1] else { return fail(function, .type, 2) }
      return member(key, of: arguments[0])
    case .mapSet: return setting(arguments)
    case .mapRemove:
      return edited(arguments[0], adding: 0) { entries in
        for argument in arguments.dropFirst() {
          if case .string(let key) = argument { Self.remove(key, from: &entries) }
        }
      }
    case .mapMerge: return merged(arguments)
    default: return listed(function, arguments[0])
    }
  }

  /// A sorted list of entries in the arena, with room for more.
  private struct EntryList {
    let entries: UnsafeMutablePointer<ExpressionEntry>
    var count: Int
  }

  /// Returns the value of a key, or absent. Cost: a binary search, or one pass over an encoded map.
  private func member(_ key: UnsafeRawBufferPointer, of map: ExpressionValue) -> ExpressionValue {
    switch map {
    case .encodedMap(let bytes):
      do throws(WireError) {
        return try EncodedMap(mapValue: bytes).value(for: key).map { ExpressionValue($0) } ?? .absent
      } catch {
        return .error(ExpressionFault(.damaged))
      }
    case .map(let entries):
      let list = EntryList(entries: UnsafeMutablePointer(mutating: entries.baseAddress!), count: entries.count)
      let (place, found) = Self.position(of: key, in: list)
      return found ? entries[place].value : .absent
    default: return .absent
    }
  }

  private func newMap(_ arguments: Arguments) -> ExpressionValue {
    let count = arguments.count / 2
    guard let memory = arena.take(ExpressionEntry.self, max(count, 1)) else { return exhausted(.memory) }
    for index in 0..<count {
      guard case .string(let key) = arguments[2 * index] else { return fail(.map, .type, 2 * index + 1) }
      (memory + index).initialize(to: ExpressionEntry(key: key, value: arguments[2 * index + 1]))
    }
    var entries = UnsafeMutableBufferPointer(start: memory, count: count)
    guard charge(16 * count * (Int.bitWidth - count.leadingZeroBitCount)) else { return exhausted(.work) }
    entries.sort { EncodedMap.compare($0.key, $1.key) == .less }
    var kept = 0
    for index in 0..<count {
      if index > 0, EncodedMap.compare(entries[index - 1].key, entries[index].key) == .equal {
        return fail(.map, .repeatedKey)
      }
    }
    for index in 0..<count {
      if case .absent = entries[index].value { continue }
      entries[kept] = entries[index]
      kept += 1
    }
    return .map(UnsafeBufferPointer(start: memory, count: kept))
  }

  /// Evaluates `map_set(map, key, value, ...)`. An absent value removes its key.
  private func setting(_ arguments: Arguments) -> ExpressionValue {
    var index = 1
    while index < arguments.count {
      guard case .string = arguments[index] else { return fail(.mapSet, .type, index + 1) }
      index += 2
    }
    guard arguments[0].types == .map else { return .absent }
    return edited(arguments[0], adding: arguments.count / 2) { entries in
      var index = 1
      while index + 1 < arguments.count {
        if case .string(let key) = arguments[index] {
          if case .absent = arguments[index + 1] {
            Self.remove(key, from: &entries)
          } else {
            Self.set(key, arguments[index + 1], in: &entries)
          }
        }
        index += 2
      }
    }
  }

  private func merged(_ maps: Arguments) -> ExpressionValue {
    var added = 0
    for map in maps.dropFirst() { added += ExpressionEntries.count(map) }
    guard charge(64 * added) else { return exhausted(.work) }
    var result = maps[0]
    for map in maps.dropFirst() {
      result = merged(result, map)
      if case .error = result { return result }
    }
    return result
  }

  /// Merges two maps in one pass. The entries of the right one win.
  private func merged(_ left: ExpressionValue, _ right: ExpressionValue) -> ExpressionValue {
    let capacity = ExpressionEntries.count(left) + ExpressionEntries.count(right)
    guard charge(16 * capacity), let memory = arena.take(ExpressionEntry.self, max(capacity, 1)) else {
      return exhausted(.memory)
    }
    var a = ExpressionEntries(left)
    var b = ExpressionEntries(right)
    var (x, y) = (a.next(), b.next())
    var count = 0
    while x != nil || y != nil {
      let order: Ordering
      if let x, let y { order = EncodedMap.compare(x.key, y.key) } else { order = x == nil ? .greater : .less }
      guard let entry = order == .less ? x : y, count < capacity else { break }
      (memory + count).initialize(to: entry)
      count += 1
      if order != .greater { x = a.next() }
      if order != .less { y = b.next() }
    }
    return .map(UnsafeBufferPointer(start: memory, count: count))
  }

  private func listed(_ function: ExpressionFunction, _ map: ExpressionValue) -> ExpressionValue {
    let count = ExpressionEntries.count(map)
    guard charge(16 * count), let items = items(count) else { return exhausted(.memory) }
    var cursor = ExpressionEntries(map)
    var index = 0
    while index < count, let entry = cursor.next() {
      let item: ExpressionValue
      switch function {
      case .mapKeys: item = .string(entry.key)
      case .mapValues: item = entry.value
      default:
        guard let pair = arena.take(ExpressionEntry.self, 2) else { return exhausted(.memory) }
        pair.initialize(to: ExpressionEntry(key: Self.keyName, value: .string(entry.key)))
        (pair + 1).initialize(to: ExpressionEntry(key: Self.valueName, value: entry.value))
        item = .map(UnsafeBufferPointer(start: pair, count: 2))
      }
      (items.baseAddress! + index).initialize(to: item)
      index += 1
    }
    return .array(UnsafeBufferPointer(rebasing: items[..<index]))
  }

  private static var keyName: UnsafeRawBufferPointer { bytes("k") }
  private static var valueName: UnsafeRawBufferPointer { bytes("v") }

  /// The UTF-8 bytes of a literal, which are never freed.
  static func bytes(_ text: StaticString) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
  }

  // MARK: Entries

  /// Calls `edit` with a copy of the entries that has room for `added` more.
  private func edited(
    _ map: ExpressionValue, adding added: Int, _ edit: (inout EntryList) -> Void
  ) -> ExpressionValue {
    let count = ExpressionEntries.count(map)
    guard charge(16 * (count + added) + 8 * added * count),
      let memory = arena.take(ExpressionEntry.self, max(count + added, 1))
    else { return exhausted(.memory) }
    var list = EntryList(entries: memory, count: 0)
    var cursor = ExpressionEntries(map)
    while list.count < count, let entry = cursor.next() {
      (memory + list.count).initialize(to: entry)
      list.count += 1
    }
    edit(&list)
    return .map(UnsafeBufferPointer(start: memory, count: list.count))
  }

  private static func position(of key: UnsafeRawBufferPointer, in list: EntryList) -> (place: Int, found: Bool) {
    var low = 0
    var high = list.count
    while low < high {
      let middle = (low + high) / 2
      switch EncodedMap.compare(list.entries[middle].key, key) {
      case .less: low = middle + 1
      case .greater: high = middle
      case .equal: return (middle, true)
      }
    }
    return (low, false)
  }

  private static func set(_ key: UnsafeRawBufferPointer, _ value: ExpressionValue, in list: inout EntryList) {
    let (place, found) = position(of: key, in: list)
    if !found {
      var index = list.count
      while index > place {
        (list.entries + index).initialize(to: list.entries[index - 1])
        index -= 1
      }
      list.count += 1
    }
    (list.entries + place).initialize(to: ExpressionEntry(key: key, value: value))
  }

  private static func remove(_ key: UnsafeRawBufferPointer, from list: inout EntryList) {
    let (place, found) = position(of: key, in: list)
    guard found else { return }
    for index in place..<list.count - 1 { list.entries[index] = list.entries[index + 1] }
    list.count -= 1
  }

  // MARK: The row

  /// Evaluates `current_document()`: the fields of the row, with its name and times.
  func currentDocument() -> ExpressionValue {
    var metadata: [ExpressionEntry] = []
    if let time = row.createTime {
      metadata.append(ExpressionEntry(key: Self.bytes("__create_time__"), value: .timestamp(time)))
    }
    if let name = row.name { metadata.append(ExpressionEntry(key: Self.bytes("__name__"), value: .reference(name))) }
    if let time = row.updateTime {
      metadata.append(ExpressionEntry(key: Self.bytes("__update_time__"), value: .timestamp(time)))
    }
    var counting = row.fields.makeIterator()
    var count = metadata.count
    while (try? counting.next()) ?? nil != nil { count += 1 }
    guard charge(16 * count), let memory = arena.take(ExpressionEntry.self, max(count, 1)) else {
      return exhausted(.memory)
    }
    var index = 0
    var pending = metadata[...]
    var fields = ExpressionEntries(fields: row.fields)
    var field = fields.next()
    while index < count {
      if let first = pending.first, field.map({ EncodedMap.compare(first.key, $0.key) != .greater }) ?? true {
        // A field cannot have a reserved name, except in a row that a stage computed. The metadata wins.
        if let key = field?.key, EncodedMap.compare(first.key, key) == .equal { field = fields.next() }
        (memory + index).initialize(to: first)
        pending.removeFirst()
      } else if let entry = field {
        (memory + index).initialize(to: entry)
        field = fields.next()
      } else {
        break
      }
      index += 1
    }
    return .map(UnsafeBufferPointer(start: memory, count: index))
  }
}
