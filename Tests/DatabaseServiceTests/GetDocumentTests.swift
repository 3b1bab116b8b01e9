import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import RulesEngine
import Testing
import TestSupport
import WireFormat

@Suite struct GetDocumentTests {
  @Test func documentHasItsFieldsAndTimes() throws {
    let fixture = try ServiceFixture()
    let created = try fixture.commit(.set("c/x", ("a", 1))).version.microseconds
    fixture.time.advance(seconds: 1)
    let updated = try fixture.commit(.merge("c/x", ["b"], ("b", 2))).version.microseconds
    let document = try fixture.get("c/x")
    #expect(document["a"] == 1 && document["b"] == 2)
    #expect(document.createTime == created && document.updateTime == updated)
    #expect(fixture.service.counters[.documentsRead] == 1)
  }

  @Test func missingDocumentIsNotFound() throws {
    let fixture = try ServiceFixture()
    let name = "projects/p/databases/(default)/documents/c/x"
    #expect(fixture.failure { _ = try fixture.get("c/x") } == Status(.notFound, "Document \"\(name)\" not found."))
  }

  @Test func selectorChoosesTheState() throws {
    let fixture = try ServiceFixture()
    let first = try fixture.commit(.set("c/x", ("a", 1))).version
    let (write, read) = (try fixture.begin(), try fixture.begin(.readOnly(nil)))
    fixture.time.advance(seconds: 1)
    try fixture.commit(.set("c/x", ("a", 2)))
    let past = try fixture.begin(.readOnly(first))
    for old in [ConsistencySelector.readTime(first), .transaction(write), .transaction(read), .transaction(past)] {
      #expect(try fixture.get("c/x", old)["a"] == 1, "\(old)")
    }
    #expect(try fixture.get("c/x")["a"] == 2)
  }

  @Test func unreadableStatesAreRefused() throws {
    let fixture = try ServiceFixture(retention: Retention(historySeconds: 300))
    let first = try fixture.commit(.set("c/x", ("a", 1))).version
    func failure(_ consistency: ConsistencySelector) -> Status? {
      fixture.failure { _ = try fixture.get("c/x", consistency) }
    }
    func time(_ microseconds: Int64) -> ConsistencySelector {
      .readTime(Timestamp(uncheckedMicroseconds: microseconds))
    }
    #expect(
      failure(time(fixture.time.now + 3_600_000_000))
        == Status(.invalidArgument, "The requested 'read_time' cannot be in the future."))
    #expect(
      failure(time(1_000_000))
        == Status(.invalidArgument, "The requested 'read_time' cannot be before database creation time."))
    #expect(failure(.transaction(TransactionID(bytes: [1, 2, 3]))) == Status(.invalidArgument, "Invalid transaction."))
    let transaction = try fixture.begin()
    try fixture.service.rollback(transaction, in: fixture.id, as: ServiceFixture.admin)
    #expect(
      failure(.transaction(transaction))
        == Status(.aborted, "The referenced transaction has expired or is no longer valid."))
    fixture.time.advance(seconds: 1)
    try fixture.commit(.set("c/x", ("a", 2)))
    fixture.time.advance(seconds: 1000)
    try fixture.trim()
    #expect(failure(.readTime(first)) == Status(.failedPrecondition, "The requested 'read_time' is too old."))
  }

  /// A read-only transaction in the past must end with its history and never read anything else.
  @Test func aTransactionInThePastEndsWithItsHistory() throws {
    let fixture = try ServiceFixture(retention: Retention(historySeconds: 300))
    let first = try fixture.commit(.set("c/x", ("a", 1))).version
    fixture.time.advance(seconds: 1)
    try fixture.commit(.set("c/x", ("a", 2)))
    fixture.time.advance(seconds: 290)
    let transaction = try fixture.begin(.readOnly(first))
    #expect(try fixture.get("c/x", .transaction(transaction))["a"] == 1)
    fixture.time.advance(seconds: 50)
    #expect(try fixture.get("c/x", .transaction(transaction))["a"] == 1)
    fixture.time.advance(seconds: 50)
    #expect(try fixture.get("c/x", .transaction(transaction))["a"] == 1)
    try fixture.trim()
    #expect(
      fixture.failure { _ = try fixture.get("c/x", .transaction(transaction)) }
        == Status(.failedPrecondition, "The requested 'read_time' is too old."))
    #expect(fixture.failure { _ = try fixture.begin(.readOnly(first)) }?.code == .failedPrecondition)
  }

  /// A denial does not reveal whether the document exists.
  @Test func rulesDecideWhetherADocumentIsShown() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    try fixture.commit(.set("notes/a", ("owner", "ann")), .set("open/x"), .set("other/x"))
    #expect(try fixture.get("notes/a", as: ServiceFixture.ann)["owner"] == "ann")
    #expect(fixture.failure { _ = try fixture.get("open/x", as: ServiceFixture.stranger) } == nil)
    fixture.expectDenied(to: [ServiceFixture.ben, ServiceFixture.stranger]) {
      _ = try fixture.get("notes/a", as: $0)
    }
    fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) { _ = try fixture.get("other/x", as: $0) }
    let missing = fixture.failure { _ = try fixture.get("other/none", as: ServiceFixture.ann) }
    #expect(missing?.code == .permissionDenied)
    #expect(fixture.service.counters[.rulesDenied] == 5 && fixture.service.counters[.rulesAllowed] == 2)
  }

  @Test func withoutRulesTheModeDecides() throws {
    let open = try ServiceFixture()
    try open.commit(.set("c/x"))
    #expect(open.failure { _ = try open.get("c/x", as: ServiceFixture.stranger) } == nil)
    let closed = try ServiceFixture(mode: .production)
    try closed.commit(.set("c/x"))
    closed.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) { _ = try closed.get("c/x", as: $0) }
    // Only the emulator explains denials.
    let denial = closed.failure { _ = try closed.get("c/x", as: ServiceFixture.ann) }
    #expect(denial == Status(.permissionDenied, "Missing or insufficient permissions."))
  }

  @Test func rulesThatDoNotCompileFailEveryRequestOfAUser() throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("c/x"))
    fixture.rules.uploadBroken("line 1: no", to: .project("p"))
    #expect(
      fixture.failure { _ = try fixture.get("c/x", as: ServiceFixture.ann) } == Status(.invalidArgument, "line 1: no"))
    #expect(fixture.failure { _ = try fixture.get("c/x") } == nil)
    // The other project still has no rules.
    let other = try #require(DatabaseID(project: "q"))
    let missing = fixture.failure {
      try fixture.service.getDocument(document("c/x"), in: other, as: ServiceFixture.ann) { _, _ in }
    }
    #expect(missing?.code == .notFound)
  }

  @Test func unservedDatabaseIsNotFound() throws {
    let fixture = try ServiceFixture()
    let other = try #require(DatabaseID(project: "other"))
    let status = fixture.failure {
      try fixture.service.getDocument(document("c/x"), in: other, as: ServiceFixture.admin) { _, _ in }
    }
    #expect(status?.code == .notFound)
    #expect(status?.message.hasPrefix("The database (default) does not exist for project other.") == true)
  }
}
