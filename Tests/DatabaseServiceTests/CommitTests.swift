import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

/// Commit, and the methods that commit one document.
@Suite struct CommitTests {
  private static let name = "projects/p/databases/(default)/documents/c/x"

  @Test func commitReportsEachWrite() throws {
    let fixture = try ServiceFixture()
    let old = try fixture.commit(.set("c/same", ("a", 1))).version
    fixture.time.advance(seconds: 1)
    let outcome = try fixture.commit(
      .set("c/x", ("a", 1)), .set("c/same", ("a", 1)), .delete("c/none"),
      .merge("c/n", [], transforms: [.increment("n", 2)]))
    #expect(
      outcome.results == [
        WriteResult(updateTime: outcome.version), WriteResult(updateTime: old), WriteResult(updateTime: nil),
        WriteResult(updateTime: outcome.version, transformResults: [2]),
      ])
    #expect(try fixture.get("c/n")["n"] == 2)
  }

  @Test(arguments: [
    ([Write.set("c/x", if: .exists(true))], Status(.notFound, "No document to update: \(name)")),
    ([.set("c/old", if: .exists(false))], Status(.alreadyExists, "Document already exists: ")),
    (
      [.set("c/x"), .set("c/x", if: .exists(false))],
      Status(.invalidArgument, "Cannot upsert then insert an entity in the same request.")
    ),
    (
      [.delete("c/old"), .set("c/old", if: .exists(true))],
      Status(.invalidArgument, "Cannot delete then update an entity in the same request.")
    ),
    (
      [.set("c/old", if: .updateTime(Timestamp(uncheckedMicroseconds: 1_000_000)))],
      Status(.failedPrecondition, "the stored version (")
    ),
    (
      [.merge("c/x", [], transforms: [.increment("a", 1), .increment("a.b", 1)])],
      Status(.invalidArgument, "Cannot transform property a and its nested property at the same time.")
    ),
    (
      [.merge("c/x", [], transforms: (0...500).map { .increment("f\($0)", 1) })],
      Status(.invalidArgument, "cannot have more than 500 field transforms on a single document")
    ),
    (
      [.set("c/x", ("a", .bytes([UInt8](repeating: 0, count: 1 << 20))))],
      Status(.invalidArgument, "A document cannot be written because it exceeds the maximum size allowed.")
    ),
  ])
  func failedCommitWritesNothing(writes: [Write], expected: Status) throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("c/old", ("a", 1)))
    let status = fixture.failure {
      let result: Result<CommitOutcome, Status> = try wait { done in
        let writes = [.set("c/before")] + writes
        try fixture.service.commit(writes, in: fixture.id, as: ServiceFixture.admin, completion: done)
      }
      _ = try result.get()
    }
    #expect(status?.code == expected.code && status?.message.hasPrefix(expected.message) == true, "\(status as Any)")
    #expect(try fixture.paths(of: Query(collectionID: "c")) == ["c/old"])
    #expect(try fixture.get("c/old")["a"] == 1)
  }

  @Test func rulesAuthorizeEveryDocumentOfACommit() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    try fixture.commit(.set("notes/a", ("owner", "ann")), as: ServiceFixture.ann)
    for (writes, caller) in [
      ([Write.set("notes/b", ("owner", "ann")), .set("notes/c", ("owner", "ben"))], ServiceFixture.ann),
      ([.delete("notes/a")], ServiceFixture.ben), ([.delete("notes/a")], ServiceFixture.stranger),
      ([.set("other/x")], ServiceFixture.ann),
      // A denial precedes other errors, which would reveal whether a document exists.
      ([.set("other/x", if: .exists(true))], ServiceFixture.ann),
    ] {
      let status = fixture.failure {
        let result: Result<CommitOutcome, Status> = try wait { done in
          try fixture.service.commit(writes, in: fixture.id, as: caller, completion: done)
        }
        _ = try result.get()
      }
      #expect(status?.code == .permissionDenied, "\(writes)")
    }
    #expect(try fixture.paths(of: Query(collectionID: "notes")) == ["notes/a"])
    try fixture.commit(.delete("notes/a"), as: ServiceFixture.ann)
    #expect(fixture.failure { try fixture.commit(.set("other/x")) } == nil)
  }

  @Test func emulatorStatesTheReasonOfADenial() throws {
    let open = try ServiceFixture(rules: ServiceFixture.rules)
    let explained = open.failure { try open.commit(.set("other/x"), as: ServiceFixture.ann) }
    #expect(explained == Status(.permissionDenied, "No matching allow statements"))
    let closed = try ServiceFixture(rules: ServiceFixture.rules, mode: .production)
    let silent = closed.failure { try closed.commit(.set("other/x"), as: ServiceFixture.ann) }
    #expect(silent == Status(.permissionDenied, "Missing or insufficient permissions."))
  }

  @Test func markTellsWhetherACommitWasApplied() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    func commit(_ writes: Write..., mark: UInt64, as caller: Caller = ServiceFixture.admin) throws {
      _ = try fixture.service.commit(writes, mark: mark, in: fixture.id, as: caller)
    }
    func mark() throws -> UInt64 { try DocumentDatabase.lastMark(in: fixture.database.store) }
    try commit(.set("c/x"), mark: 7)
    #expect(try mark() == 7)
    #expect(fixture.failure { try commit(.set("c/x", if: .exists(false)), mark: 8) }?.code == .alreadyExists)
    #expect(try mark() == 7)
    fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) {
      try commit(.set("notes/a", ("owner", "ann")), mark: 9, as: $0)
    }
  }

  // MARK: BatchWrite

  @Test func writesOfABatchSucceedOrFailOneByOne() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    func batchWrite(
      _ writes: Write..., as caller: Caller = ServiceFixture.admin
    ) throws -> [Result<WriteResult, Status>] {
      try wait { done in try fixture.service.batchWrite(writes, in: fixture.id, as: caller, completion: done) }
    }
    let results = try batchWrite(.set("c/a"), .set("c/x", if: .exists(true)), .delete("c/none"))
    #expect(try results[0].get().updateTime != nil && results[2].get().updateTime == nil)
    #expect(throws: Status(.notFound, "No document to update: \(Self.name)")) { try results[1].get() }
    #expect(
      fixture.failure { _ = try batchWrite(.set("c/b"), .delete("c/b")) }
        == Status(.invalidArgument, "the same document cannot be written more than once in a single request"))
    // Only administrators write batches, whatever the rules say.
    fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) {
      _ = try batchWrite(.set("notes/a", ("owner", "ann")), as: $0)
    }
    #expect(try fixture.paths(of: Query(collectionID: "c")) == ["c/a"])
  }

  // MARK: One document

  private static func create(
    _ fixture: ServiceFixture, _ documentID: String?, as caller: Caller = ServiceFixture.admin
  ) throws -> Document {
    let result: Result<Document, Status> = try wait { done in
      try fixture.service.createDocument(
        in: collection("notes"), id: documentID, fields: fields(("owner", "ann")), database: fixture.id, as: caller,
        completion: done)
    }
    return try result.get()
  }

  @Test func createdDocumentGetsAnID() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    let named = try Self.create(fixture, "n", as: ServiceFixture.ann)
    #expect(named.key == document("notes/n") && named.fields == fields(("owner", "ann")))
    #expect(named.createTime == named.updateTime)
    let generated = try ["", nil].map { try Self.create(fixture, $0).key.path.id }
    #expect(Set(generated).count == 2 && generated.allSatisfy { $0.utf8.count == 20 }, "\(generated)")
    #expect(fixture.failure { _ = try Self.create(fixture, "n") }?.code == .alreadyExists)
    for bad in ["a/b", "..", "__x__"] {
      #expect(fixture.failure { _ = try Self.create(fixture, bad) }?.code == .invalidArgument, "\(bad)")
    }
    fixture.expectDenied(to: [ServiceFixture.ben, ServiceFixture.stranger]) {
      _ = try Self.create(fixture, "m", as: $0)
    }
  }

  private static func update(
    _ fixture: ServiceFixture, _ mask: FieldMask?, if precondition: Precondition = .none,
    as caller: Caller = ServiceFixture.admin, _ entries: (String, Value)...
  ) throws -> Document {
    let result: Result<Document, Status> = try wait { done in
      try fixture.service.updateDocument(
        document("notes/n"), fields: EncodedFields(MapValue(entries)), mask: mask, precondition: precondition,
        in: fixture.id, as: caller, completion: done)
    }
    return try result.get()
  }

  @Test func updatedDocumentIsReturned() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    #expect(fixture.failure { _ = try Self.update(fixture, nil, if: .exists(true)) }?.code == .notFound)
    let created = try Self.update(fixture, nil, ("owner", "ann"), ("a", 1))
    fixture.time.advance(seconds: 1)
    let merged = try Self.update(fixture, mask("a", "b"), as: ServiceFixture.ann, ("b", 2))
    #expect(merged.fields == fields(("owner", "ann"), ("b", 2)))
    #expect(merged.createTime == created.createTime && merged.updateTime > created.updateTime)
    let replaced = try Self.update(fixture, nil, if: .updateTime(merged.updateTime), ("owner", "ann"))
    #expect(replaced.fields == fields(("owner", "ann")))
    let stale = fixture.failure { _ = try Self.update(fixture, nil, if: .updateTime(merged.updateTime)) }
    #expect(stale?.code == .failedPrecondition)
    fixture.expectDenied(to: [ServiceFixture.ben, ServiceFixture.stranger]) {
      _ = try Self.update(fixture, mask("b"), as: $0, ("b", 3))
    }
  }

  @Test func deletionSucceedsWithoutADocument() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    func delete(if precondition: Precondition = .none, as caller: Caller = ServiceFixture.admin) throws {
      let result: Result<Void, Status> = try wait { done in
        try fixture.service.deleteDocument(
          document("notes/n"), precondition: precondition, in: fixture.id, as: caller, completion: done)
      }
      try result.get()
    }
    try delete()
    #expect(fixture.failure { try delete(if: .exists(true)) }?.code == .notFound)
    try fixture.commit(.set("notes/n", ("owner", "ann")))
    for caller in [ServiceFixture.ben, ServiceFixture.stranger] {
      #expect(fixture.failure { try delete(as: caller) }?.code == .permissionDenied)
    }
    try delete(if: .exists(true), as: ServiceFixture.ann)
    #expect(try fixture.paths(of: Query(collectionID: "notes")).isEmpty)
  }
}
