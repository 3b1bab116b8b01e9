import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

/// Requests that arrive several times with one ID.
@Suite struct RepeatedRequestTests {
  private let fixture: ServiceFixture
  private let id = RequestID.random()

  init() throws { fixture = try ServiceFixture() }

  private static let increment = Write.merge("c/a", [], transforms: [.increment("n", 1)])

  private func commit(
    _ writes: [Write] = [increment], in transaction: TransactionID? = nil, as caller: Caller = ServiceFixture.admin,
    id: RequestID, on fixture: ServiceFixture? = nil
  ) throws -> CommitOutcome {
    let fixture = fixture ?? self.fixture
    let result: Result<CommitOutcome, Status> = try wait { done in
      try fixture.service.commit(
        writes, transaction: transaction, in: fixture.id, as: caller, requestID: id, completion: done)
    }
    return try result.get()
  }

  @Test func aCommitInATransactionGetsItsOutcomeAgain() throws {
    let transaction = try fixture.begin()
    let outcome = try commit(in: transaction, id: id)
    #expect(try commit(in: transaction, id: id) == outcome)
    #expect(fixture.failure { _ = try commit(in: transaction, id: .random()) }?.code == .aborted)
    #expect(try fixture.get("c/a")["n"] == 1)
    let other = fixture.failure { _ = try commit([.delete("c/a")], id: id) }
    #expect(other?.code == .invalidArgument)
  }

  /// The outcome is that of the time of the commit, whatever the rules say now.
  @Test func rulesDecideOnce() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    let create = [Write.set("notes/x", ("owner", "ann"))]
    let outcome = try commit(create, as: ServiceFixture.ann, id: id, on: fixture)
    try fixture.commit(.set("notes/x", ("owner", "ben")))
    #expect(try commit(create, as: ServiceFixture.ann, id: id, on: fixture) == outcome)
    let denied = fixture.failure { _ = try commit(create, as: ServiceFixture.ann, id: .random(), on: fixture) }
    #expect(denied?.code == .permissionDenied)
    #expect(try fixture.get("notes/x")["owner"] == "ben")
  }

  private func create(_ name: String?, id: RequestID) throws -> Document {
    let result: Result<Document, Status> = try wait { done in
      try fixture.service.createDocument(
        in: collection("c"), id: name, fields: EncodedFields(MapValue([("n", 1)])), database: fixture.id,
        as: ServiceFixture.admin, requestID: id, completion: done)
    }
    return try result.get()
  }

  @Test(arguments: ["a", nil]) func aDocumentIsCreatedOnce(name: String?) throws {
    let first = try create(name, id: id)
    fixture.time.advance(seconds: 1)
    try fixture.commit(Write(.update(EncodedFields(MapValue([("n", 2)])), mask: nil), key: first.key))
    #expect(try create(name, id: id) == first)
    #expect(try fixture.paths(of: Query(collectionID: "c")) == [first.key.path.text])
    if name == nil {
      #expect(first.key.id.count == 20)
      #expect(try create(nil, id: .random()).key != first.key)
    } else {
      #expect(fixture.failure { _ = try create(name, id: .random()) }?.code == .alreadyExists)
    }
  }

  @Test func updatesAndDeletionsHappenOnce() throws {
    func update() throws -> Document {
      let result: Result<Document, Status> = try wait { done in
        try fixture.service.updateDocument(
          document("c/a"), fields: EncodedFields(MapValue([("n", 1)])), mask: nil, precondition: .none, in: fixture.id,
          as: ServiceFixture.admin, requestID: id, completion: done)
      }
      return try result.get()
    }
    let first = try update()
    try fixture.commit(.set("c/a", ("n", 2)))
    #expect(try update() == first)
    #expect(try fixture.get("c/a")["n"] == 2)
    let deletion = RequestID.random()
    for _ in 0..<2 {
      let result: Result<Void, Status> = try wait { done in
        try fixture.service.deleteDocument(
          document("c/a"), precondition: .exists(true), in: fixture.id, as: ServiceFixture.admin, requestID: deletion,
          completion: done)
      }
      try result.get()
    }
  }

  /// The history is shorter than the time for which outcomes are kept. The document is not written again.
  @Test func anOldResultMayBeGone() throws {
    let fixture = try ServiceFixture(retention: Retention(historySeconds: 300))
    func update() throws -> Document {
      let result: Result<Document, Status> = try wait { done in
        try fixture.service.updateDocument(
          document("c/a"), fields: EncodedFields(MapValue([("n", 1)])), mask: nil, precondition: .none, in: fixture.id,
          as: ServiceFixture.admin, requestID: id, completion: done)
      }
      return try result.get()
    }
    _ = try update()
    try fixture.commit(.set("c/a", ("n", 2)))
    fixture.time.advance(seconds: 500)
    try fixture.trim()
    #expect(fixture.failure { _ = try update() }?.code == .unknown)
    #expect(try fixture.get("c/a")["n"] == 2)
  }

  @Test func eachWriteOfABatchHappensOnce() throws {
    let writes = ["a", "b"].map { Write.merge("c/\($0)", [], transforms: [.increment("n", 1)]) }
    func send(_ writes: [Write]) throws -> [Result<WriteResult, Status>] {
      try wait { done in
        try fixture.service.batchWrite(
          writes, in: fixture.id, as: ServiceFixture.admin, requestID: id, completion: done)
      }
    }
    let first = try send(writes)
    #expect(try send(writes) == first)
    #expect(try ["a", "b"].map { try fixture.get("c/\($0)")["n"] } == [1, 1])
    for result in try send(writes.reversed()) {
      guard case .failure(let status) = result else {
        Issue.record("\(result)")
        continue
      }
      #expect(status.code == .invalidArgument)
    }
  }
}
