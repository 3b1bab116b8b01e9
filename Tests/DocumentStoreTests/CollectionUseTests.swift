import DocumentModel
import KeyValue
import Testing
import TestSupport
import WireFormat
@testable import DocumentStore

/// The bytes that collections occupy.
@Suite struct CollectionUseTests {
  private func database() throws -> TestDatabase {
    let indexes = IndexConfiguration(indexes: [
      DeclaredIndexTests.index("notes", ("a", .ascending), ("b", .ascending), group: true),
      DeclaredIndexTests.index("users", ("a", .ascending), ("b", .ascending)),
    ])
    let db = try TestDatabase(indexes: indexes)
    try db.finishIndexes()
    let fields = EncodedFields(MapValue([("a", .integer(1)), ("b", .array([.integer(1), .integer(2)]))]))
    for path in ["users/ann", "users/bob", "users/ann/notes/1", "users/bob/notes/1", "users/bob/notes/2", "logs/1"] {
      try db.commit(Write(.update(fields, mask: nil), key: document(path)))
    }
    try db.commit(Write(.update(EncodedFields(MapValue([("a", .integer(2))])), mask: nil), key: document("logs/1")))
    try db.commit(Write(.delete, key: document("users/bob/notes/2")))
    return db
  }

  /// The rows of all collections contain every row of the tables once.
  @Test func rowsAreCountedOnce() throws {
    let db = try database()
    var expected = CollectionUse()
    for table in [Table.documents, .history] + Table.entryTables {
      let rows = try StoreDump(db, table: table).entries
      let bytes = rows.reduce(0) { $0 + $1.key.count + $1.value.count }
      switch table {
      case .documents: (expected.documents, expected.documentBytes) = (rows.count, bytes)
      case .history: (expected.history, expected.historyBytes) = (rows.count, bytes)
      default:
        expected.indexEntries += rows.count
        expected.indexBytes += bytes
      }
    }
    #expect(expected.documents == 5 && expected.history == 2 && expected.indexEntries > 20)
    for grouping in CollectionChoice.Grouping.allCases {
      let report = try CollectionUseReport(db.store, CollectionChoice(grouping))
      let sums = report.rows.reduce([0, 0, 0, 0, 0, 0]) { sums, row in zip(sums, row.use.values).map { $0 + $1 } }
      #expect(sums == expected.values, "\(grouping)")
      #expect(report.others == CollectionUse())
      #expect(report.rows.map(\.use.bytes) == report.rows.map(\.use.bytes).sorted(by: >))
    }
  }

  @Test func collectionsShareRowsAsChosen() throws {
    let store = try database().store
    func documents(_ choice: CollectionChoice) throws -> [String: Int] {
      Dictionary(uniqueKeysWithValues: try CollectionUseReport(store, choice).rows.map { ($0.name, $0.use.documents) })
    }
    #expect(try documents(CollectionChoice(.pattern)) == ["users": 2, "users/*/notes": 2, "logs": 1])
    #expect(try documents(CollectionChoice(.group)) == ["users": 2, "notes": 2, "logs": 1])
    #expect(
      try documents(CollectionChoice(.path)) == ["users": 2, "users/ann/notes": 1, "users/bob/notes": 1, "logs": 1])
    #expect(try documents(CollectionChoice(.pattern, depth: 1)) == ["users": 4, "logs": 1])
    let bob = try ResourcePath("users/bob")
    #expect(try documents(CollectionChoice(.path, below: bob)) == ["users/bob/notes": 1])
    #expect(try documents(CollectionChoice(.path, below: try ResourcePath("none"))).isEmpty)
  }

  @Test func historyAndEntriesOfDeclaredIndexesBelongToTheirCollection() throws {
    let rows = try CollectionUseReport(try database().store, CollectionChoice(.pattern)).rows
    let uses = Dictionary(uniqueKeysWithValues: rows.map { ($0.name, $0.use) })
    // Two automatic ascending entries, two of array elements, and one of the declared index for each document.
    #expect(uses["users/*/notes"]?.indexEntries == 2 * 5)
    #expect(uses["users"]?.indexEntries == 2 * 5)
    #expect(uses["users/*/notes"]?.history == 1)
    #expect(uses["logs"]?.history == 1)
  }
}
