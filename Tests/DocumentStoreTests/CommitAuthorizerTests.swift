import DocumentModel
import Glibc
import KeyValue
import Synchronization
import Testing
import TestSupport
import WireFormat
@testable import DocumentStore

/// Commits with an authorizer: its arguments, when it runs, and the effects of its decisions.
@Suite struct CommitAuthorizerTests {
  /// An authorizer that calls a closure.
  private final class ClosureAuthorizer: CommitAuthorizer {
    typealias Decision =
      @Sendable (
        Int, [ProposedDocument], Timestamp, inout SnapshotReader
      ) throws(CommitError) -> [(key: DocumentKey, version: Int64)]

    let bytes = 0
    private let decision: Decision
    private let count = Mutex(0)

    init(_ decision: @escaping Decision) { self.decision = decision }

    /// Whether each call was for the thread of the caller, which must not be held for long.
    let onLoop = Mutex<[Bool]>([])

    /// The number of calls.
    var calls: Int { count.withLock { $0 } }

    func authorize(
      _ documents: [ProposedDocument], requestTime: Timestamp, isInTransaction: Bool, isOnLoop: Bool,
      _ snapshot: any KeyValueSnapshot
    ) throws(CommitError) -> [(key: DocumentKey, version: Int64)] {
      onLoop.withLock { $0.append(isOnLoop) }
      let call = count.withLock { count in
        count += 1
        return count
      }
      var reader = SnapshotReader(snapshot)
      return try decision(call, documents, requestTime, &reader)
    }
  }

  private static func set(_ path: String, _ fields: (String, Value)..., precondition: Precondition = .none) -> Write {
    Write(.update(EncodedFields(MapValue(fields)), mask: nil), key: document(path), precondition: precondition)
  }

  @Test func aLongDecisionMovesToAnotherThread() throws {
    let database = try TestDatabase()
    let threads = Mutex<[UInt]>([])
    let authorizer = ClosureAuthorizer { (call, _, _, _) throws(CommitError) in
      threads.withLock { $0.append(UInt(pthread_self())) }
      if call == 1 { throw .tooLongForLoop }
      return []
    }
    let outcome = wait { done in
      database.database.commit(
        CommitRequest([Self.set("c/a", ("n", .integer(1)))], authorizer: authorizer), completion: done)
    }
    #expect((try? outcome.get()) != nil)
    #expect(authorizer.onLoop.withLock { $0 } == [true, false])
    let seen = threads.withLock { $0 }
    #expect(seen.count == 2 && seen[0] != seen[1])
  }

