import DocumentModel
import KeyValue
import LMDBEngine
import Testing
import WireFormat

@testable import DocumentStore

/// Rows of the meta table have no checksum, so any value in them must cause an error and not a trap.
@Suite struct DamagedMetaTests {
  static let names: [MetaKey] = [.lastVersion, .collectionNumber, .fieldNumber, .changeLogCount]

  @Test(arguments: names, [UInt64.max, UInt64(Int64.max)])
  func aCommitOnAnImpossibleNumberFails(name: MetaKey, number: UInt64) async throws {
    let store = try LMDBStore.open(.inMemory(mapBytes: 64 << 20))
    let id = try #require(DatabaseID(project: "p"))
    try DocumentDatabase(id: id, store: store).adopt()
    try store.write { (transaction) throws(StorageError) in try transaction.put(name, number) }
    let database = try DocumentDatabase(id: id, store: store)
    try database.adopt()
    let key = try #require(DocumentKey(ResourcePath(uncheckedBytes: Array("c/d".utf8))))
    let write = Write(.update(.init(MapValue([("a", .integer(1))])), mask: nil), key: key)
    let result = await withCheckedContinuation { waiting in
      database.commit(CommitRequest([write])) { waiting.resume(returning: $0) }
    }
    guard case .failure(.storage(.corruption)) = result else {
      Issue.record("\(name) = \(number): \(result)")
      return
    }
  }

  @Test func refusesNewerFormats() throws {
    let store = try LMDBStore.open(.inMemory(mapBytes: 64 << 20))
    let id = try #require(DatabaseID(project: "p"))
    try DocumentDatabase(id: id, store: store).adopt()
    try store.write { (transaction) throws(StorageError) in try transaction.put(.format, UInt64.max) }
    #expect {
      try DocumentDatabase(id: id, store: store)
    } throws: { error in
      if case .unsupportedFormat? = error as? StorageError { true } else { false }
    }
  }

  /// A process that dies can leave a store without a row.
  @Test func aStoreWithoutRowsIsIntact() throws {
    let store = try LMDBStore.open(.inMemory())
    #expect(try DatabaseCheck.run(try store.snapshot()).problems.isEmpty)
    try store.write { (transaction) throws(StorageError) in try transaction.put(.lastVersion, 1) }
    #expect(try DatabaseCheck.run(try store.snapshot()).problems == ["meta: format 0 is not supported, only up to 3"])
  }
}
