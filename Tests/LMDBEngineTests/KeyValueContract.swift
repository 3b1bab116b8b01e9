import KeyValue
import Testing
import TestSupport

/// The contract that every storage engine must meet. Each case gets an empty store.
enum KeyValueContract {
  struct Case: CustomTestStringConvertible, Sendable {
    var testDescription: String
    var check: @Sendable (any KeyValueStore) throws -> Void
  }

  static let cases: [Case] = [
    Case(testDescription: "get, put, replace, remove", check: getPutRemove),
    Case(testDescription: "keys are ordered as unsigned bytes, prefixes first", check: order),
    Case(testDescription: "seeks move to the right entry", check: seeks),
    Case(testDescription: "a cursor past its end has no current entry", check: ends),
    Case(testDescription: "an empty store has no entries", check: emptyStore),
    Case(testDescription: "ranges include the lower bound and not the upper", check: ranges),
    Case(testDescription: "a snapshot keeps its state", check: isolation),
    Case(testDescription: "snapshots are reused without mixing them up", check: reusedSnapshots),
    Case(testDescription: "a thrown error rolls back the transaction", check: rollback),
    Case(testDescription: "a transaction reads its own writes", check: readYourWrites),
    Case(testDescription: "keys of every length, with decoys", check: longKeys),
    Case(testDescription: "removing long keys leaves their neighbors", check: longKeyRemoval),
    Case(testDescription: "values from 0 bytes to 1 MiB", check: values),
    Case(testDescription: "oversized keys and values are refused", check: oversized),
    Case(testDescription: "the number of entries is the number of keys", check: counts),
  ]

  @Sendable static func getPutRemove(_ store: any KeyValueStore) throws {
    try store.put([Entry([1], [10]), Entry([2], [20])])
    let before = try store.snapshot()
    #expect(try before.get([1]) == [10])
    #expect(try before.get([3]) == nil)
    before.end()
    try store.write { transaction throws(StorageError) in
      try transaction.put([1], [11, 11])
      #expect(try transaction.remove([2]))
      #expect(try !transaction.remove([2]))
    }
    #expect(try store.entries() == [Entry([1], [11, 11])])
  }

  @Sendable static func order(_ store: any KeyValueStore) throws {
    let keys: [Bytes] = [[0], [0, 0], [0, 255], [1], [127], [127, 0], [128], [128, 128], [255], [255, 255]]
    let entries = keys.map { Entry($0, [UInt8($0.count)]) }
    try store.put(entries.reversed())
    #expect(try store.entries() == entries)
    let snapshot = try store.snapshot()
    #expect(try snapshot.entriesBackwards() == entries.reversed())
  }