  @Test func receivesEachDocumentBeforeAndAfterAllWrites() throws {
    let database = try TestDatabase()
    try database.commit(Self.set("c/a", ("n", .integer(1))), Self.set("c/gone", ("n", .integer(1))))
    let shown = Mutex<[ProposedDocument]>([])
    let time = Mutex<Timestamp?>(nil)
    let authorizer = ClosureAuthorizer { (_, documents, requestTime, _) throws(CommitError) in
      shown.withLock { $0 = documents }
      time.withLock { $0 = requestTime }
      return []
    }
    let writes = [
      Write(
        .update(EncodedFields(MapValue([("m", .boolean(true))])), mask: FieldMask([field("m")])), key: document("c/a"),
        transforms: [FieldTransform(field("n"), .increment(.integer(2))), FieldTransform(field("t"), .requestTime)]),
      Write(.delete, key: document("c/gone")),
      Self.set("c/new", ("n", .integer(5))),
      Write(
        .update(EncodedFields(MapValue([("n", .integer(6))])), mask: FieldMask([field("n")])), key: document("c/a")),
    ]
    try database.commit(CommitRequest(writes, authorizer: authorizer))
    let documents = shown.withLock { $0 }
    try #require(documents.map(\.key) == ["c/a", "c/gone", "c/new"].map { document($0) })
    #expect(documents.map(\.writes.count) == [2, 1, 1])
    let requestTime = try #require(time.withLock { $0 })
    #expect(
      try documents[0].after?.decoded()
        == MapValue([("m", .boolean(true)), ("n", .integer(6)), ("t", .timestamp(requestTime))]))
    #expect(try documents[0].before?.decoded() == MapValue([("n", .integer(1))]))
    #expect(documents[1].before != nil && documents[1].after == nil)
    #expect(documents[2].before == nil && documents[2].after != nil)
    #expect(try database.get("c/a")?.fields["t"] == .timestamp(requestTime))
  }

  @Test func aDenialPrecedesPreconditionsAndWritesNothing() throws {
    let database = try TestDatabase()
    let denies = ClosureAuthorizer { (_, _, _, _) throws(CommitError) in throw .denied("no") }
    let allows = ClosureAuthorizer { (_, _, _, _) throws(CommitError) in [] }
    let update = Self.set("c/a", precondition: .exists(true))
    #expect(throws: CommitError.denied("no")) { try database.commit(CommitRequest([update], authorizer: denies)) }
    #expect(throws: CommitError.documentMissing(document("c/a"))) {
      try database.commit(CommitRequest([update], authorizer: allows))
    }
    #expect(throws: CommitError.denied("no")) {
      try database.commit(CommitRequest([Self.set("c/a"), Self.set("c/b")], authorizer: denies))
    }
    #expect(try database.get("c/a") == nil)
  }

  /// Returns an authorizer that reads `gates/g`. If `change` is given, it is committed during the first call.
  private static func gatekeeper(_ database: TestDatabase, _ change: Write?) -> ClosureAuthorizer {
    ClosureAuthorizer { [database] (call, _, _, reader) throws(CommitError) in
      let gate: StoredDocument?
      do throws(StorageError) { gate = try reader.document(document("gates/g")) } catch { throw .storage(error) }
      let isOpen = gate.map { $0.fields.isEmpty } ?? true
      let version = gate?.updateVersion ?? 0
      if call == 1, let change { try database.commit(change) }
      guard isOpen else { throw .denied("closed") }
      return [(document("gates/g"), version)]
    }
  }

  @Test(arguments: [true, false])
  func runsAgainIfADocumentItReadChanged(gateExists: Bool) throws {
    let database = try TestDatabase()
    if gateExists { try database.commit(Self.set("gates/g")) }
    // The gate closes between the authorization and the write.
    let authorizer = Self.gatekeeper(database, Self.set("gates/g", ("closed", .boolean(true))))
    #expect(throws: CommitError.denied("closed")) {
      try database.commit(CommitRequest([Self.set("c/a")], authorizer: authorizer))
    }
    #expect(authorizer.calls == 2)
    #expect(try database.get("c/a") == nil)
  }

  @Test func runsOnceIfNothingItReadChanged() throws {
    let database = try TestDatabase()
    let authorizer = Self.gatekeeper(database, Self.set("other/o"))
    try database.commit(CommitRequest([Self.set("c/a")], authorizer: authorizer))
    #expect(authorizer.calls == 1)
    // A document that the authorizer read changes, but its decision remains the same: the commit succeeds.
    let again = Self.gatekeeper(database, Self.set("gates/g"))
    try database.commit(CommitRequest([Self.set("c/b")], authorizer: again))
    #expect(again.calls == 2)
    #expect(try database.get("c/b") != nil)
  }

  @Test func runsAgainIfATargetChanged() throws {
    let database = try TestDatabase()
    let authorizer = ClosureAuthorizer { [database] (call, documents, _, _) throws(CommitError) in
      if call == 1 { try database.commit(Self.set("c/a", ("owner", .string("ben")))) }
      guard documents.allSatisfy({ $0.before == nil }) else { throw .denied("already owned") }
      return []
    }
    #expect(throws: CommitError.denied("already owned")) {
      try database.commit(CommitRequest([Self.set("c/a", ("owner", .string("ann")))], authorizer: authorizer))
    }
    #expect(authorizer.calls == 2)
  }
}
