import DocumentModel
import KeyValue
import LMDBEngine
import Matching
import Testing
import TestSupport
import WireFormat
@testable import DocumentStore

/// Entries of declared indexes, and changes of the configuration.
@Suite struct DeclaredIndexTests {
  static func index(_ id: String, _ fields: (String, IndexDefinition.Mode)..., group: Bool = false) -> IndexDefinition {
    IndexDefinition(
      collectionID: id, scope: group ? .collectionGroup : .collection,
      fields: fields.map { IndexDefinition.Field(field($0.0), $0.1) })
  }

  @Test func storedIndexesEndWithTheAscendingName() {
    let rows: [(IndexDefinition, [(String, IndexDefinition.Mode)])] = [
      (Self.index("c", ("a", .ascending), ("b", .ascending)), [("a", .ascending), ("b", .ascending)]),
      (Self.index("c", ("a", .ascending), ("b", .descending)), [("a", .descending), ("b", .ascending)]),
      (Self.index("c", ("a", .ascending), ("__name__", .descending)), [("a", .descending)]),
      (Self.index("c", ("a", .descending), ("__name__", .ascending)), [("a", .descending)]),
      (Self.index("c", ("a", .descending), ("t", .contains)), [("a", .ascending), ("t", .contains)]),
      (Self.index("c", ("__name__", .descending)), []),
      (
        Self.index("c", ("a", .descending), ("v", .vector(dimension: 2))),
        [("a", .ascending), ("v", .vector(dimension: 2))]
      ),
    ]
    for (definition, stored) in rows {
      #expect(definition.stored.fields == stored.map { IndexDefinition.Field(field($0.0), $0.1) })
    }
  }

