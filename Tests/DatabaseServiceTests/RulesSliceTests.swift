import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import RulesEngine
import Testing
import TestSupport
import WireFormat

/// Requests for many documents under rules give their event loop back between slices of a few milliseconds.
@Suite struct RulesSliceTests {
  /// The cheap decisions of one slice.
  private static let cheapMax = Evaluator.sliceWorkMax / Evaluator.cheapWorkMax

  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /c/{id} { allow get: if resource.data.open == true; allow write: if request.resource.data.open == true; }
        match /heavy/{id} { allow get: if resource.data.l.toSet().size() > 0 && resource.data.open == true; }
        match /gated/{id} { allow get: if get(/databases/$(database)/documents/gates/g).data.open == true; }
      }
    }
    """

  private static func fixture(_ paths: [String], closed: String? = nil) throws -> ServiceFixture {
    let fixture = try ServiceFixture(rules: rules)
    let list = Value.array((0..<20_000).map { .integer($0) })
    for slice in stride(from: 0, to: paths.count, by: 400) {
      let writes = paths[slice..<min(slice + 400, paths.count)].map { path in
        var fields: [(String, Value)] = [("open", .boolean(path != closed))]
        if path.hasPrefix("heavy") { fields.insert(("l", list), at: 0) }
        return Write(.update(EncodedFields(MapValue(fields)), mask: nil), key: document(path))
      }
      let result: Result<CommitOutcome, Status> = try wait { done in
        try fixture.service.commit(writes, in: fixture.id, as: .admin, completion: done)
      }
      _ = try result.get()
    }
    return fixture
  }

  private static func paths(_ collection: String, _ count: Int) -> [String] {
    (0..<count).map { "\(collection)/\(10_000 + $0)" }
  }

  /// Authorizes a batch. Returns the number of turns that it gave to others after the second slice, and the response.
  /// `between` runs before each slice but the first.
  private static func authorize(
    _ fixture: ServiceFixture, _ paths: [String], change: (inout BatchGetDocumentsRequest) -> Void = { _ in },
    between: () throws -> Void = {}
  ) throws -> (turns: Int, cursor: BatchGetDocumentsCursor) {
    var request = BatchGetDocumentsRequest(paths.map(document))
    change(&request)
    let authorization = try fixture.service.batchGetDocuments(request, in: fixture.id, as: ServiceFixture.ann)
    var turns = 0
    while true {
      try between()
      if let cursor = try authorization.slice() { return (turns, cursor) }
      turns += 1
    }
  }

  private static func count(_ cursor: BatchGetDocumentsCursor) throws -> Int {
    var found = 0
    while !cursor.isAtEnd {
      try cursor.slice { _, document in
        found += document == nil ? 0 : 1
        return true
      }
    }
    return found
  }

  @Test(arguments: [(1, 0), (cheapMax, 0), (cheapMax * 2, 0), (cheapMax * 2 + 1, 1), (cheapMax * 4, 2)])
  func aBatchIsAuthorizedInSlices(documents: Int, turns expected: Int) throws {
    let paths = Self.paths("c", documents)
    let (turns, cursor) = try Self.authorize(try Self.fixture(paths), paths)
    #expect(turns == expected)
    #expect(try Self.count(cursor) == documents)
  }

  @Test func expensiveDocumentsMakeShorterSlices() throws {
    let paths = Self.paths("heavy", 6)
    let (turns, cursor) = try Self.authorize(try Self.fixture(paths), paths)
    #expect(turns > 0)
    #expect(try Self.count(cursor) == 6)
  }

  @Test func theSlicesShareTheWorkOfTheRequest() throws {
    let paths = Self.paths("heavy", 60)
    let fixture = try Self.fixture(paths)
    // Each document is allowed, but together they exceed the budget of a request.
    #expect(fixture.failure { _ = try Self.authorize(fixture, [paths[59]]) } == nil)
    #expect(fixture.failure { _ = try Self.authorize(fixture, paths) }?.code == .permissionDenied)
  }

  @Test func aDenialInALaterSliceDeniesTheBatchAndEndsItsTransaction() throws {
    let paths = Self.paths("c", 1000)
    let fixture = try Self.fixture(paths, closed: paths[999])
    let before = try fixture.database.transactions.count
    let denial = fixture.failure {
      _ = try Self.authorize(fixture, paths) { $0.newTransaction = .readWrite(retrying: nil) }
    }
    #expect(denial?.code == .permissionDenied)
    #expect(try fixture.database.transactions.count == before)
  }

  @Test func allSlicesDecideByTheStateThatTheResponseShows() throws {
    let paths = Self.paths("c", 1000)
    let fixture = try Self.fixture(paths)
    var isChanged = false
    let (_, cursor) = try Self.authorize(fixture, paths, change: { _ in }) {
      guard !isChanged else { return }
      isChanged = true
      try fixture.commit(.set(paths[999], ("a", 1)), .delete(paths[998]))
    }
    #expect(isChanged)
    #expect(try Self.count(cursor) == 1000)
    // A later response shows what is denied now.
    #expect(fixture.failure { _ = try Self.authorize(fixture, paths) }?.code == .permissionDenied)
  }

  @Test func lookupsAreKeptBetweenSlices() throws {
    let paths = Self.paths("gated", 1000)
    let fixture = try Self.fixture(paths)
    try fixture.commit(.set("gates/g", ("open", true)))
    let (_, cursor) = try Self.authorize(fixture, paths)
    #expect(try Self.count(cursor) == 1000)
  }

  @Test(arguments: [300, 1000]) func aCommitOfManyDocumentsMovesToAnotherThread(documents: Int) throws {
    let fixture = try ServiceFixture(rules: Self.rules)
    let writes = Self.paths("c", documents).map { path in
      Write(.update(EncodedFields(MapValue([("open", .boolean(true))])), mask: nil), key: document(path))
    }
    let before = fixture.service.counters[.rulesAllowed]
    let result: Result<CommitOutcome, Status> = try wait { done in
      try fixture.service.commit(writes, in: fixture.id, as: ServiceFixture.ann, completion: done)
    }
    #expect(try result.get().results.count == documents)
    // The other thread begins again, so it repeats the decisions of the first slice.
    let decisions = fixture.service.counters[.rulesAllowed] - before
    #expect(decisions == (documents > Self.cheapMax ? documents + Self.cheapMax + 1 : documents))
  }

  @Test func aDenialOnAnotherThreadDeniesTheCommit() throws {
    let fixture = try ServiceFixture(rules: Self.rules)
    let writes = Self.paths("c", 1000).enumerated().map { place, path in
      Write(.update(EncodedFields(MapValue([("open", .boolean(place < 999))])), mask: nil), key: document(path))
    }
    let result: Result<CommitOutcome, Status> = try wait { done in
      try fixture.service.commit(writes, in: fixture.id, as: ServiceFixture.ann, completion: done)
    }
    #expect(throws: Status.self) { try result.get() }
    #expect(fixture.failure { _ = try fixture.get("c/10000") }?.code == .notFound)
  }
}
