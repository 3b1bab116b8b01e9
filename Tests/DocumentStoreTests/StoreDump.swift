import FieldMatch
import DocumentModel
import DocumentStore
import KeyValueStore
import TestSupport
import Testing
import WireFormat

/// Every entry of a store.
struct StoreDump: Equatable {
  var entries: [[UInt8]: [UInt8]] = [:]

  init(_ db: TestDatabase, table: Table? = nil) throws {
    let snapshot = try db.store.snapshot()
    defer { snapshot.end() }
    let cursor = try snapshot.makeCursor()
    let start: [UInt8] = [table?.rawValue ?? 0]
    var isThere = try start.withUnsafeBytes { key throws(StorageError) in try cursor.seek(atOrAfter: key) }
    while isThere {
      if let table, cursor.key[0] != table.rawValue { break }
      entries[Array(cursor.key)] = Array(cursor.value)
      isThere = try cursor.next()
    }
  }
}

/// Compares the index entries of a store with what its documents say, worked out in another way than the store does.
enum IndexCheck {
  static func check(_ db: TestDatabase, _ comment: String = "") throws {
    var names: [UInt64: (parent: UInt64, name: String)] = [:]
    for (key, row) in try StoreDump(db, table: .fieldNames).entries {
      let number = Array(key.dropFirst()).withUnsafeBytes { bytes in
        var rest = bytes
        return OrderedCode.takeNumber(&rest)
      }
      names[try #require(number)] = row.withUnsafeBytes { bytes in
        var rest = bytes
        return (OrderedCode.takeNumber(&rest) ?? 0, String(decoding: rest, as: UTF8.self))
      }
    }
    var numbers: [UInt64: [[UInt8]: UInt64]] = [:]
    for (number, field) in names { numbers[field.parent, default: [:]][Array(field.name.utf8)] = number }

    var expected: Set<[UInt8]> = []
    for (key, row) in try StoreDump(db, table: .documents).entries {
      let prefixAndID = Array(key.dropFirst())
      var collection: [UInt8] = []
      var id: [UInt8] = []
      prefixAndID.withUnsafeBytes { bytes in
        var rest = bytes
        _ = OrderedCode.takeNumber(&rest)
        collection = Array(bytes.prefix(bytes.count - rest.count))
        id = Array(rest)
      }
      let fields = try EncodedFields(canonical: Array(row.dropFirst(21))).decoded()
      func add(_ map: MapValue, _ parent: UInt64) throws {
        for (name, value) in map.entries {
          let number = try #require(numbers[parent]?[Array(name.utf8)], "\(name) has no number \(comment)")
          var prefix = collection
          OrderedCode.append(number: number, to: &prefix)
          expected.insert([Table.ascendingEntries.rawValue] + prefix + (try code(value)) + id)
          if case .array(let elements) = value {
            for element in elements {
              expected.insert([Table.containmentEntries.rawValue] + prefix + (try code(element)) + id)
            }
          }
          if case .map(let inner) = value, inner.vectorComponents == nil { try add(inner, number) }
        }
      }
      try add(fields, 0)
    }
    var found = Set(try StoreDump(db, table: .ascendingEntries).entries.keys)
    found.formUnion(try StoreDump(db, table: .containmentEntries).entries.keys)
    try #require(expected.subtracting(found).isEmpty, "\(expected.subtracting(found).count) entries are missing \(comment)")
    try #require(found.subtracting(expected).isEmpty, "\(found.subtracting(expected).count) entries were left behind \(comment)")
  }

  private static func code(_ value: Value) throws -> [UInt8] {
    var map = MapValue()
    map["v"] = value
    return try EncodedFields(map).withMap { (map) throws(WireError) in
      var bytes: [UInt8] = []
      if let value = try map.value(for: "v") { try OrderedCode.append(value, to: &bytes) }
      return bytes
    }
  }
}
