import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

@Suite struct BatchGetDocumentsTests {
  /// Returns the IDs of the documents found in each slice of one document.
  private static func slices(_ cursor: BatchGetDocumentsCursor) throws -> [[String]] {
    var slices: [[String]] = []
    while !cursor.isAtEnd {
      slices.append([])
      try cursor.slice { key, document in
        slices[slices.count - 1].append(key.path.id + (document == nil ? " (missing)" : ""))
        return false
      }
    }
    return slices
  }

  private static func get(
    _ fixture: ServiceFixture, _ paths: String..., as caller: Caller = ServiceFixture.admin,
    change: (inout BatchGetDocumentsRequest) -> Void = { _ in }
  ) throws -> BatchGetDocumentsCursor {
    var request = BatchGetDocumentsRequest(paths.map(document))
    change(&request)
    return try fixture.batchGet(request, as: caller)
  }

  @Test func missingDocumentsComeLastInAnySlicing() throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("c/b"), .set("c/d"))
    let cursor = try Self.get(fixture, "c/d", "c/a", "c/b", "c/c", "c/d", "c/b")
    #expect(try Self.slices(cursor) == [["b"], ["d"], ["a (missing)"], ["c (missing)"]])
  }

  @Test func allDocumentsShowOneState() throws {
    let fixture = try ServiceFixture()
    let first = try fixture.commit(.set("c/x", ("a", 1)), .set("c/y", ("a", 1))).version
    let cursor = try Self.get(fixture, "c/x", "c/y", "c/z")
    try cursor.slice { _, _ in false }
    try fixture.commit(.delete("c/y"), .set("c/z"))
    #expect(try Self.slices(cursor) == [["y"], ["z (missing)"]])
    #expect(cursor.readTime == first && cursor.transaction == nil)
    let past = try Self.get(fixture, "c/y") { $0.consistency = .readTime(first) }
    #expect(try Self.slices(past) == [["y"]])
  }

  /// The batch of a slow client must fail when its history is trimmed.
  @Test func aSlowReaderFailsWhenItsHistoryIsTrimmed() throws {
    let fixture = try ServiceFixture(retention: Retention(historySeconds: 300))
    try fixture.commit(.set("c/x", ("a", 1)), .set("c/y", ("a", 1)))
    let cursor = try Self.get(fixture, "c/x", "c/y")
    try cursor.slice { _, _ in false }
    fixture.time.advance(seconds: 1)
    try fixture.commit(.set("c/y", ("a", 2)))
    #expect(try fixture.get("c/y")["a"] == 2)
    fixture.time.advance(seconds: 1000)
    try fixture.trim()
    #expect(fixture.failure { try cursor.slice { _, _ in true } }?.code == .failedPrecondition)
  }

  @Test func readsOfANewTransactionConflictWithChanges() throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("c/x", ("a", 1)))
    let cursor = try Self.get(fixture, "c/x", "c/none") { $0.newTransaction = .readWrite(retrying: nil) }
    let transaction = try #require(cursor.transaction)
    #expect(try Self.slices(cursor) == [["x"], ["none (missing)"]])
    // The missing document was read too.
    try fixture.commit(.set("c/none"))
    #expect(fixture.failure { try fixture.commit(.set("c/y"), in: transaction) }?.code == .aborted)
  }

  @Test func oneDeniedDocumentDeniesTheBatch() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    try fixture.commit(.set("notes/a", ("owner", "ann")), .set("notes/b", ("owner", "ben")))
    #expect(try Self.slices(Self.get(fixture, "notes/a", as: ServiceFixture.ann)) == [["a"]])
    fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.ben, ServiceFixture.stranger]) {
      _ = try Self.get(fixture, "notes/a", "notes/b", as: $0)
    }
  }

  /// The client does not learn the ID of the transaction, so it could not end it.
  @Test func deniedBatchLeavesNoTransactionOpen() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    for _ in 0..<3 {
      let denial = fixture.failure {
        _ = try Self.get(fixture, "notes/a", as: ServiceFixture.ann) { $0.newTransaction = .readWrite(retrying: nil) }
      }
      #expect(denial?.code == .permissionDenied)
    }
    #expect(try fixture.database.transactions.count == 0)
  }
}
