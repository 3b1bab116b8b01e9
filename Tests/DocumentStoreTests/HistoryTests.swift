import DocumentModel
import KeyEncoding
import KeyValue
import LMDBEngine
import Testing
import TestSupport
import WireFormat

@testable import DocumentStore

/// The states of a database at all its versions, as plain dictionaries.
private struct Model {
  private(set) var states: [(version: Int64, documents: [DocumentKey: Stored])] = []

  init(created: Int64) { states = [(created, [:])] }

  var newest: [DocumentKey: Stored] { states.last?.documents ?? [:] }

  mutating func add(_ version: Int64, _ documents: [DocumentKey: Stored]) { states.append((version, documents)) }

  func at(_ version: Int64) -> [DocumentKey: Stored] {
    states.last { $0.version <= version }?.documents ?? [:]
  }
}

/// Makes random commits and records the resulting states.
private struct History {
  let db: TestDatabase
  var model: Model
  var random: SplitMix
  let collections: [ResourcePath]

  init(seed: UInt64, _ db: TestDatabase) throws {
    self.db = db
    random = SplitMix(seed: seed)
    model = Model(created: try db.meta(.created))
    let nasty = random.documentID()
    collections = [
      "c", "c\u{0}", "d", "c/a/s", "c/__id7__/s", "c/missing/s", "c/missing/s/deep/t", "c/a\u{0}/s", "d/x/c", "\u{E9}",
      "c/\(nasty)/s", "c/\(String(repeating: "long", count: 180))/s",
    ].map(collection)
  }

  mutating func commit() throws {
    db.time.now += random.pick([0, 1, 1000, 1_000_000])
    var state = model.newest
    var writes: [Write] = []
    var changed: Set<DocumentKey> = []
    for _ in 0..<random.pick([1, 1, 1, 2, 5]) {
      let path = random.pick(collections).appending(random.documentID())
      guard let key = DocumentKey(path), !changed.contains(key) else { continue }
      changed.insert(key)
      let isThere = state[key] != nil
      if isThere, random.chance(oneIn: 3) {
        writes.append(Write(.delete, key: key))
        if random.chance(oneIn: 3) { writes.append(Write(.update(fields(("again", 1)), mask: nil), key: key)) }
      } else {
        writes.append(Write(.update(EncodedFields(random.mapValue()), mask: nil), key: key))
      }
    }
    let outcome = try db.commit(CommitRequest(writes))
    let version = outcome.version.microseconds
    for (index, write) in writes.enumerated() {
      switch write.operation {
      case .update(let fields, _):
        let map = try fields.decoded()
        let wasDeleted = index > 0 && writes[index - 1].key == write.key
        if let old = state[write.key], old.fields == map, !wasDeleted { continue }
        var stored = try #require(try stored(write.key))
        stored.fields = map
        stored.create = wasDeleted ? version : state[write.key]?.create ?? version
        stored.update = version
        state[write.key] = stored
      case .delete:
        if index + 1 == writes.count || writes[index + 1].key != write.key { state[write.key] = nil }
      case .verify: break
      }
    }
    model.add(version, state)
  }

  private func stored(_ key: DocumentKey) throws -> Stored? {
    try db.database.read { reader in try reader.document(key).map { try Stored($0) } }
  }
}

@Suite struct HistoryTests {
  @Test(arguments: [1, 2] as [UInt64]) func everyPastStateReadsAsItWas(seed: UInt64) throws {
    var history = try History(seed: seed, TestDatabase())
    for _ in 0..<120 { try history.commit() }
    let db = history.db
    let keys = Set(history.model.states.flatMap { $0.documents.keys })
    for (version, documents) in history.model.states where version >= (try db.meta(.historyFrom)) {
      for key in keys where history.random.chance(oneIn: 3) {
        try #require(try db.get(key.path.text, at: version) == documents[key], "seed \(seed), \(key) at \(version)")
      }
      if history.random.chance(oneIn: 15) { try check(db, documents, at: version, "seed \(seed)") }
    }
    try check(db, history.model.newest, at: nil, "seed \(seed)")
    try IndexCheck.check(db, "seed \(seed)")
  }

