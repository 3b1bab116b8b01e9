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
        match /past/{id} {
          allow list: if resource.data.open == true;
          allow get: if resource.data.l.toSet().size() > 0;
        }
        match /shelf/{id} {
          allow list;
          allow get: if get(/databases/$(database)/documents/gates/heavy).data.l.toSet().size() > 0;
        }
        match /gated/{id} { allow get: if get(/databases/$(database)/documents/gates/g).data.open == true; }
      }
    }
    """

  private static func fixture(_ paths: [String], closed: String? = nil) throws -> ServiceFixture {
    let fixture = try ServiceFixture(rules: rules)
    try write(paths, closed: closed.map { [$0] } ?? [], fixture)
    return fixture
  }

  /// Expensive for rules that make a set of it.
  private static let list = Value.array((0..<20_000).map { .integer($0) })

  private static func write(_ paths: [String], closed: Set<String>, _ fixture: ServiceFixture) throws {
    for slice in stride(from: 0, to: paths.count, by: 400) {
      let writes = paths[slice..<min(slice + 400, paths.count)].map { path in
        var fields: [(String, Value)] = [("open", .boolean(!closed.contains(path)))]
        if path.hasPrefix("heavy") || path.hasPrefix("past") { fields.insert(("l", list), at: 0) }
        return Write(.update(EncodedFields(MapValue(fields)), mask: nil), key: document(path))
      }
      let result: Result<CommitOutcome, Status> = try wait { done in
        try fixture.service.commit(writes, in: fixture.id, as: .admin, completion: done)
      }
      _ = try result.get()
    }
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

  // MARK: Responses that the newest state must allow again

  /// The documents in each slice of a response, and their paths. `between` runs after each slice, as the other work of
  /// an event loop does.
  private struct Slices {
    var counts: [Int] = []
    var paths: [String] = []

    mutating func add(_ slice: ((DocumentKey) -> Void) throws -> Void, between: () throws -> Void = {}) throws {
      let before = paths.count
      try slice { paths.append($0.path.text) }
      counts.append(paths.count - before)
      try between()
    }
  }

  private static func slices(
    _ cursor: BatchGetDocumentsCursor, _ slices: inout Slices, between: () throws -> Void = {}
  ) throws {
    while !cursor.isAtEnd {
      try slices.add(
        { found in
          try cursor.slice { key, document in
            #expect(document != nil, "\(key)")
            found(key)
            return true
          }
        }, between: between)
    }
  }

  /// Makes the authorization of every response so far old.
  private static func age(_ fixture: ServiceFixture) throws {
    fixture.time.advance(seconds: Limits.authorizationAgeSecondsMax)
    try fixture.commit(.set("other/x", ("n", 1)))
  }

  private static func readTime(_ fixture: ServiceFixture) throws -> ConsistencySelector {
    fixture.time.advance(seconds: 1)
    return .readTime(Timestamp(uncheckedMicroseconds: try fixture.database.read { try $0.lastVersion() }))
  }

  @Test func aLongBatchIsAuthorizedAgainInSlices() throws {
    let paths = Self.paths("c", 1000)
    let fixture = try Self.fixture(paths)
    let (_, cursor) = try Self.authorize(fixture, paths)
    try Self.age(fixture)
    let decisions = fixture.service.counters[.rulesAllowed]
    var slices = Slices()
    try Self.slices(cursor, &slices)
    #expect(slices.counts == [Self.cheapMax, Self.cheapMax, 1000 - 2 * Self.cheapMax])
    #expect(slices.paths == paths)
    #expect(fixture.service.counters[.rulesAllowed] - decisions == 1000)
  }

  @Test func expensiveDocumentsAreAuthorizedAgainInShorterSlices() throws {
    let paths = Self.paths("heavy", 6)
    let fixture = try Self.fixture(paths)
    let (_, cursor) = try Self.authorize(fixture, paths)
    try Self.age(fixture)
    let decisions = fixture.service.counters[.rulesAllowed]
    var slices = Slices()
    try Self.slices(cursor, &slices)
    #expect(slices.counts.count > 1 && slices.counts.allSatisfy { $0 > 0 }, "\(slices.counts)")
    #expect(slices.paths == paths)
    #expect(fixture.service.counters[.rulesAllowed] - decisions == 6)
  }

  @Test func aChangeBetweenSlicesDeniesTheRest() throws {
    let paths = Self.paths("c", 1000)
    let fixture = try Self.fixture(paths)
    let (_, cursor) = try Self.authorize(fixture, paths)
    try Self.age(fixture)
    var slices = Slices()
    let denial = fixture.failure {
      try Self.slices(cursor, &slices) { try fixture.commit(.set(paths[900], ("open", false))) }
    }
    #expect(denial?.code == .permissionDenied)
    #expect(slices.paths == Array(paths[..<900]))
    #expect(slices.counts == [Self.cheapMax, Self.cheapMax])
  }

  @Test func aPastBatchIsAuthorizedInMoreSlices() throws {
    let paths = Self.paths("heavy", 6)
    let fixture = try Self.fixture(paths)
    let (newest, _) = try Self.authorize(fixture, paths)
    let past = try Self.readTime(fixture)
    try Self.age(fixture)
    // Both states must allow each document.
    let decisions = fixture.service.counters[.rulesAllowed]
    let (turns, cursor) = try Self.authorize(fixture, paths) { $0.consistency = past }
    #expect(turns > newest)
    #expect(fixture.service.counters[.rulesAllowed] - decisions == 12)
    #expect(try Self.count(cursor) == 6)
  }

  @Test func aPastQueryIsReviewedInSlices() throws {
    let paths = Self.paths("past", 12)
    let fixture = try Self.fixture(paths)
    let past = try Self.readTime(fixture)
    // The newest states no longer match the query, so the rules must allow to get them.
    try Self.write(paths, closed: Set(paths), fixture)
    var query = Query(collectionID: "past")
    query.filter = .field(field("open"), .equal, .boolean(true))
    var request = RunQueryRequest(query)
    request.consistency = past
    let cursor = try fixture.service.runQuery(request, in: fixture.id, as: ServiceFixture.ann)
    var slices = Slices()
    while !cursor.isAtEnd {
      try slices.add { found in
        try cursor.slice { key, _ in
          found(key)
          return true
        }
      }
    }
    #expect(slices.counts.count > 2 && slices.counts.allSatisfy { $0 < 6 }, "\(slices.counts)")
    #expect(slices.paths == paths)
    #expect(slices.paths == (try fixture.paths(of: query, past)))
  }

  @Test(arguments: ["", "__name__ desc"]) func aPastListingIsReviewedInSlices(orderBy: String) throws {
    let paths = Self.paths("shelf", 12)
    let fixture = try Self.fixture(paths)
    try fixture.commit(.set("gates/heavy", ("l", Self.list)))
    let past = try Self.readTime(fixture)
    try paths.forEach { try fixture.commit(.delete($0)) }
    var request = ListDocumentsRequest(document(paths[0]).collection)
    request.consistency = past
    request.orderBy = orderBy
    let cursor = try fixture.service.listDocuments(request, in: fixture.id, as: ServiceFixture.ann)
    var slices = Slices()
    var token: [UInt8]?
    while token == nil { try slices.add { found in token = try cursor.slice { found($0.key) } } }
    #expect(slices.counts.count > 2 && slices.counts.allSatisfy { $0 < 6 }, "\(slices.counts)")
    #expect(slices.paths == (orderBy.isEmpty ? paths : paths.reversed()))
    #expect(slices.paths == (try fixture.page(request).paths))
  }

  // MARK: Commits

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
