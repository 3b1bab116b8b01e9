import Basics
import Dispatch
import DocumentModel
import KeyValue
import LMDBEngine
import Synchronization
import Testing
import TestSupport
import WireFormat
@testable import DocumentStore

/// The bytes of documents that quotas count: they equal a scan after everything that can change them.
@Suite struct DocumentUseTests {
  /// The store of a database with a quota, which can be opened again.
  private struct World {
    let store: any KeyValueStore
    let quota: Quota
    let use: DocumentUse
    var database: DocumentDatabase

    init(limit: Int? = nil, _ store: (any KeyValueStore)? = nil) throws {
      self.store = try store ?? LMDBStore.open(.inMemory(mapBytes: 1 << 30))
      quota = Quota(.documents, of: "p", limit: limit)
      use = DocumentUse(quota)
      database = try Self.open(self.store, use)
    }

    private static func open(_ store: any KeyValueStore, _ use: DocumentUse) throws -> DocumentDatabase {
      let database = try DocumentDatabase(id: try #require(DatabaseID(project: "p")), store: store, use: use)
      try database.adopt()
      return database
    }

    mutating func restart() throws {
      database.drain()
      database = try Self.open(store, use)
      database.background.counting.wait()
    }

    @discardableResult
    func commit(_ writes: [Write]) -> Result<CommitOutcome, CommitError> {
      wait { done in database.commit(CommitRequest(writes), completion: done) }
    }

    /// The bytes by a scan, and checks that the stored and the counted ones are the same.
    func bytes() throws -> Int {
      let snapshot = try store.snapshot()
      defer { snapshot.end() }
      var reader = SnapshotReader(snapshot)
      let counted = try #require(try DocumentUse.count(snapshot))
      #expect(try DocumentUse.stored(&reader) == counted)
      #expect(quota.used == counted && use.bytes == counted)
      return counted
    }
  }

  /// Returns a write that sets a document to fields of about `size` bytes.
  private static func set(_ path: String, _ size: Int, if precondition: Precondition = .none) -> Write {
    .set(path, ("a", .string(String(repeating: "x", count: size))), if: precondition)
  }

  @Test func documentsCountWithPathFieldsAndOverhead() throws {
    let world = try World()
    #expect(try world.bytes() == 0)
    _ = try world.commit([.set("users/ann")]).get()
    #expect(try world.bytes() == "users/ann".utf8.count + DocumentUse.overheadBytes)
    _ = try world.commit([.set("users/ann/notes/1", ("a", 1))]).get()
    let fields = EncodedFields(MapValue([("a", 1)])).bytes.count
    #expect(
      try world.bytes() == "users/ann".utf8.count + "users/ann/notes/1".utf8.count + fields + 2
        * DocumentUse.overheadBytes)
    _ = try world.commit([.delete("users/ann/notes/1"), .delete("users/ann"), .delete("users/nobody")]).get()
    #expect(try world.bytes() == 0)
  }

