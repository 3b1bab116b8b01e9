import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

/// Deleting a whole database, or a document or collection with its descendants.
@Suite struct DeletionTests {
  private static func delete(
    _ path: ResourcePath, _ fixture: ServiceFixture, after last: DocumentKey? = nil, limit: Int = 10_000,
    as caller: Caller = ServiceFixture.admin
  ) throws -> RecursiveDeleteOutcome {
    let result: Result<RecursiveDeleteOutcome, Status> = try wait { done in
      try fixture.service.recursiveDelete(
        path, in: fixture.id, as: caller, after: last, limit: limit, completion: done)
    }
    return try result.get()
  }

  private static let all = Query(collectionID: nil, includesDescendants: true)

  @Test func clearingDeletesDocumentsAndEndsTransactions() throws {
    let fixture = try ServiceFixture()
    let first = try fixture.commit(.set("c/x"), .set("c/x/s/y")).version
    let transaction = try fixture.begin()
    try fixture.clear()
    #expect(try fixture.paths(of: Self.all).isEmpty)
    #expect(fixture.failure { try fixture.commit(.set("c/z"), in: transaction) } != nil)
    #expect(fixture.failure { _ = try fixture.get("c/x", .readTime(first)) }?.code == .invalidArgument)
    try fixture.commit(.set("c/z"))
    #expect(try fixture.paths(of: Self.all) == ["c/z"])
  }

  @Test func descendantsAreDeletedWithTheirDocument() throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("c/x"), .set("c/x/s/y"), .set("c/x/s/y/t/z"), .set("c/xx"), .set("d/x"))
    let outcome = try Self.delete(document("c/x").path, fixture)
    #expect(outcome.deleted == 3 && outcome.isDone && outcome.last == nil)
    #expect(try fixture.paths(of: Self.all) == ["c/xx", "d/x"])
    #expect(try Self.delete(collection("c"), fixture).deleted == 1)
    #expect(try Self.delete(.root, fixture).deleted == 1)
    let empty = try Self.delete(.root, fixture)
    #expect(empty.deleted == 0 && empty.isDone)
  }

  @Test func limitedDeletionContinuesWhereItStopped() throws {
    let fixture = try ServiceFixture()
    for start in stride(from: 0, to: 1200, by: 400) {
      let result: Result<CommitOutcome, Status> = try wait { done in
        try fixture.service.commit(
          (start..<start + 400).map { .set("c/d\($0 + 10_000)") }, in: fixture.id, as: ServiceFixture.admin,
          completion: done)
      }
      _ = try result.get()
    }
    let first = try Self.delete(collection("c"), fixture, limit: 1)
    #expect(!first.isDone && first.deleted >= 1 && first.deleted < 1200)
    let rest = try Self.delete(collection("c"), fixture, after: first.last)
    #expect(rest.isDone && first.deleted + rest.deleted == 1200)
    #expect(try fixture.paths(of: Self.all).isEmpty)
  }

  @Test func onlyAdministratorsDeleteDocumentsTogether() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules, mode: .production)
    try fixture.commit(.set("notes/a", ("owner", "ann")))
    for caller in [ServiceFixture.ann, ServiceFixture.stranger] {
      #expect(fixture.failure { try fixture.clear(as: caller) }?.code == .permissionDenied)
      let denied = fixture.failure { _ = try Self.delete(collection("notes"), fixture, as: caller) }
      #expect(denied?.code == .permissionDenied)
    }
    #expect(try fixture.paths(of: Self.all) == ["notes/a"])
    #expect(try Self.delete(collection("notes"), fixture).deleted == 1)
    try fixture.clear()
  }
}