  /// Compares scans, walks and segments at a version with the model.
  private func check(
    _ db: TestDatabase, _ documents: [DocumentKey: Stored], at version: Int64?, _ comment: String
  ) throws {
    let comment = "\(comment) at \(version.map(String.init) ?? "the newest")"
    try db.database.read { reader in
      // One collection at a time.
      var byCollection: [ResourcePath: [DocumentKey]] = [:]
      for key in documents.keys { byCollection[key.collection, default: []].append(key) }
      for (path, keys) in byCollection {
        let row = try #require(try reader.collection(path))
        let sorted = keys.sorted()
        for (start, expected) in [(DocumentIterator.Start.beginning, sorted[...])]
          + some(sorted.indices).map({ (DocumentIterator.Start.after(Array(sorted[$0].id)), sorted[($0 + 1)...]) })
          + some(sorted.indices).map({ (DocumentIterator.Start.at(Array(sorted[$0].id)), sorted[$0...]) })
        {
          var scan = try DocumentIterator(reader.snapshot, collection: row.number, from: start, at: version)
          var found: [DocumentKey] = []
          while let document = try scan.next() {
            var id: [UInt8] = []
            scan.appendID(to: &id)
            let key = try #require(DocumentKey(path.appending(id)))
            found.append(key)
            try #require(try Stored(document) == documents[key], "\(comment) \(key)")
          }
          try #require(found == Array(expected), "\(comment), scan of \(path) from \(start)")
        }
      }
      // Segments below every existing path.
      var below: [ResourcePath: Set<[UInt8]>] = [:]
      for key in documents.keys {
        var path = ResourcePath.root
        for segment in key.path.segments {
          // A document's own segment counts only if there are documents below it.
          let next = path.appending(segment)
          if !(path.isCollection && next == key.path) { below[path, default: []].insert(Array(segment)) }
          path = next
        }
      }
      for (path, segments) in below {
        let sorted = segments.sorted { ResourceID.compare($0, $1) == .less }
        for (after, expected) in [([UInt8]?.none, sorted[...])]
          + some(sorted.indices).map({ (sorted[$0], sorted[($0 + 1)...]) })
        {
          var found: [[UInt8]] = []
          var walk = try SubtreeSegments(reader.snapshot, below: path, after: after, at: version)
          while let segment = try walk.next() { found.append(segment) }
          try #require(found == Array(expected), "\(comment), segments below \(path.text)")
        }
      }
      // The whole tree, missing parents included.
      try checkWalks(reader, documents, at: version, comment)
    }
  }

  /// Returns a few positions spread over a list.
  private func some(_ indices: Range<Int>) -> [Int] {
    Array(stride(from: indices.lowerBound, to: indices.upperBound, by: max(1, indices.count / 4)))
  }

