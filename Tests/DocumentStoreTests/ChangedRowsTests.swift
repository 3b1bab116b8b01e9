import DocumentModel
import KeyValue
import LMDBEngine
import Testing
import TestSupport
import WireFormat

@testable import DocumentStore

/// The changes of a database since an earlier position, merged into a copy.
@Suite struct ChangedRowsTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A full copy of a database, and changes that follow each other.
  private struct Chain {
    var base: String
    var positions: [DatabasePosition]
    var changes: [[UInt8]] = []
    /// The rows of the database at each position.
    var dumps: [StoreDump]
  }

  private static func position(_ store: any KeyValueStore) throws -> DatabasePosition {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    return try DatabasePosition(snapshot)
  }

  private static func obstacle(_ db: TestDatabase, since: DatabasePosition) throws -> ChangedRows.Obstacle? {
    let snapshot = try db.store.snapshot()
    defer { snapshot.end() }
    return try ChangedRows.obstacle(snapshot, since: since)
  }

  private static func changes(_ db: TestDatabase, since: DatabasePosition) throws -> [UInt8] {
    let snapshot = try db.store.snapshot()
    defer { snapshot.end() }
    var bytes: [UInt8] = []
    try ChangedRows.write(snapshot, since: since) { bytes += $0 }
    return bytes
  }

  private func begin(_ db: TestDatabase, _ name: String) throws -> Chain {
    try db.store.copy(toFile: directory.file(name))
    return Chain(base: name, positions: [try Self.position(db.store)], dumps: [try StoreDump(db.store)])
  }

  private func extend(_ chain: inout Chain, _ db: TestDatabase) throws {
    chain.changes.append(try Self.changes(db, since: try #require(chain.positions.last)))
    chain.positions.append(try Self.position(db.store))
    chain.dumps.append(try StoreDump(db.store))
  }

  /// Copies the base of a chain and merges its first changes, in parts of random sizes.
  private func restore(_ chain: Chain, count: Int, _ random: inout SplitMix) throws -> StoreDump {
    let name = "restored-\(UInt64.random(in: 0 ... .max, using: &random))"
    try LMDBStore.open(LMDBOptions(path: directory.file(chain.base), readOnly: true))
      .copy(toFile: directory.file(name))
    let store = try LMDBStore.open(LMDBOptions(path: directory.file(name), mapBytes: 1 << 28))
    for index in 0..<count {
      let merge = try ChangedRowsMerge(into: store, since: chain.positions[index])
      var rest = chain.changes[index][...]
      while !rest.isEmpty {
        let part = rest.prefix(Int.random(in: 1...4096, using: &random))
        try merge.add(Array(part))
        rest = rest.dropFirst(part.count)
      }
      try merge.finish(at: chain.positions[index + 1])
    }
    return try StoreDump(store)
  }

  private static func randomWrite(_ random: inout SplitMix) -> Write {
    let long = String(repeating: "long", count: 300)
    let collections = ["c", "d", "c/x/s", "c/\(long)/s", "e/\(Int.random(in: 0..<40, using: &random))/deep"]
    let path = "\(random.pick(collections))/\(random.pick(["a", "b", "__id7__", long, "z", random.documentID()]))"
    guard Int.random(in: 0..<4, using: &random) > 0 else { return .delete(path) }
    return Write(
      .update(EncodedFields(DeclaredIndexTests.randomDocument(&random)), mask: nil), key: document(path))
  }

  /// Random commits with expiry of history and log: a restored member of a chain has every row of its moment, including
  /// index entries, history and log.
  @Test(arguments: [71, 72, 73, 74] as [UInt64]) func everyMemberOfAChainIsRestored(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let db = try TestDatabase(
      retention: Retention(historySeconds: 300, changeLogSeconds: 1800),
      indexes: DeclaredIndexTests.randomConfiguration(&random))
    try db.finishIndexes()
    try db.commit(.set("c/a", ("n", 1)))
    var chain = try begin(db, "base")
    for step in 0..<12 {
      for _ in 0..<Int.random(in: 0..<40, using: &random) {
        var writes: [DocumentKey: Write] = [:]
        for _ in 0..<Int.random(in: 1..<4, using: &random) {
          let write = Self.randomWrite(&random)
          writes[write.key] = write
        }
        var request = CommitRequest(Array(writes.values))
        if random.chance(oneIn: 2) { request.id = .random(using: &random) }
        try db.commit(request)
        db.time.advance(seconds: Int.random(in: 0..<30, using: &random))
      }
      try db.finishIndexes()
      try db.maintain()
      guard try Self.obstacle(db, since: try #require(chain.positions.last)) == nil else {
        chain = try begin(db, "base-\(step)")
        continue
      }
      try extend(&chain, db)
    }
    #expect(chain.changes.count > 1, "seed \(seed)")
    for count in 0...chain.changes.count {
      #expect(try restore(chain, count: count, &random) == chain.dumps[count], "seed \(seed), member \(count)")
    }
  }

  @Test func obstaclesAreNamed() throws {
    let retention = Retention(historySeconds: 300, changeLogSeconds: 900)
    let db = try TestDatabase(retention: retention)
    let empty = try Self.position(db.store)
    // Documents that are loaded into an empty database are not in its log.
    #expect(try Self.obstacle(db, since: empty) == .replaced)
    try db.commit(.set("c/a"))
    let first = try Self.position(db.store)
    #expect(try Self.obstacle(db, since: first) == nil)
    db.time.advance(seconds: 1)
    try db.commit(.set("c/b"))
    #expect(try Self.obstacle(db, since: first) == nil)
    var other = first
    other.version -= 1
    #expect(try Self.obstacle(db, since: other) == .replaced, "no commit has this version")
    other = first
    other.incarnation += 1
    #expect(try Self.obstacle(db, since: other) == .replaced)
    other = try Self.position(db.store)
    other.version += 1
    #expect(try Self.obstacle(db, since: other) == .replaced, "the position is in the future")
    let indexed = try db.reopened(
      indexes: IndexConfiguration(indexes: [DeclaredIndexTests.index("c", ("a", .ascending), ("b", .ascending))]))
    #expect(try Self.obstacle(indexed, since: first) == .reindexed)
    let later = try TestDatabase(retention: retention)
    try later.commit(.set("c/a"))
    let old = try Self.position(later.store)
    for _ in 0..<3 {
      later.time.advance(seconds: 2000)
      try later.commit(.set("c/b", ("n", .integer(later.time.now))))
      try later.maintain()
    }
    #expect(try Self.obstacle(later, since: old) == .trimmed)
    try later.clear()
    #expect(try Self.obstacle(later, since: old) == .replaced)
  }

  /// A load into a new database is no change either, but the next changes follow it.
  @Test func changesFollowALoad() throws {
    let db = try TestDatabase()
    let empty = try Self.position(db.store)
    db.time.advance(seconds: 5)
    let loader = try db.database.makeLoader()
    for path in ["c/a", "c/b", "d/c"] {
      try loader.load([try BulkLoader.Item(key: document(path), fields: fields(("n", 1)))])
    }
    #expect(try Self.obstacle(db, since: empty) == .replaced)
    let loaded = try Self.position(db.store)
    #expect(try Self.obstacle(db, since: loaded) == nil)
    var chain = try begin(db, "base")
    try db.commit(.set("c/a", ("n", 2)), .delete("c/b"))
    try extend(&chain, db)
    var random = SplitMix(seed: 2)
    #expect(try restore(chain, count: 1, &random) == chain.dumps[1])
    let report = try db.database.read { try DatabaseCheck.run($0.snapshot) }
    #expect(report.problems.isEmpty)
  }

  /// A load into a database that was emptied before is not in its log either.
  @Test func loadedDocumentsAreNoChanges() throws {
    let db = try TestDatabase(retention: Retention(historySeconds: 300))
    try db.commit(.set("c/a"))
    db.time.advance(seconds: 1)
    try db.commit(.delete("c/a"))
    let before = try Self.position(db.store)
    db.time.advance(seconds: 1000)
    try db.maintain()
    #expect(try DatabaseContents.isEmpty(db.store.snapshot()))
    let loader = try db.database.makeLoader()
    try loader.load([try BulkLoader.Item(key: document("c/b"), fields: fields(("n", 1)))])
    #expect(try Self.obstacle(db, since: before) == .trimmed)
    let after = try Self.position(db.store)
    var chain = try begin(db, "base")
    #expect(try Self.obstacle(db, since: after) == nil)
    try db.commit(.set("c/b", ("n", 2)), .set("d/c", ("m", 3)))
    try extend(&chain, db)
    var random = SplitMix(seed: 1)
    #expect(try restore(chain, count: 1, &random) == chain.dumps[1])
  }

  @Test func damagedChangesAreRefused() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/a", ("n", 1)))
    var chain = try begin(db, "base")
    try db.commit(.set("c/a", ("n", 2)), .set("c/b", ("text", "something")), .delete("c/none"))
    try extend(&chain, db)
    var random = SplitMix(seed: 5)
    let intact = chain.changes[0]
    for length in stride(from: 0, to: intact.count, by: 7) {
      chain.changes[0] = Array(intact[..<length])
      #expect(throws: StorageError.self, "\(length) bytes") { try restore(chain, count: 1, &random) }
    }
    // No damage ends the process. Damage that the merge does not notice changes the digest of the file.
    for _ in 0..<300 {
      chain.changes[0] = intact
      chain.changes[0][Int.random(in: intact.indices, using: &random)] ^= UInt8(
        1 << Int.random(in: 0..<8, using: &random))
      _ = try? restore(chain, count: 1, &random)
    }
    chain.changes[0] = intact
    #expect(try restore(chain, count: 1, &random) == chain.dumps[1])
    chain.positions[0].version -= 1
    #expect(throws: StorageError.self, "the changes follow another state") { try restore(chain, count: 1, &random) }
  }

  @Test func positionsAreTexts() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/a"))
    let position = try Self.position(db.store)
    #expect(DatabasePosition(text: position.text) == position)
    for text in ["", "1:2:3:4:5", "1:2:3:4:5:6:7", "1:2:3:4:5:x", ":::::", "-1:2:3:4:5:6"] {
      #expect(DatabasePosition(text: text) == nil, "\(text)")
    }
  }
}