  /// Rows of indexes and settings round-trip, whatever they contain.
  @Test func rowsRoundTrip() throws {
    let configuration = IndexConfiguration(
      indexes: [
        Self.index("é", ("a.`b c`", .descending), ("t", .contains), ("v", .vector(dimension: 2048)), group: true),
        Self.index("c", ("w", .text(.english)), ("w.x", .text(.english))),
        Self.index("__id7__", ("a", .ascending), ("b", .ascending)),
      ],
      fields: [
        FieldIndexing(collectionID: "__default__", path: FieldIndexing.allFields, entries: []),
        FieldIndexing(
          collectionID: "c", path: field("m.k"),
          entries: [.init(.collectionGroup, .contains), .init(.collection, .ascending)],
          expires: true),
      ])
    let db = try TestDatabase(indexes: configuration)
    let catalog = try db.catalog()
    #expect(catalog.configuration == configuration)
    #expect(try db.reopened().catalog().configuration == configuration)
    for definition in configuration.indexes { #expect(catalog.state(of: definition) == .ready) }
    #expect(catalog.state(of: Self.index("c", ("m.k", .contains), group: true)) == .ready)
    #expect(catalog.state(of: Self.index("c", ("m.k", .contains))) == nil)
    #expect(catalog.expiringFields.map(\.path) == [field("m.k")])
    #expect(!catalog.mayScan(field("anything"), of: "other", .ascendingEntries))
    #expect(catalog.mayScan(field("m.k"), of: "c", .ascendingEntries))
    #expect(catalog.mayScan(field("m.k.inside"), of: "c", .ascendingEntries))
    #expect(!catalog.mayScan(field("m.k"), of: "c", .containmentEntries))
    // Applying the same configuration again changes nothing.
    #expect(try db.reopened(indexes: configuration).catalog().generation == catalog.generation)
    for cut in 0..<40 {
      let row = Array(IndexCatalog.row(of: configuration).prefix(cut))
      row.withUnsafeBytes { bytes in
        var reader = IndexRowReader(bytes)
        while !reader.isAtEnd, (try? reader.index()) != nil {}
      }
    }
  }

  /// A database that never had a configuration stays readable for versions that do not support one.
  @Test func theFirstConfigurationRaisesTheFormat() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("a", 1)))
    #expect(try db.meta(.format) == 1)
    #expect(try db.reopened(indexes: IndexConfiguration()).meta(.format) == 1)
    #expect(
      try db.reopened(indexes: IndexConfiguration(indexes: [Self.index("c", ("a", .ascending), ("b", .ascending))]))
        .meta(.format) == 2)
  }

  /// Versions that do not know text indexes must not open a database that has entries of one.
  @Test func aTextIndexRaisesTheFormatWhileItExists() throws {
    var db = try TestDatabase(indexes: IndexConfiguration(indexes: [Self.index("c", ("w", .text(.english)))]))
    #expect(try db.meta(.format) == 3)
    try db.commit(.set("c/x", ("w", "Tacos")))
    let other = IndexConfiguration(indexes: [Self.index("c", ("a", .ascending), ("b", .ascending))])
    db = try db.reopened(indexes: other)
    #expect(try db.meta(.format) == 3)
    try db.finishIndexes()
    #expect(try StoreDump(db, table: .compositeEntries).entries.isEmpty)
    #expect(try db.reopened(indexes: IndexConfiguration()).meta(.format) == 2)
  }

  /// An index whose terms come from another version of the libraries is not used, and is built again.
  @Test func textIndexesOfAnotherVersionAreBuiltAgain() throws {
    let definition = Self.index("c", ("w", .text(.english)))
    var db = try TestDatabase(indexes: IndexConfiguration(indexes: [definition]))
    try db.commit(.set("c/x", ("w", "Tacos and beans")))
    let before = try #require(try db.catalog().indexes.first)
    #expect(before.isUsable)
    var old = before
    old.termVersion = "1 icu 60"
    try db.store.write { (transaction) throws(StorageError) in
      try transaction.put(old)
      var reader = SnapshotReader(transaction)
      try transaction.put(.indexGeneration, try reader.meta(.indexGeneration) + 1)
    }
    db = try db.reopened()
    #expect(try db.catalog().indexes.map(\.isUsable) == [false])
    #expect(try db.catalog().ready(for: "c", scope: .collection).isEmpty)
    try db.finishIndexes()
    let after = try #require(try db.catalog().indexes.first)
    #expect(after.isUsable && after.number > before.number)
    #expect(try db.catalog().indexes.count == 1)
    #expect(try StoreDump(db, table: .compositeEntries).entries.count == 3)
    try IndexCheck.checkStore(db)
  }

  /// A text with too many different words is refused like an array with too many elements.
  @Test func limitsCountTerms() throws {
    let db = try TestDatabase(indexes: IndexConfiguration(indexes: [Self.index("c", ("w", .text(.english)))]))
    func words(_ count: Int) -> Value { .string((0..<count).map { "w\($0)" }.joined(separator: " ")) }
    try db.commit(.set("c/x", ("w", words(39_999))))
    #expect(throws: CommitError.model(.tooManyIndexEntries)) { try db.commit(.set("c/y", ("w", words(40_001)))) }
    try db.commit(.set("c/z", ("w", .string(String(repeating: "same words ", count: 60_000)))))
    try db.commit(.set("c/long", ("w", .string(String(repeating: "x", count: 900_000)))))
    try IndexCheck.checkStore(db)
  }

  static let fieldNames = ["a", "b", "t", "m", "v"]

  static func randomDocument(_ random: inout SplitMix) -> MapValue {
    var map = MapValue()
    for name in ["a", "b"] where !random.chance(oneIn: 5) { map[name] = random.value(depth: 1) }
    if random.chance(oneIn: 2) {
      map["t"] = .array((0..<random.pick([0, 1, 3])).map { _ in random.pick([1, 1.0, "x", "y", .null]) })
    }
    if random.chance(oneIn: 2) { map["m"] = TestSupport.map(("k", random.value(depth: 1)), ("l", [1, 2])) }
    if random.chance(oneIn: 2) { map["w"] = randomText(&random) }
    if random.chance(oneIn: 3) { map["v"] = .vector(random.chance(oneIn: 2) ? [1, 2] : [1, 2, 3]) }
    return map
  }

  private static func randomText(_ random: inout SplitMix) -> Value {
    let words = (0..<random.pick([0, 1, 3, 8])).map { _ in random.pick(["red", "Red", "green", "blue", "x1"]) }
    let text = Value.string(words.joined(separator: random.pick([" ", ", ", " - "])))
    return random.pick([text, .array([text, 7, "black"]), TestSupport.map(("k", text))])
  }

  static func randomConfiguration(_ random: inout SplitMix) -> IndexConfiguration {
    var configuration = IndexConfiguration()
    for _ in 0..<random.pick([0, 1, 2, 4]) {
      var fields: [IndexDefinition.Field] = []
      for name in ["a", "b", "m.k", "t"].shuffled(using: &random).prefix(random.pick([1, 2, 3])) {
        let isArray = name == "t" && random.chance(oneIn: 2)
        fields.append(.init(field(name), isArray ? .contains : random.pick([.ascending, .descending])))
      }
      if random.chance(oneIn: 4) { fields.append(.init(field("__name__"), random.pick([.ascending, .descending]))) }
      if random.chance(oneIn: 4) { fields.append(.init(field("v"), .vector(dimension: 2))) }
      let index = IndexDefinition(
        collectionID: random.pick(["c", "s"]), scope: random.pick([.collection, .collectionGroup]), fields: fields)
      if !configuration.indexes.contains(index) { configuration.indexes.append(index) }
    }
    if random.chance(oneIn: 2), let language = TextLanguage(tag: "pl") {
      let names = random.pick([["w"], ["w", "t"], ["w.k"]])
      configuration.indexes.append(
        IndexDefinition(
          collectionID: random.pick(["c", "s"]), scope: random.pick([.collection, .collectionGroup]),
          fields: names.map { .init(field($0), .text(language)) }))
    }
    let kinds: [FieldIndexing.Entries] = [
      .init(.collection, .ascending), .init(.collection, .descending), .init(.collection, .contains),
      .init(.collectionGroup, .ascending), .init(.collectionGroup, .contains),
    ]
    for (id, path) in [
      ("c", field("a")), ("c", field("m")), ("c", field("m.k")), ("s", field("t")), ("c", FieldIndexing.allFields),
      ("__default__", FieldIndexing.allFields),
    ] where random.chance(oneIn: 4) {
      let entries = random.chance(oneIn: 2) ? [] : Set(kinds.filter { _ in random.chance(oneIn: 2) })
      configuration.fields.append(FieldIndexing(collectionID: id, path: path, entries: entries))
    }
    return configuration
  }

  /// Runs random writes, configurations, batches of background work and restarts. Complete indexes must match the
  /// documents exactly, without extra entries.
  @Test(arguments: [31, 32, 33, 34, 35, 36] as [UInt64]) func entriesFollowTheConfiguration(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let batch = IndexBatch(documentsMax: 4, entriesMax: 7)
    var db = try TestDatabase(indexes: Self.randomConfiguration(&random), indexBatch: batch)
    let keys = ["c", "s", "c/x/s", "d/y/c", "e"].flatMap { path in (0..<8).map { document("\(path)/i\($0)") } }
    for round in 0..<300 {
      switch Int.random(in: 0..<40, using: &random) {
      case 0: db = try db.reopened(indexes: Self.randomConfiguration(&random))
      case 1: try db.database.setIndexesOnly(Self.randomConfiguration(&random))
      case 2: db = try db.reopened()
      case 3:
        // A batch that is rolled back leaves no trace in the store or in memory.
        try? db.database.queue.write { (writer, transaction) throws(StorageError) in
          _ = try IndexBuilder.advance(batch, &writer, transaction)
          throw .diskFull(path: "test")
        }
      case 4: try db.finishIndexes()
      case 5..<15: try db.advanceIndexes()
      case 15 where random.chance(oneIn: 6): try db.clear()
      default:
        let writes = (0..<random.pick([1, 1, 4])).map { _ -> Write in
          let key = random.pick(keys)
          switch random.pick([0, 0, 0, 1, 2]) {
          case 1: return Write(.delete, key: key)
          case 2: return Write(.update(EncodedFields(Self.randomDocument(&random)), mask: mask("a", "t")), key: key)
          default: return Write(.update(EncodedFields(Self.randomDocument(&random)), mask: nil), key: key)
          }
        }
        try db.commit(CommitRequest(writes))
      }
      if round.isMultiple(of: 10) { try IndexCheck.check(db, "seed \(seed) round \(round)") }
    }
    try db.finishIndexes()
    try IndexCheck.check(db, "seed \(seed)")
    let catalog = try db.catalog()
    #expect(catalog.indexes.allSatisfy { $0.state == .ready })
    #expect(catalog.settings.allSatisfy { $0.state == .settled && !$0.isUndeclared })
    // Without a configuration, the store is as if there had never been one.
    db = try db.reopened(indexes: IndexConfiguration())
    try db.finishIndexes()
    try IndexCheck.check(db, "seed \(seed), without a configuration")
    #expect(try StoreDump(db, table: .compositeEntries).entries.isEmpty)
    #expect(try StoreDump(db, table: .groupEntries).entries.isEmpty)
    #expect(try StoreDump(db, table: .fieldSettings).entries.isEmpty)
    #expect(try StoreDump(db, table: .indexes).entries.count == 1)
  }

  /// An index is built while other threads commit, and is complete in the end.
  @Test func indexesAreBuiltWhileCommitsRun() throws {
    let db = try TestDatabase(indexBatch: IndexBatch(documentsMax: 20, entriesMax: 50))
    for start in stride(from: 0, to: 2000, by: 500) {
      try db.commit(
        CommitRequest(
          (start..<start + 500).map { .set("c/d\($0)", ("a", .integer(Int64($0 % 7))), ("b", .integer(Int64($0)))) }))
    }
    var configuration = IndexConfiguration(indexes: [Self.index("c", ("a", .ascending), ("b", .descending))])
    configuration.fields = [FieldIndexing(collectionID: "c", path: field("b"), entries: [])]
    try db.database.setIndexes(configuration)
    onThreads(4) { thread in
      for round in 0..<60 {
        let key = (thread * 977 + round * 31) % 2000
        _ = try? db.commit(
          round.isMultiple(of: 9) ? .delete("c/d\(key)") : .set("c/d\(key)", ("a", .integer(Int64(round))), ("b", 1)))
      }
    }
    while try db.catalog().indexes.contains(where: { $0.state != .ready })
      || db.catalog().settings.contains(where: { $0.state != .settled })
    {
      try db.commit(CommitRequest([]))
    }
    try IndexCheck.check(db)
    #expect(
      try db.database.indexReports().map(\.line) == [
        "c (a descending, b ascending): ready", "c, field b: not indexed: ready",
      ])
  }

  /// Bulk loads write the entries of declared indexes, too.
  @Test func loadsWriteIndexEntries() throws {
    let db = try TestDatabase(
      indexes: IndexConfiguration(
        indexes: [
          Self.index("c", ("a", .ascending), ("t", .contains)), Self.index("c", ("a", .descending), group: true),
        ],
        fields: [FieldIndexing(collectionID: "c", path: field("m"), entries: [])]))
    let loader = try db.database.makeLoader()
    var random = SplitMix(seed: 5)
    for mayReplace in [false, true] {
      let items = try (0..<200).map { number in
        try BulkLoader.Item(
          key: document("c/d\(number)"), fields: EncodedFields(Self.randomDocument(&random)), indexes: loader.indexes)
      }
      try loader.load(items, mayReplace: mayReplace)
    }
    try IndexCheck.check(db)
    #expect(try !StoreDump(db, table: .groupEntries).entries.isEmpty)
  }

  /// The limits on a document's entries include declared indexes and exclude exempt fields.
  @Test func limitsCountOnlyWrittenEntries() throws {
    let db = try TestDatabase(
      indexes: IndexConfiguration(
        indexes: [
          Self.index("c", ("t", .contains), ("a", .ascending)),
          Self.index(
            "c", ("l1", .ascending), ("l2", .ascending), ("l3", .ascending), ("l4", .ascending), ("l5", .ascending),
            ("l6", .ascending), ("l7", .ascending), ("l8", .ascending), ("l9", .ascending), ("l10", .ascending),
            ("l11", .ascending)),
        ],
        fields: [FieldIndexing(collectionID: "c", path: field("big"), entries: [])]))
    func array(_ count: Int) -> Value { .array((0..<count).map { .integer(Int64($0)) }) }
    try db.commit(.set("c/x", ("big", array(60_000))))
    try db.commit(.set("c/x", ("t", array(19_000)), ("a", 1)))
    #expect(throws: CommitError.model(.tooManyIndexEntries)) {
      try db.commit(.set("c/y", ("t", array(20_000)), ("a", 1)))
    }
    try db.commit(.set("c/y", ("t", array(20_000))))
    let long = Value.string(String(repeating: "x", count: 1500))
    let fields = (1...11).map { ("l\($0)", long) }
    #expect(throws: CommitError.model(.indexEntryTooLarge)) {
      try db.commit(Write(.update(EncodedFields(MapValue(fields)), mask: nil), key: document("c/z")))
    }
    try IndexCheck.check(db)
  }

  /// If an existing document is too large for a new index, only that index fails.
  @Test func anIndexThatCannotHoldADocumentFails() throws {
    let db = try TestDatabase()
    let long = Value.string(String(repeating: "x", count: 1500))
    let names = (1...11).map { "l\($0)" }
    let write = Write(.update(EncodedFields(MapValue(names.map { ($0, long) })), mask: nil), key: document("c/z"))
    try db.commit(write)
    let wide = IndexDefinition(
      collectionID: "c", scope: .collection, fields: names.map { .init(field($0), .ascending) })
    let configuration = IndexConfiguration(indexes: [wide, Self.index("c", ("l1", .ascending), ("l2", .ascending))])
    let again = try db.reopened(indexes: configuration)
    try again.finishIndexes()
    #expect(try again.catalog().indexes.map(\.state) == [.failed, .ready])
    try again.commit(write)
    try again.commit(.delete("c/z"))
    try IndexCheck.check(again)
    // The next start retries.
    let third = try again.reopened(indexes: configuration)
    try third.finishIndexes()
    #expect(try third.catalog().indexes.map(\.state) == [.ready, .ready])
    #expect(try third.catalog().indexes.map(\.number) == [2, 3])
  }

  /// `hearth check` finds missing and extra entries.
  @Test func theCheckFindsDamagedEntries() throws {
    let db = try TestDatabase(
      indexes: IndexConfiguration(indexes: [
        Self.index("c", ("a", .ascending), ("b", .descending)), Self.index("c", ("a", .ascending), group: true),
      ]))
    try db.commit(.set("c/x", ("a", 1), ("b", 2)), .set("c/y", ("a", 1), ("b", 3)))
    func problems() throws -> [String] {
      let snapshot = try db.store.snapshot()
      defer { snapshot.end() }
      return try DatabaseCheck.run(snapshot).problems
    }
    #expect(try problems().isEmpty)
    for table in [Table.compositeEntries, .groupEntries] {
      let entries = try StoreDump(db, table: table).entries.sorted { $0.key.lexicographicallyPrecedes($1.key) }
      let (first, value) = try #require(entries.first)
      func write(_ key: [UInt8], _ value: [UInt8]?) throws {
        var storageKey = StorageKey()
        storageKey.begin(raw: key)
        try db.store.write { (transaction) throws(StorageError) in
          if let value { try transaction.put(storageKey, value) } else { try transaction.remove(storageKey) }
        }
      }
      try write(first, nil)
      #expect(try problems().contains { $0.contains("no entry in index") })
      try write(first, [99])
      #expect(try problems().contains { $0.contains("has a wrong name length") })
      try write(first, value)
      #expect(try problems().isEmpty)
      var other = first
      other[other.count - value.count - 10] ^= 1
      try write(other, value)
      #expect(try problems().contains { $0.contains("that no document has") })
      try write(other, nil)
      try write([table.rawValue, 77, 1], [1])
      #expect(try problems() == ["\(table): 1 entries of an index that does not exist"])
      try write([table.rawValue, 77, 1], nil)
    }
  }
}

extension DocumentDatabase {
  /// Changes the configuration without starting the background work.
  func setIndexesOnly(_ configuration: IndexConfiguration) throws {
    try store.write { (transaction) throws(StorageError) in
      _ = try IndexReconciliation.apply(configuration, transaction)
    }
  }
}
