import DatabaseService
import DocumentModel
import DocumentStore
import KeyValue
import LMDBEngine
import TestSupport
import Testing
import WireFormat

/// The service's handling of time and of large pages, with a clock controlled by the test.
@Suite struct FirestoreServiceTests {
  private let time = SteppedTime()
  private let databases: DatabaseRegistry
  private let service: FirestoreService
  private let id: DatabaseID

  init() throws {
    id = try #require(DatabaseID(project: "p"))
    let store = try LMDBStore.open(.inMemory(mapBytes: 1 << 30))
    databases = DatabaseRegistry(
      retention: Retention(historySeconds: 300), clock: Clock { [time] in time.now }, idleSeconds: nil
    ) { (_) throws(StorageError) in store }
    service = FirestoreService(databases: databases, mode: .emulator)
  }

  @discardableResult
  private func commit(_ writes: Write...) throws -> CommitOutcome {
    let result: Result<CommitOutcome, Status> = try wait { done in
      try service.commit(writes, in: id, as: .admin, completion: done)
    }
    return try result.get()
  }

  private func trim() throws {
    for _ in 0..<3 {
      databases.maintain()
      try commit()
    }
  }

  private func error(_ body: () throws -> Void) -> Status? {
    do { try body() } catch { return Status(error, database: id) }
    return nil
  }

  /// A read-only transaction in the past must end with its history and never read anything else.
  @Test func aTransactionInThePastEndsWithItsHistory() throws {
    let first = try commit(.set("c/x", ("a", 1))).version
    time.advance(seconds: 1)
    try commit(.set("c/x", ("a", 2)))
    time.advance(seconds: 290)
    let transaction = try service.beginTransaction(.readOnly(first), in: id, as: .admin)
    let read = {
      try service.getDocument(document("c/x"), in: id, as: .admin, consistency: .transaction(transaction)) { _ in }
    }
    try read()
    time.advance(seconds: 50)
    try read()
    time.advance(seconds: 50)
    try read()
    try trim()
    #expect(error(read) == Status(.failedPrecondition, "The requested 'read_time' is too old."))
    let old = error { _ = try service.beginTransaction(.readOnly(first), in: id, as: .admin) }
    #expect(old?.code == .failedPrecondition)
  }

  /// A slow client's batchGet must fail, too, when its history is trimmed.
  @Test func aSlowReaderFailsWhenItsHistoryIsTrimmed() throws {
    try commit(.set("c/x", ("a", 1)), .set("c/y", ("a", 1)))
    let cursor = try service.batchGetDocuments(
      BatchGetDocumentsRequest([document("c/x"), document("c/y")]), in: id, as: .admin)
    try cursor.slice { _, _ in false }
    time.advance(seconds: 1)
    try commit(.set("c/y", ("a", 2)))
    var seen: Value?
    let again = try service.batchGetDocuments(BatchGetDocumentsRequest([document("c/y")]), in: id, as: .admin)
    try again.slice { _, stored in
      seen = try stored.map { try EncodedFields(canonical: Array($0.fields)).decoded() }?["a"]
      return true
    }
    #expect(seen == 2)
    time.advance(seconds: 1000)
    try trim()
    #expect(error { try cursor.slice { _, _ in true } }?.code == .failedPrecondition)
  }

  @Test func missingDocumentsComeLastInAnySlicing() throws {
    try commit(.set("c/b"), .set("c/d"))
    let cursor = try service.batchGetDocuments(
      BatchGetDocumentsRequest(["c/a", "c/b", "c/c", "c/d"].map(document)), in: id, as: .admin)
    var slices: [[String]] = []
    while !cursor.isAtEnd {
      slices.append([])
      try cursor.slice { key, _ in
        slices[slices.count - 1].append(key.path.id)
        return false
      }
    }
    #expect(slices == [["b"], ["d"], ["a"], ["c"]])
  }

  private func list(_ orderBy: String, pageSize: Int) throws -> [[String]] {
    var request = ListDocumentsRequest(collection("c"))
    request.orderBy = orderBy
    request.pageSize = pageSize
    var pages: [[String]] = []
    repeat {
      pages.append([])
      request.pageToken = try service.listPage(request, in: id) { pages[pages.count - 1].append($0.key.path.id) }
      // The token must fit in a URL.
      #expect(request.pageToken.count < 10_000)
    } while !request.pageToken.isEmpty && pages.count < 100
    return pages
  }

  @Test func listsOrderUnusualIDsAndLongValues() throws {
    let ids = ["__id-2__", "__id7__", "a", "a\u{0}", "a\u{0}b", "a\u{1}", "ab", "\u{1F600}"]
    let long = Value.string(String(repeating: "x", count: 100_000))
    for id in ids { try commit(.set("c/" + id, ("n", 1), ("long", long))) }
    for size in [1, 3, 100] {
      #expect(try list("__name__ desc", pageSize: size).flatMap { $0 } == ids.reversed())
      #expect(try list("n", pageSize: size).flatMap { $0 } == ids)
      #expect(try list("n desc", pageSize: size).flatMap { $0 } == ids.reversed())
      #expect(try list("n desc, __name__", pageSize: size).flatMap { $0 } == ids)
      #expect(try list("long desc, n", pageSize: size).flatMap { $0 } == ids)
    }
    #expect(try list("none", pageSize: 1) == [[]])
  }

  @Test func pagesAreBoundedInBytes() throws {
    let large = Value.bytes(Array(repeating: 1, count: 1_000_000))
    for index in 0..<12 { try commit(.set("c/d\(index + 10)", ("b", large), ("n", .integer(Int64(index))))) }
    for order in ["", "n", "n desc", "__name__ desc"] {
      let pages = try list(order, pageSize: 100)
      #expect(pages.map(\.count) == [9, 3], "by '\(order)'")
      #expect(Set(pages.flatMap { $0 }).count == 12)
    }
  }
}
