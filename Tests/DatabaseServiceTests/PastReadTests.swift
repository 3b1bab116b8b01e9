import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

/// Reads of a past state by callers with rules: that state and the newest one must allow them.
@Suite struct PastReadTests {
  /// Documents of the team are for users with a role, notes are for all users if they are public.
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        function role() { return get(/databases/$(database)/documents/roles/$(request.auth.uid)).data.name; }
        match /{path=**}/team/{id} { allow read: if role() == 'reader'; }
        match /{path=**}/club/{id} {
          allow read: if exists(/databases/$(database)/documents/members/$(request.auth.uid));
        }
        match /notes/{id} { allow read: if resource.data.public == true; }
        match /drafts/{id} { allow read: if resource == null || resource.data.public == true; }
      }
    }
    """

  /// A method that reads documents.
  enum Method: CaseIterable {
    case get, batchGet, query, listing, orderedListing, count, sum, partition
  }

  /// A way to request the state before a change.
  enum Way: CaseIterable {
    case readTime, readOnly, readOnlyAtTime, readWrite
  }

  /// A change that takes access away from Ann, and another one that gives it back.
  enum Change: CaseIterable {
    case role, membership

    var collection: String { self == .role ? "team" : "club" }
    var taken: Write { self == .role ? .set("roles/ann", ("name", "none")) : .delete("members/ann") }
    var given: Write { self == .role ? .set("roles/ann", ("name", "reader")) : .set("members/ann") }
  }

  private static func fixture(_ mode: ServerMode = .production) throws -> ServiceFixture {
    let fixture = try ServiceFixture(rules: rules, mode: mode)
    try fixture.commit(
      Change.role.given, Change.membership.given, .set("team/a", ("n", 1)), .set("team/b", ("n", 2)),
      .set("club/a", ("n", 1)), .set("notes/a", ("public", true), ("n", 1)),
      .set("notes/b", ("public", true), ("n", 2)),
      .set("drafts/a", ("public", true)))
    return fixture
  }

  private static func state(_ way: Way, _ fixture: ServiceFixture) throws -> ConsistencySelector {
    let time = Timestamp(uncheckedMicroseconds: try fixture.database.read { try $0.lastVersion() })
    return switch way {
    case .readTime: .readTime(time)
    case .readOnly: .transaction(try fixture.begin(.readOnly(nil), as: ServiceFixture.ann))
    case .readOnlyAtTime: .transaction(try fixture.begin(.readOnly(time), as: ServiceFixture.ann))
    case .readWrite: .transaction(try fixture.begin(as: ServiceFixture.ann))
    }
  }

  private static func read(
    _ method: Method, _ collection: String, _ fixture: ServiceFixture, _ state: ConsistencySelector,
    filter: QueryFilter? = nil
  ) throws {
    let ann = ServiceFixture.ann
    var query = Query(collectionID: collection)
    query.filter = filter
    switch method {
    case .get: _ = try fixture.get("\(collection)/a", as: ann, state)
    case .batchGet:
      var request = BatchGetDocumentsRequest([document("\(collection)/a")])
      request.consistency = state
      let cursor = try fixture.batchGet(request, as: ann)
      while !cursor.isAtEnd { try cursor.slice { _, _ in true } }
    case .query: _ = try fixture.paths(of: query, as: ann, state)
    case .listing, .orderedListing:
      var request = ListDocumentsRequest(document("\(collection)/a").collection)
      request.consistency = state
      if method == .orderedListing { request.orderBy = "n" }
      _ = try fixture.page(request, as: ann)
    case .count, .sum:
      let operation: Aggregation.Operator = method == .count ? .count(upTo: nil) : .sum(field("n"))
      var request = RunAggregationQueryRequest(query, [Aggregation(operation, alias: "x")])
      request.consistency = state
      _ = try fixture.aggregate(request, as: ann)
    case .partition:
      query.includesDescendants = true
      var request = PartitionQueryRequest(query)
      request.partitionCount = 2
      request.consistency = state
      _ = try fixture.partitions(request, as: ann)
    }
  }

  @Test(arguments: Method.allCases, Way.allCases) func takenAccessIsTakenInThePast(_ method: Method, _ way: Way) throws
  {
    let fixture = try Self.fixture()
    for change in Change.allCases {
      let state = try Self.state(way, fixture)
      func code() -> Status.Code? {
        fixture.failure { try Self.read(method, change.collection, fixture, state) }?.code
      }
      #expect(code() == nil)
      try fixture.commit(change.taken)
      #expect(code() == .permissionDenied)
      try fixture.commit(change.given)
      #expect(code() == nil)
      // The past state must allow the read as well.
      try fixture.commit(change.taken)
      let denying = try Self.state(way, fixture)
      try fixture.commit(change.given)
      let denied = fixture.failure { try Self.read(method, change.collection, fixture, denying) }
      #expect(denied == Status(.permissionDenied, "Missing or insufficient permissions."))
    }
  }

  @Test(arguments: [Method.get, .batchGet, .query, .count, .sum], Way.allCases)
  func privateDocumentsAreNotShownInThePast(_ method: Method, _ way: Way) throws {
    let isPublic = QueryFilter.field(field("public"), .equal, .boolean(true))
    for change: Write in [.set("notes/a", ("public", false), ("n", 1)), .delete("notes/a")] {
      let fixture = try Self.fixture()
      let state = try Self.state(way, fixture)
      func code() -> Status.Code? {
        fixture.failure { try Self.read(method, "notes", fixture, state, filter: isPublic) }?.code
      }
      #expect(code() == nil)
      // A change that leaves the document public does not matter.
      try fixture.commit(.set("notes/a", ("public", true), ("n", 5)))
      #expect(code() == nil)
      try fixture.commit(change)
      // A client repeats an aborted transaction, and then succeeds.
      let aborts = way == .readWrite && method != .get && method != .batchGet
      #expect(code() == (aborts ? .aborted : .permissionDenied))
    }
  }

  @Test func documentsThatExistInOneOfTheStates() throws {
    let fixture = try Self.fixture()
    let ann = ServiceFixture.ann
    let before = try Self.state(.readTime, fixture)
    try fixture.commit(.delete("drafts/a"), .set("drafts/b", ("public", true)), .set("drafts/c"))
    for (path, code) in [
      ("drafts/a", nil), ("drafts/b", Status.Code.notFound), ("drafts/c", .permissionDenied), ("drafts/d", .notFound),
      ("notes/none", .permissionDenied),
    ] {
      #expect(fixture.failure { _ = try fixture.get(path, as: ann, before) }?.code == code, "\(path)")
    }
  }

  @Test(arguments: Way.allCases) func administratorsReadThePastFreely(_ way: Way) throws {
    let fixture = try Self.fixture()
    let time = Timestamp(uncheckedMicroseconds: try fixture.database.read { try $0.lastVersion() })
    let state: ConsistencySelector =
      switch way {
      case .readTime: .readTime(time)
      case .readOnly: .transaction(try fixture.begin(.readOnly(nil)))
      case .readOnlyAtTime: .transaction(try fixture.begin(.readOnly(time)))
      case .readWrite: .transaction(try fixture.begin())
      }
    try fixture.commit(.delete("notes/a"), .delete("roles/ann"))
    #expect(try fixture.get("notes/a", state)["n"] == 1)
    #expect(try fixture.paths(of: Query(collectionID: "notes"), state) == ["notes/a", "notes/b"])
    let counters = fixture.service.counters
    #expect(counters[.rulesAllowed] + counters[.rulesDenied] == 0)
  }

  /// Only reads of an older state are authorized twice.
  @Test(arguments: Way.allCases) func theNewestStateIsAuthorizedOnce(_ way: Way) throws {
    let fixture = try Self.fixture()
    let state = try Self.state(way, fixture)
    func decisions(_ method: Method) throws -> Int {
      let before = fixture.service.counters[.rulesAllowed]
      try Self.read(method, "team", fixture, state)
      return fixture.service.counters[.rulesAllowed] - before
    }
    for method in Method.allCases { #expect(try decisions(method) == 1, "\(method)") }
    try fixture.commit(.set("other/x"))
    for method in Method.allCases { #expect(try decisions(method) == 2, "\(method)") }
  }

  @Test func denialsNameTheStateInEmulatorMode() throws {
    let fixture = try Self.fixture(.emulator)
    let before = try Self.state(.readTime, fixture)
    try fixture.commit(.set("notes/a", ("public", false)))
    let during = try Self.state(.readTime, fixture)
    try fixture.commit(.set("notes/a", ("public", true)))
    try fixture.commit(.set("notes/b", ("public", false)))
    func text(_ path: String, _ state: ConsistencySelector) -> String {
      fixture.failure { _ = try fixture.get(path, as: ServiceFixture.ann, state) }?.message ?? ""
    }
    guard case .readTime(let time) = during else { return }
    #expect(text("notes/a", before).isEmpty)
    #expect(
      text("notes/a", during) == "\nfalse for 'get' @ L9\nThe state at the read time (\(time)) denies this request.")
    #expect(
      text("notes/b", before)
        == "\nfalse for 'get' @ L9\nThe newest state denies this request. It must allow a read in the past as well.")
    #expect(text("notes/b", .latest) == "\nfalse for 'get' @ L9")
    let query = fixture.failure {
      let isPublic = QueryFilter.field(field("public"), .equal, .boolean(true))
      try Self.read(.query, "notes", fixture, before, filter: isPublic)
    }
    #expect(
      query?.message
        == "\nfalse for 'get' @ L9\nA result has changed since, and its newest state denies this request.")
  }

  /// The response to a slow client ends when the caller loses access, but not before a second has passed.
  @Test(arguments: [Method.query, .batchGet], Change.allCases)
  func longResponsesEndWithTheAccess(_ method: Method, _ change: Change) throws {
    let fixture = try Self.fixture()
    try fixture.commit(.set("club/b"), .set("club/c"), .set("team/c"))
    let slice: () throws -> Void
    switch method {
    case .query:
      let cursor = try fixture.service.runQuery(
        RunQueryRequest(Query(collectionID: change.collection)), in: fixture.id, as: ServiceFixture.ann)
      slice = { try cursor.slice { _, _ in false } }
    default:
      let keys = ["a", "b", "c"].map { document("\(change.collection)/\($0)") }
      let cursor = try fixture.batchGet(BatchGetDocumentsRequest(keys), as: ServiceFixture.ann)
      slice = { try cursor.slice { _, _ in false } }
    }
    #expect(fixture.failure(slice) == nil)
    try fixture.commit(change.taken)
    #expect(fixture.failure(slice) == nil)
    fixture.time.advance(seconds: Limits.authorizationAgeSecondsMax)
    #expect(fixture.failure(slice)?.code == .permissionDenied)
  }

  @Test func longResponsesDoNotShowPrivateDocuments() throws {
    let fixture = try Self.fixture()
    var query = Query(collectionID: "notes")
    query.filter = .field(field("public"), .equal, .boolean(true))
    let cursor = try fixture.service.runQuery(RunQueryRequest(query), in: fixture.id, as: ServiceFixture.ann)
    try cursor.slice { _, _ in false }
    try fixture.commit(.set("notes/b", ("public", false)))
    fixture.time.advance(seconds: Limits.authorizationAgeSecondsMax)
    #expect(fixture.failure { try cursor.slice { _, _ in true } }?.code == .permissionDenied)
  }
}
