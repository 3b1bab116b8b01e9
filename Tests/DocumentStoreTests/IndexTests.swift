import DocumentModel
import DocumentStore
import KeyEncoding
import Testing
import TestSupport
import WireFormat

@Suite struct IndexTests {
  /// After any writes, the entries are exactly those of the current documents.
  @Test(arguments: [21, 22, 23] as [UInt64]) func entriesFollowTheirDocuments(seed: UInt64) throws {
    let db = try TestDatabase()
    var random = SplitMix(seed: seed)
    var current = db
    for round in 0..<250 {
      var writes: [Write] = []
      for _ in 0..<random.pick([1, 1, 3]) {
        let key = document("c\(random.pick(["", "2", "/x/s"]))/\(random.documentID())")
        switch random.pick([0, 0, 0, 1, 2, 3, 4]) {
        case 1: writes.append(Write(.delete, key: key))
        case 2:
          let paths = (0..<2).map { _ in FieldPath(segments: [random.fieldName()]) }
          writes.append(Write(.update(EncodedFields(random.mapValue()), mask: FieldMask(paths)), key: key))
        case 3:
          let transform = FieldTransform(field("list"), .appendMissingElements([random.value(depth: 2, inArray: true)]))
          writes.append(Write(.update(.none, mask: FieldMask([])), key: key, transforms: [transform]))
        default: writes.append(Write(.update(EncodedFields(random.mapValue()), mask: nil), key: key))
        }
      }
      // Some commits fail and must change nothing.
      if random.chance(oneIn: 5) { writes.append(.set("c/never", if: .exists(true))) }
      _ = try? current.commit(CommitRequest(writes))
      if random.chance(oneIn: 50) { current = try current.reopened() }
      if round.isMultiple(of: 25) { try IndexCheck.check(current, "seed \(seed) round \(round)") }
    }
    try IndexCheck.check(current, "seed \(seed)")
    // Without documents there are no entries.
    for key in try StoreDump(current, table: .documents).entries.keys {
      var id: [UInt8] = []
      var path = ResourcePath.root
      try current.database.read { reader in
        try Array(key.dropFirst()).withUnsafeBytes { bytes in
          var rest = bytes
          path = try reader.collectionPath(OrderedCode.takeNumber(&rest) ?? 0)
          _ = OrderedCode.decode(lastID: rest, into: &id)
        }
      }
      try current.commit(Write(.delete, key: try #require(DocumentKey(path.appending(id)))))
    }
    #expect(try StoreDump(current, table: .documents).entries.isEmpty)
    #expect(try StoreDump(current, table: .ascendingEntries).entries.isEmpty)
    #expect(try StoreDump(current, table: .containmentEntries).entries.isEmpty)
  }

  /// The numbers of collections are assigned once and keep their meaning.
  @Test func numbersAreNeverReused() throws {
    let db = try TestDatabase()
    var seen: [String: UInt64] = [:]
    for round in 0..<5 {
      for name in ["a", "b\(round)", "c"] {
        try db.commit(.set("\(name)/x", (name, 1)))
        let number = try db.database.read { reader in try reader.collection(collection(name))?.number }
        #expect(seen[name] == nil || seen[name] == number)
        seen[name] = number
        try db.commit(.delete("\(name)/x"))
      }
    }
    #expect(Set(seen.values).count == seen.count)
  }

  /// Numbers assigned in a rolled-back transaction must not stay in the writer's cache.
  @Test func numbersOfFailedCommitsAreForgotten() throws {
    let db = try TestDatabase()
    let huge = Value.bytes(Array(repeating: 1, count: Limits.documentBytesMax))
    for round in 0..<5 {
      _ = try? db.commit(.set("new\(round)/x", ("field\(round)", huge)))
      try db.commit(.set("other\(round)/x", ("other\(round)", 1)))
    }
    try IndexCheck.check(db)
    try IndexCheck.check(db.reopened())
  }
}