  private func checkWalks(
    _ reader: SnapshotReader, _ documents: [DocumentKey: Stored], at version: Int64?, _ comment: String
  ) throws {
    var all = Set(documents.keys)
    for key in documents.keys {
      var path = key.path.parent.parent
      while let parent = DocumentKey(path) {
        all.insert(parent)
        path = path.parent.parent
      }
    }
    let sorted = all.sorted()
    for root in [
      ResourcePath.root, collection("c"), document("c/a").path, document("c/missing").path, collection("none"),
    ] {
      let expected = sorted.filter { $0.path.isAtOrBelow(root) && $0.path != root }
      // From the start, and resumed after a document.
      for position in [-1] + some(expected.indices) {
        var walk = try SubtreeIterator(
          reader.snapshot, below: root, after: position < 0 ? nil : expected[position], at: version)
        var found: [DocumentKey] = []
        while let step = try walk.next() {
          found.append(step.key)
          try #require(try step.document.map { try Stored($0) } == documents[step.key], "\(comment) \(step.key)")
        }
        try #require(
          found == Array(expected[(position + 1)...]), "\(comment), walk below \(root.text) after \(position)")
      }
    }
  }

  // MARK: Readable times

  @Test func refusesUnreadableTimes() throws {
    let db = try TestDatabase()
    let created = try db.meta(.created)
    db.time.advance(seconds: 10)
    let first = try db.commit(.set("c/x", ("a", 1))).version.microseconds
    #expect(try db.get("c/x", at: first) != nil)
    #expect(try db.get("c/x", at: first - 1) == nil)
    #expect(try db.get("c/x", at: created) == nil)
    #expect(throws: CommitError.readTimeBeforeDatabase) { try db.get("c/x", at: created - 1) }
    #expect(throws: CommitError.readTimeInFuture) { try db.get("c/x", at: db.time.now + 1) }
    db.time.advance(seconds: 5)
    #expect(try db.get("c/x", at: db.time.now)?.update == first)
  }

  /// After a read at a time later than the last commit, the state at that time must not change.
  @Test func aStateOnceReadDoesNotChange() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("a", 1)))
    db.time.advance(seconds: 10)
    let moment = db.time.now
    let seen = try db.get("c/x", at: moment)
    db.time.advance(seconds: -5)
    let later = try db.commit(.set("c/x", ("a", 2))).version.microseconds
    #expect(later > moment)
    #expect(try db.get("c/x", at: moment) == seen)
    try db.clear()
    #expect(try db.meta(.lastVersion) > later)
  }

  /// Readers and writers run side by side. The state at a time must be the same whenever it is read.
  @Test func pastReadsAreStableUnderLoad() throws {
    let db = try TestDatabase()
    onThreads(4) { thread in
      for round in 0..<150 {
        if thread == 0 {
          db.time.now += 1
          let moment = db.time.now
          guard let first = try? db.get("c/x", at: moment) else { continue }
          for _ in 0..<3 {
            let again = try? db.get("c/x", at: moment)
            #expect(again == first, "moment \(moment)")
          }
        } else {
          _ = try? db.commit(.set("c/x", ("t", .integer(Int64(thread))), ("r", .integer(Int64(round)))))
        }
      }
    }
  }

  /// A creation leaves no before-image. Older releases left an empty one, with the same meaning.
  @Test(arguments: [false, true]) func documentsAreMissingBeforeTheirCreation(hasEmptyImages: Bool) throws {
    let db = try TestDatabase()
    let versions = try [
      Write.set("c/other"), .set("c/x", ("n", 1)), .set("c/x", ("n", 2)), .delete("c/x"), .set("c/x", ("n", 3)),
      .set("c/x", ("n", 4)), .set("c/x/s/y"),
    ].map { try db.commit($0).version.microseconds }
    let number = try db.database.read { try $0.collection(collection("c"))?.number }
    #expect(try StoreDump(db, table: .history).entries.count == 3)
    if hasEmptyImages {
      for version in [versions[1], versions[4]] {
        var key = StorageKey()
        key.begin(.history)
        key.append(number: try #require(number))
        key.append(segment: Array("x".utf8))
        key.append(version: version)
        try db.store.write { (transaction) throws(StorageError) in
          try key.withBytes { (key) throws(StorageError) in
            try transaction.put(key, UnsafeRawBufferPointer(start: nil, count: 0))
          }
        }
      }
    }
    for (version, value) in zip(versions, [nil, 1, 2, nil, 3, 4, 4] as [Value?]) {
      for at in version == versions[0] ? [version - 1, version] : [version] {
        #expect(try db.get("c/x", at: at)?.fields["n"] == value)
        try db.database.read { reader in
          var scan = try DocumentIterator(reader.snapshot, collection: try #require(number), at: at)
          var found: [String] = []
          while try scan.next() != nil {
            var id: [UInt8] = []
            scan.appendID(to: &id)
            found.append(String(decoding: id, as: UTF8.self))
          }
          #expect(found == (at < versions[0] ? [] : ["other"]) + (value == nil ? [] : ["x"]), "at \(at)")
        }
      }
    }
    let report = try db.database.read { try DatabaseCheck.run($0.snapshot) }
    #expect(report.problems == [])
  }

  // MARK: Trimming

  @Test(arguments: [11, 12] as [UInt64]) func trimmingKeepsReadableStates(seed: UInt64) throws {
    let retention = Retention(historySeconds: 300, changeLogSeconds: 900)
    var history = try History(seed: seed, TestDatabase(retention: retention))
    let db = history.db
    for _ in 0..<25 {
      for _ in 0..<8 { try history.commit() }
      db.time.advance(seconds: history.random.pick([1, 40, 100, 400]))
      try db.maintain()
      let from = try db.meta(.historyFrom)
      #expect(from <= max(try db.meta(.created), db.time.now - 300_000_000))
      for (version, documents) in history.model.states {
        guard version >= from else {
          let error = version < (try db.meta(.created)) ? CommitError.readTimeBeforeDatabase : .readTimeTooOld
          #expect(throws: error) { try db.get("c/a", at: version) }
          continue
        }
        if history.random.chance(oneIn: 40) { try check(db, documents, at: version, "seed \(seed)") }
      }
      // Changes and deletions after `historyFrom` have before-images, and others have none. The log is alike.
      let logFrom = try db.meta(.changeLogFrom)
      #expect(logFrom <= from)
      let log = try StoreDump(db, table: .changeLog).entries
      let versions = log.keys.map { key in Array(key[1..<9]).withUnsafeBytes { OrderedCode.version(atEndOf: $0) ?? 0 } }
      #expect(versions.allSatisfy { $0 > logFrom })
      #expect(log.count == Int(try db.meta(.changeLogCount)))
      #expect(try StoreDump(db, table: .collectionChanges).entries.count == log.count)
      let images = zip(history.model.states, history.model.states.dropFirst()).reduce(0) { count, pair in
        let (before, after) = pair
        return after.version > from ? count + before.documents.count { after.documents[$0.key] != $0.value } : count
      }
      #expect(try StoreDump(db, table: .history).entries.count == images)
    }
    // In the end, everything is removed.
    db.time.advance(seconds: 2000)
    try db.maintain()
    #expect(try StoreDump(db, table: .history).entries.isEmpty)
    #expect(try StoreDump(db, table: .changeLog).entries.isEmpty)
    #expect(try db.meta(.changeLogCount) == 0)
    try check(db, history.model.newest, at: nil, "seed \(seed)")
    try IndexCheck.check(db)
  }

  /// One commit larger than a batch, and many batches.
  @Test func largeCommitsAreTrimmedWhole() throws {
    let db = try TestDatabase(retention: Retention(historySeconds: 300, changeLogSeconds: 300))
    func many(_ value: Int64) -> CommitRequest {
      CommitRequest((0..<2500).map { .set("c/d\($0)", ("n", .integer(value))) })
    }
    let first = try db.commit(many(1)).version.microseconds
    db.time.advance(seconds: 1)
    let second = try db.commit(many(2)).version.microseconds
    db.time.advance(seconds: 200)
    let third = try db.commit(.set("c/d0", ("n", 3))).version.microseconds
    db.time.advance(seconds: 200)
    try db.maintain()
    // The second commit's before-images are removed with it, so its own version is the first readable one.
    #expect(try db.meta(.historyFrom) == second)
    #expect(throws: CommitError.readTimeTooOld) { try db.get("c/d0", at: second - 1) }
    #expect(throws: CommitError.readTimeTooOld) { try db.get("c/d0", at: first) }
    #expect(try db.get("c/d0", at: second)?.fields["n"] == 2)
    #expect(try db.get("c/d0", at: third - 1)?.fields["n"] == 2)
    #expect(try StoreDump(db, table: .history).entries.count == 1)
  }

  /// A year forward, a commit, and back: all later versions are ahead of the clock.
  @Test func theHistoryIsBoundedAfterAWrongClock() throws {
    let db = try TestDatabase(retention: Retention(historySeconds: 300))
    try db.commit(.set("c/d", ("n", -1)))
    db.time.advance(seconds: 365 * 86_400)
    try db.commit(.set("c/d", ("n", 0)))
    db.time.advance(seconds: -365 * 86_400)
    var versions: [Int64] = []
    for round in 1...60 {
      versions.append(try db.commit(.set("c/d", ("n", .integer(Int64(round))))).version.microseconds)
      db.time.advance(seconds: 20)
      try db.maintain()
      // The history covers 300 seconds, at most a minute and a mark more.
      #expect(try StoreDump(db, table: .history).entries.count <= (300 + 60 + 40) / 20)
    }
    #expect(versions[0] > db.time.now)
    func isReadable(_ version: Int64) throws -> Bool {
      do {
        try db.database.read { try db.database.checkReadable(version, &$0) }
        return true
      } catch CommitError.readTimeTooOld { return false }
    }
    // 15 commits in 300 seconds.
    for version in versions.suffix(15) { #expect(try isReadable(version)) }
    #expect(try !isReadable(versions[60 - 21]))
    // When the clock has caught up, versions are times again.
    db.time.advance(seconds: 366 * 86_400)
    try db.maintain()
    #expect(try StoreDump(db, table: .history).entries.isEmpty)
  }

  /// After a restart the ages of versions are unknown, so the number of changes bounds the history.
  @Test func theHistoryIsBoundedByCountAfterAWrongClock() throws {
    let db = try TestDatabase(retention: Retention(changeLogEntriesMax: 1000))
    db.time.advance(seconds: 365 * 86_400)
    try db.commit(.set("c/d0", ("n", -1)))
    db.time.advance(seconds: -365 * 86_400)
    for round in 0..<40 {
      for part in 0..<10 {
        try db.commit(CommitRequest((0..<10).map { .set("c/d\($0)", ("n", .integer(Int64(round * 10 + part)))) }))
      }
      try db.maintain()
      #expect(try db.meta(.changeLogCount) <= 1000 + Int64(Trimmer.batchEntriesMax) + 100)
      #expect(try StoreDump(db, table: .history).entries.count <= 1000 + Trimmer.batchEntriesMax + 100)
    }
    #expect(try db.meta(.historyFrom) > db.time.now)
  }

  @Test func theLogIsTrimmedByCount() throws {
    let retention = Retention(historySeconds: 300, changeLogSeconds: 86_400, changeLogEntriesMax: 1000)
    let db = try TestDatabase(retention: retention)
    for round in 0..<400 {
      try db.commit(CommitRequest((0..<10).map { .set("c/d\($0)", ("n", .integer(Int64(round)))) }))
      db.time.advance(seconds: 1)
    }
    // 4000 changes in 400 seconds: entries that the history still needs stay, regardless of the count.
    try db.maintain()
    #expect(try db.meta(.changeLogCount) >= 2900)
    db.time.advance(seconds: 600)
    try db.maintain()
    #expect(try db.meta(.changeLogCount) == 1000)
    #expect(try StoreDump(db, table: .changeLog).entries.count == 1000)
    #expect(try StoreDump(db, table: .history).entries.isEmpty)
  }

  /// Limits on age and count together: entries that are too old are removed, and of the others only the excess.
  @Test func trimmingByCountRemovesOnlyTheExcess() throws {
    let retention = Retention(historySeconds: 300, changeLogSeconds: 1000, changeLogEntriesMax: 1000)
    let db = try TestDatabase(retention: retention)
    for _ in 0..<5 { try db.commit(.set("old/x", ("n", .integer(Int64.random(in: 0...Int64.max))))) }
    db.time.advance(seconds: 800)
    for round in 0..<310 {
      try db.commit(CommitRequest((0..<10).map { .set("c/d\($0)", ("n", .integer(Int64(round)))) }))
    }
    db.time.advance(seconds: 400)
    try db.maintain()
    #expect(try db.meta(.changeLogCount) == 1000)
    // Nothing more is due now.
    let before = try StoreDump(db)
    try db.maintain()
    #expect(try StoreDump(db) == before)
  }

  @Test func oldUnchangedDocumentsStayReadable() throws {
    let db = try TestDatabase(retention: Retention(historySeconds: 300))
    let first = try db.commit(.set("c/x", ("a", 1))).version.microseconds
    db.time.advance(seconds: 100_000)
    try db.maintain()
    let transaction = try db.begin(.readOnly)
    let second = try db.commit(.set("c/x", ("a", 2))).version.microseconds
    try db.maintain()
    #expect(try db.get("c/x", in: transaction)?.fields["a"] == 1)
    #expect(try db.get("c/x", at: first)?.fields["a"] == 1)
    #expect(try db.get("c/x", at: second)?.fields["a"] == 2)
  }

  // MARK: Loading

  @Test func loadedDocumentsExistFromTheLoadOn() throws {
    let db = try TestDatabase()
    let created = try db.meta(.created)
    db.time.advance(seconds: 5)
    let loader = try db.database.makeLoader()
    var items: [BulkLoader.Item] = []
    var random = SplitMix(seed: 5)
    for index in 0..<200 {
      items.append(try BulkLoader.Item(key: document("c/d\(index)"), fields: EncodedFields(random.mapValue())))
      items.append(try BulkLoader.Item(key: document("c/d\(index)/s/x"), fields: fields(("a", .integer(Int64(index))))))
    }
    try loader.load(Array(items.prefix(150)))
    try loader.load(Array(items.dropFirst(150)))
    #expect(try db.get("c/d7/s/x")?.fields["a"] == 7)
    #expect(try db.get("c/d7/s/x", at: created) == nil)
    try IndexCheck.check(db)
    let loaded = try #require(try db.get("c/d7")).update
    let version = try db.commit(.set("c/d7", ("new", 1)), .set("e/x")).version.microseconds
    #expect(version > loaded)
    #expect(try db.get("c/d7", at: loaded)?.update == loaded)
    try IndexCheck.check(db)
  }

  @Test func clearingRemovesDocumentsAndHistory() throws {
    let db = try TestDatabase()
    let seen = try db.commit(.set("c/x", ("a", 1)), .set("c/x/s/y")).version.microseconds
    let incarnation = db.database.incarnation
    let transaction = try db.begin()
    db.time.advance(seconds: 1)
    try db.clear()
    #expect(db.database.incarnation != incarnation)
    #expect(try db.get("c/x") == nil)
    #expect(throws: CommitError.readTimeBeforeDatabase) { try db.get("c/x", at: seen) }
    #expect(throws: CommitError.transactionOver(isReadOnly: false)) { try db.get("c/x", in: transaction) }
    let onlyMeta = try StoreDump(db).entries.keys.allSatisfy { $0[0] == Table.meta.rawValue }
    #expect(onlyMeta)
    let next = try db.commit(.set("c/x", ("b", 1))).version.microseconds
    #expect(next > seen)
    #expect(try db.get("c/x")?.create == next)
    try IndexCheck.check(db)
    #expect(try db.reopened().database.incarnation == db.database.incarnation)
  }
}
