import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

/// Transactions of clients. The queries that conflict with a commit are in `QueryConflictTests`.
@Suite struct TransactionTests {
  @Test func transactionReadsItsStartAndCommitsOnce() throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("c/x", ("n", 1)))
    let transaction = try fixture.begin()
    #expect(try fixture.get("c/x", .transaction(transaction))["n"] == 1)
    try fixture.commit(.set("c/other"))
    try fixture.commit(.set("c/x", ("n", 2)), in: transaction)
    #expect(try fixture.get("c/x")["n"] == 2)
    let again = fixture.failure { try fixture.commit(.set("c/x", ("n", 3)), in: transaction) }
    #expect(again == Status(.aborted, "The referenced transaction has expired or is no longer valid."))
  }

  @Test func changedReadAbortsTheCommit() throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("c/x", ("n", 1)))
    let transaction = try fixture.begin()
    _ = try fixture.get("c/x", .transaction(transaction))
    try fixture.commit(.set("c/x", ("n", 2)))
    let status = fixture.failure { try fixture.commit(.set("c/y"), in: transaction) }
    #expect(status?.code == .aborted)
    #expect(status?.message.hasPrefix("Too much contention on these documents. Please try again.") == true)
    // The client repeats the work in a new transaction.
    let retry = try fixture.begin(.readWrite(retrying: transaction))
    #expect(try fixture.get("c/x", .transaction(retry))["n"] == 2)
    try fixture.commit(.set("c/y"), in: retry)
  }

  @Test func readOnlyTransactionRefusesWrites() throws {
    let fixture = try ServiceFixture()
    let first = try fixture.commit(.set("c/x", ("n", 1))).version
    try fixture.commit(.set("c/x", ("n", 2)))
    for time in [nil, first] {
      let transaction = try fixture.begin(.readOnly(time))
      let status = fixture.failure { try fixture.commit(.set("c/x"), in: transaction) }
      #expect(status == Status(.invalidArgument, "Cannot modify entities in a read-only transaction."))
    }
    // An empty commit ends a read-only transaction.
    try fixture.commit(in: try fixture.begin(.readOnly(first)))
  }

  @Test func endedAndUnknownTransactionsDiffer() throws {
    let fixture = try ServiceFixture()
    let transaction = try fixture.begin()
    func rollback(_ transaction: TransactionID) -> Status? {
      fixture.failure { try fixture.service.rollback(transaction, in: fixture.id, as: ServiceFixture.admin) }
    }
    #expect(rollback(transaction) == nil)
    #expect(try fixture.database.transactions.count == 0)
    #expect(rollback(TransactionID(bytes: [1])) == Status(.invalidArgument, "Invalid transaction."))
    #expect(
      fixture.failure { try fixture.commit(.set("c/x"), in: transaction) }
        == Status(.aborted, "The referenced transaction has expired or is no longer valid."))
    #expect(
      fixture.failure { try fixture.commit(.set("c/x"), in: TransactionID(bytes: [1])) }
        == Status(.invalidArgument, "Invalid transaction."))
  }

  @Test func readTimeOfATransactionMustBeReadable() throws {
    let fixture = try ServiceFixture()
    let future = Timestamp(uncheckedMicroseconds: fixture.time.now + 3_600_000_000)
    #expect(
      fixture.failure { _ = try fixture.begin(.readOnly(future)) }
        == Status(.invalidArgument, "The requested 'read_time' cannot be in the future."))
  }

  @Test func rulesAuthorizeTheCommitOfATransaction() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    try fixture.commit(.set("notes/a", ("owner", "ann")))
    let transaction = try fixture.begin(as: ServiceFixture.ann)
    #expect(try fixture.get("notes/a", as: ServiceFixture.ann, .transaction(transaction))["owner"] == "ann")
    let denied = fixture.failure {
      try fixture.commit(.set("notes/b", ("owner", "ben")), in: transaction, as: ServiceFixture.ann)
    }
    #expect(denied?.code == .permissionDenied)
  }

  @Test func withoutAccessNoTransactionBegins() throws {
    let fixture = try ServiceFixture(mode: .production)
    fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) { _ = try fixture.begin(as: $0) }
    let transaction = try fixture.begin()
    fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) {
      try fixture.service.rollback(transaction, in: fixture.id, as: $0)
    }
  }

  /// Only the caller that began a transaction can use its ID. For all others it is unknown.
  @Test(arguments: 0..<4) func transactionsBelongToTheirCallers(_ number: Int) throws {
    let callers = [ServiceFixture.admin, ServiceFixture.ann, ServiceFixture.ben, ServiceFixture.stranger]
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    try fixture.commit(.set("open/x"))
    let unknown = Status(.invalidArgument, "Invalid transaction.")
    for (other, caller) in callers.enumerated() where other != number {
      for mode in [TransactionMode.readWrite(retrying: nil), .readOnly(nil)] {
        let transaction = try fixture.begin(mode, as: callers[number])
        var batch = BatchGetDocumentsRequest([document("open/x")])
        batch.consistency = .transaction(transaction)
        let uses: [(Caller) throws -> Void] = [
          { _ = try fixture.get("open/x", as: $0, .transaction(transaction)) },
          { _ = try fixture.service.batchGetDocuments(batch, in: fixture.id, as: $0) },
          { try fixture.commit(in: transaction, as: $0) },
          { _ = try fixture.begin(.readWrite(retrying: transaction), as: $0) },
          { try fixture.service.rollback(transaction, in: fixture.id, as: $0) },
        ]
        for (place, use) in uses.enumerated() {
          #expect(fixture.failure { try use(caller) } == unknown, "use \(place) by caller \(other)")
        }
        #expect(fixture.failure { try uses[0](callers[number]) } == nil)
        #expect(fixture.failure { try uses[2](callers[number]) } == nil)
        // An ID that is over is as unknown as before.
        #expect(fixture.failure { try uses[0](caller) } == unknown)
      }
    }
  }

  @Test func aRefreshedTokenKeepsTheTransaction() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    try fixture.commit(.set("notes/a", ("owner", "ann")))
    let transaction = try fixture.begin(as: ServiceFixture.ann(expiry: fixture.time.now + 1))
    let refreshed = ServiceFixture.ann(expiry: fixture.time.now + 3_600_000_000, token: RevocableToken())
    #expect(try fixture.get("notes/a", as: refreshed, .transaction(transaction))["owner"] == "ann")
    try fixture.commit(.set("notes/a", ("owner", "ann"), ("n", 1)), in: transaction, as: refreshed)
  }
}