  @Test(arguments: TestSeeds.of("HEARTH_USE_SEED", otherwise: [7, 11, 13]))
  func countsEqualAScanAfterRandomWork(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    var world = try World(limit: 60_000)
    var refused = 0
    for step in 0..<600 {
      let writes = (0..<Int.random(in: 1...4, using: &random)).map { _ -> Write in
        let path =
          "\(["a", "b", "c/x/deep"].randomElement(using: &random) ?? "a")/\(Int.random(in: 0..<60, using: &random))"
        switch Int.random(in: 0..<8, using: &random) {
        case 0...1: return .delete(path)
        case 2: return .set(path, ("n", 1), if: .exists(Bool.random(using: &random)))
        default: return Self.set(path, Int.random(in: 0..<1500, using: &random))
        }
      }
      if case .failure(.overQuota) = world.commit(writes) { refused += 1 }
      if step.isMultiple(of: 97) { try world.restart() }
      if step.isMultiple(of: 20) { #expect(try world.bytes() <= 60_000, "seed \(seed), step \(step)") }
    }
    #expect(refused > 0, "seed \(seed) never reaches the quota")
    let problems = try DatabaseCheck.run(try world.store.snapshot()).problems
    #expect(problems.isEmpty, "seed \(seed)")
    wait { done in world.database.clear { _ in done(()) } }
    #expect(try world.bytes() == 0)
  }

  @Test func commitsBeyondTheQuotaAreRefusedAndDeletesAreNot() throws {
    let world = try World(limit: 3000)
    for number in 0..<2 { _ = try world.commit([Self.set("c/\(number)", 1200)]).get() }
    let full = try world.bytes()
    guard case .failure(.overQuota(let error)) = world.commit([Self.set("c/2", 1200)]) else {
      Issue.record("the commit was not refused")
      return
    }
    #expect(error.message.contains("Project p") && error.message.contains("quota-documents"))
    #expect(error.message.contains("3000 bytes of documents"))
    #expect(try world.bytes() == full && world.quota.refusals == 1)
    // The same size, a smaller one, and one that grows only if the other writes of the commit did not shrink.
    _ = try world.commit([Self.set("c/1", 1200)]).get()
    _ = try world.commit([Self.set("c/1", 1000), Self.set("c/2", 100)]).get()
    world.quota.setLimit(100)
    guard case .failure(.overQuota) = world.commit([Self.set("c/1", 1001)]) else {
      Issue.record("a growing commit was not refused")
      return
    }
    _ = try world.commit([Self.set("c/1", 900)]).get()
    _ = try world.commit([.delete("c/0"), .delete("c/1"), .delete("c/2")]).get()
    #expect(try world.bytes() == 0)
  }

  @Test func concurrentCommitsFillTheQuotaAndNoMore() throws {
    let quota = Quota(.documents, of: "p", limit: 100_000)
    let stores = try (0..<2).map { _ in try LMDBStore.open(.inMemory(mapBytes: 1 << 30)) }
    let databases = try stores.enumerated().map { number, store in
      let database = try DocumentDatabase(
        id: try #require(DatabaseID(project: "p", database: "d\(number)")), store: store, use: DocumentUse(quota))
      try database.adopt()
      return database
    }
    let succeeded = Mutex(0)
    onThreads(8) { thread in
      for round in 0..<60 {
        let result = wait { done in
          databases[thread % 2].commit(
            CommitRequest([Self.set("c/\(thread)-\(round)", 500)]), completion: done)
        }
        if case .success = result { succeeded.withLock { $0 += 1 } }
        #expect(quota.used <= 100_000)
      }
    }
    let counted = try stores.reduce(0) { sum, store in
      let snapshot = try store.snapshot()
      defer { snapshot.end() }
      return sum + (try #require(try DocumentUse.count(snapshot)))
    }
    #expect(quota.used == counted)
    // No document of this size fits any more.
    #expect(100_000 - counted < 600 && succeeded.withLock { $0 } > 150)
  }

  @Test func failedTransactionGivesBackWhatItTook() throws {
    // The engine is full long before the quota, so transactions fail after they took their bytes.
    let world = try World(limit: 1 << 26, LMDBStore.open(.inMemory(mapBytes: 1 << 20)))
    var stored = 0
    for number in 0..<64 {
      guard case .success = world.commit([Self.set("c/\(number)", 100_000)]) else { break }
      stored += 1
    }
    #expect((1..<64).contains(stored))
    _ = try world.bytes()
    // A refused precondition takes nothing.
    _ = world.commit([Self.set("c/0", 10, if: .exists(false))])
    _ = world.commit([Self.set("c/small", 10)])
    _ = try world.bytes()
  }

  @Test func databaseOfAnOlderReleaseIsCountedOnce() throws {
    var world = try World()
    for number in 0..<50 { _ = try world.commit([Self.set("c/\(number)", number)]).get() }
    let bytes = try world.bytes()
    world.database.drain()
    try world.store.write { (transaction) throws(StorageError) in try transaction.put(.documentBytesVersion, 1) }
    world.use.set(0)
    try world.restart()
    // The count is stored by work that the writer's queue runs.
    world.database.queue.drain()
    #expect(try world.bytes() == bytes)
    _ = try world.commit([Self.set("c/more", 10), .delete("c/1")]).get()
    _ = try world.bytes()
  }

  @Test func loadedDocumentsCount() throws {
    let world = try World()
    let loader = try world.database.makeLoader()
    func item(_ path: String, _ size: Int) throws -> BulkLoader.Item {
      try BulkLoader.Item(
        key: document(path), fields: EncodedFields(MapValue([("a", .string(String(repeating: "x", count: size)))])))
    }
    try loader.load([try item("c/1", 10), try item("c/2", 20)])
    try loader.load([try item("c/1", 5), try item("c/3", 30), try item("c/3", 40)], mayReplace: true)
    // The next commit takes up what was loaded.
    _ = try world.commit([Self.set("d/1", 1)]).get()
    let sizes = ["c/1": 5, "c/2": 20, "c/3": 40, "d/1": 1]
    let expected = sizes.reduce(0) { sum, document in
      let fields = EncodedFields(MapValue([("a", .string(String(repeating: "x", count: document.value)))]))
      return sum + document.key.utf8.count + fields.bytes.count + DocumentUse.overheadBytes
    }
    #expect(try world.bytes() == expected)
  }
}