  @Sendable static func seeks(_ store: any KeyValueStore) throws {
    let keys: [Bytes] = [[2], [2, 0], [4], [6, 6]]
    try store.put(keys.map { Entry($0, [9]) })
    let snapshot = try store.snapshot()
    let cursor = try snapshot.makeCursor()
    for probe: Bytes in [[], [0], [2], [2, 0], [2, 0, 0], [3], [4], [5], [6], [6, 6], [6, 6, 0], [7]] {
      let atOrAfter = keys.first { !$0.lexicographicallyPrecedes(probe) }
      #expect(try cursor.seek(atOrAfter: probe) == (atOrAfter != nil), "at or after \(probe)")
      if let atOrAfter { #expect(Bytes(cursor.key) == atOrAfter, "at or after \(probe)") }
      let before = keys.last { $0.lexicographicallyPrecedes(probe) }
      #expect(try cursor.seek(before: probe) == (before != nil), "before \(probe)")
      if let before { #expect(Bytes(cursor.key) == before, "before \(probe)") }
    }
  }

  @Sendable static func ends(_ store: any KeyValueStore) throws {
    try store.put([Entry([1], [1]), Entry([2], [2])])
    let snapshot = try store.snapshot()
    let cursor = try snapshot.makeCursor()
    #expect(try !cursor.next())
    #expect(try !cursor.previous())
    #expect(try cursor.seek(atOrAfter: [2]))
    #expect(try !cursor.next())
    #expect(try !cursor.next())
    #expect(try !cursor.previous())
    #expect(try cursor.seek(before: [2]))
    #expect(try !cursor.previous())
    #expect(try !cursor.next())
    #expect(try cursor.seek(atOrAfter: [1]))
    #expect(try cursor.next())
    #expect(cursor.entry == Entry([2], [2]))
    #expect(try cursor.previous())
    #expect(cursor.entry == Entry([1], [1]))
  }

  @Sendable static func emptyStore(_ store: any KeyValueStore) throws {
    let snapshot = try store.snapshot()
    #expect(try snapshot.entries() == [])
    #expect(try snapshot.entriesBackwards() == [])
    #expect(try snapshot.get([1]) == nil)
    #expect(try snapshot.get(Bytes(repeating: 1, count: 3000)) == nil)
    #expect(try snapshot.get([]) == nil)
    try store.write { transaction throws(StorageError) in
      #expect(try !transaction.remove([1]))
      #expect(try !transaction.remove(Bytes(repeating: 1, count: 3000)))
      #expect(try transaction.removeRange(from: [], to: [255]) == 0)
    }
  }

  @Sendable static func ranges(_ store: any KeyValueStore) throws {
    let long = Bytes(repeating: 5, count: 2000)
    let entries = [[1], [2], [5], long, long + [0], [6], [7]].map { Entry($0, [0]) }
    try store.put(entries)
    try store.write { transaction throws(StorageError) in
      #expect(try transaction.removeRange(from: [3], to: [4]) == 0)
      #expect(try transaction.removeRange(from: [6], to: [2]) == 0)
      #expect(try transaction.removeRange(from: [2], to: long + [0]) == 3)
    }
    #expect(try store.entries().map(\.key) == [[1], long + [0], [6], [7]])
    try store.write { transaction throws(StorageError) in
      #expect(try transaction.removeRange(from: long, to: [7]) == 2)
      #expect(try transaction.removeRange(from: [], to: [255]) == 2)
    }
    #expect(try store.entries() == [])
    // Enough entries to empty whole pages.
    let many = (0..<5000).map { Entry([1, UInt8($0 >> 8), UInt8($0 & 255)], Bytes(repeating: 1, count: 40)) }
    try store.put(many)
    try store.write { transaction throws(StorageError) in
      #expect(try transaction.removeRange(from: many[10].key, to: many[4990].key) == 4980)
    }
    #expect(try store.entries() == Array(many[..<10] + many[4990...]))
  }

  @Sendable static func isolation(_ store: any KeyValueStore) throws {
    let old = [Entry([1], [1]), Entry(Bytes(repeating: 2, count: 600), [1])]
    try store.put(old)
    let snapshot = try store.snapshot()
    let cursor = try snapshot.makeCursor()
    #expect(try cursor.seek(atOrAfter: [1]))
    for round: UInt8 in 0..<20 {
      try store.put([Entry([1], [round]), Entry([1, round], [1]), Entry(Bytes(repeating: round, count: 600), [7])])
    }
    #expect(cursor.entry == old[0])
    #expect(try cursor.next())
    #expect(cursor.entry == old[1])
    #expect(try snapshot.entries() == old)
    #expect(try store.entries().count > 20)
    snapshot.end()
    snapshot.end()
  }

  @Sendable static func reusedSnapshots(_ store: any KeyValueStore) throws {
    try store.put([Entry([1], [1])])
    let first = try store.snapshot()
    first.end()
    let second = try store.snapshot()
    // The test still holds `first`. Ending it again must not end `second`.
    first.end()
    try store.put([Entry([1], [2])])
    #expect(try second.get([1]) == [1])
    let third = try store.snapshot()
    #expect(try third.get([1]) == [2])
    #expect(try second.get([1]) == [1])
    second.end()
    third.end()
    for round: UInt8 in 3..<100 {
      try store.put([Entry([1], [round])])
      let snapshots = try (0..<5).map { _ in try store.snapshot() }
      for (index, snapshot) in snapshots.enumerated() {
        let cursor = try snapshot.makeCursor()
        #expect(try cursor.seek(atOrAfter: [0]))
        #expect(cursor.entry == Entry([1], [round]))
        if index.isMultiple(of: 2) { snapshot.end() }
      }
    }
  }

  @Sendable static func rollback(_ store: any KeyValueStore) throws {
    let entries = [Entry([1], [1]), Entry(Bytes(repeating: 1, count: 700), [1])]
    try store.put(entries)
    #expect(throws: StorageError.rolledBack) {
      try store.write { transaction throws(StorageError) in
        try transaction.put([1], [2])
        try transaction.put([2], [2])
        try transaction.put(Bytes(repeating: 3, count: 2000), [2])
        try transaction.remove(entries[1].key)
        throw .rolledBack
      }
    }
    #expect(try store.entries() == entries)
    try store.put([Entry(Bytes(repeating: 3, count: 2000), [3])])
    #expect(try store.entries().count == 3)
  }

  @Sendable static func readYourWrites(_ store: any KeyValueStore) throws {
    let long = Bytes(repeating: 9, count: 1500)
    try store.put([Entry([5], [0])])
    try store.write { transaction throws(StorageError) in
      try transaction.put([1], [1])
      try transaction.put(long, [2])
      #expect(try transaction.get([1]) == [1])
      #expect(try transaction.get(long) == [2])
      let cursor = try transaction.makeCursor()
      #expect(try cursor.seek(atOrAfter: [2]))
      #expect(cursor.entry == Entry([5], [0]))
      try transaction.put([3], [3])
      #expect(try cursor.seek(atOrAfter: [2]))
      #expect(cursor.entry == Entry([3], [3]))
      #expect(try transaction.entries().map(\.key) == [[1], [3], [5], long])
      try transaction.remove([5])
      #expect(try transaction.get([5]) == nil)
      #expect(try transaction.entriesBackwards().map(\.key) == [long, [3], [1]])
    }
    #expect(try store.entries().map(\.key) == [[1], [3], long])
  }

  static let lengths = [
    1, 2, 509, 510, 511, 512, 513, 1011, 1012, 1013, 1014, 1020, 1021, 1022, 1023, 1024, 5000,
    KeyValueLimits.keyBytesMax - 1, KeyValueLimits.keyBytesMax,
  ]

  /// Variants of a key of each length: as it is, with three other last bytes, and with two other bytes in the middle.
  static var keysWithDecoys: [Bytes] {
    var keys: Set<Bytes> = []
    for length in lengths {
      let key = Bytes(repeating: 0x40, count: length)
      keys.insert(key)
      keys.insert(key.dropLast() + [0x00])
      keys.insert(key.dropLast() + [0x41])
      keys.insert(key.dropLast() + [0xFF])
      if length > 3 {
        var other = key
        other[length / 2] = 0x3F
        keys.insert(other)
        other[length / 2] = 0x00
        keys.insert(other)
      }
    }
    return keys.sorted { $0.lexicographicallyPrecedes($1) }
  }

  @Sendable static func longKeys(_ store: any KeyValueStore) throws {
    let entries = keysWithDecoys.enumerated().map { Entry($1, Bytes("\($0)".utf8)) }
    var random = SplitMix(seed: 510)
    try store.put(entries.shuffled(using: &random))
    let snapshot = try store.snapshot()
    #expect(try snapshot.entries() == entries)
    #expect(try snapshot.entriesBackwards() == entries.reversed())
    let cursor = try snapshot.makeCursor()
    for (index, entry) in entries.enumerated() {
      #expect(try snapshot.get(entry.key) == entry.value)
      #expect(try cursor.seek(atOrAfter: entry.key))
      #expect(cursor.entry == entry)
      #expect(try cursor.previous() == (index > 0))
      if index > 0 { #expect(cursor.entry == entries[index - 1]) }
      #expect(try cursor.seek(before: entry.key) == (index > 0))
      if index > 0 {
        #expect(cursor.entry == entries[index - 1])
        #expect(try cursor.next())
        #expect(cursor.entry == entry)
      }
      #expect(try cursor.seek(atOrAfter: entry.key + [0]) == (index + 1 < entries.count))
      if index + 1 < entries.count { #expect(cursor.entry == entries[index + 1]) }
      #expect(try snapshot.get(entry.key + [1]) == nil)
    }
  }

  @Sendable static func longKeyRemoval(_ store: any KeyValueStore) throws {
    var entries = keysWithDecoys.map { Entry($0, [1]) }
    try store.put(entries)
    while !entries.isEmpty {
      // A few at a time, from the middle outward.
      let count = min(7, entries.count)
      let start = (entries.count - count) / 2
      let removed = entries[start..<start + count]
      try store.write { transaction throws(StorageError) in
        for entry in removed {
          #expect(try transaction.remove(entry.key))
          #expect(try !transaction.remove(entry.key))
        }
      }
      entries.removeSubrange(start..<start + count)
      #expect(try store.entries() == entries)
    }
    #expect(try store.statistics().entries == 0)
  }

  @Sendable static func values(_ store: any KeyValueStore) throws {
    let sizes = [0, 1, 100, 2000, 2040, 4000, 4096, 4097, 70_000, 1 << 20]
    let short = sizes.enumerated().map { Entry([UInt8($0)], Bytes(repeating: UInt8($0), count: $1)) }
    let long = short.map { Entry(Bytes(repeating: 200, count: 800) + $0.key, $0.value) }
    try store.put(short + long)
    #expect(try store.entries() == short + long)
    // Values that grow, shrink and become empty in place.
    let moved = zip(short + long, (short + long).reversed()).map { Entry($0.key, $1.value) }
    try store.put(moved)
    #expect(try store.entries() == moved)
  }

  @Sendable static func oversized(_ store: any KeyValueStore) throws {
    let tooLong = Bytes(repeating: 1, count: KeyValueLimits.keyBytesMax + 1)
    try store.write { transaction throws(StorageError) in
      try transaction.put([1], [1])
      #expect(throws: StorageError.oversized(keyBytes: tooLong.count, valueBytes: 0)) {
        try transaction.put(tooLong, [])
      }
      #expect(throws: StorageError.oversized(keyBytes: 0, valueBytes: 1)) { try transaction.put([], [1]) }
      let tooLarge = KeyValueLimits.valueBytesMax + 1
      #expect(throws: StorageError.oversized(keyBytes: 1, valueBytes: tooLarge)) {
        try transaction.put([2], Bytes(repeating: 0, count: tooLarge))
      }
      #expect(try !transaction.remove(tooLong))
    }
    // A refused argument does not affect the rest of the transaction.
    #expect(try store.entries() == [Entry([1], [1])])
  }

  @Sendable static func counts(_ store: any KeyValueStore) throws {
    #expect(try store.statistics().entries == 0)
    let entries = keysWithDecoys.map { Entry($0, [1, 2, 3]) }
    try store.put(entries)
    let held = try store.snapshot()
    let statistics = try store.statistics()
    #expect(statistics.entries == entries.count)
    #expect(statistics.readers == 1)
    #expect(statistics.usedBytes > 0 && statistics.usedBytes <= statistics.fileBytes)
    #expect(statistics.fileBytes <= statistics.limitBytes)
    held.end()
    #expect(try store.statistics().readers == 0)
  }
}
