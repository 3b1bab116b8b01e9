import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

/// Declared indexes: their state, the queries that need them, and the suggested declarations.
@Suite struct IndexTests {
  private static let ownerByTime = IndexDefinition(
    collectionID: "c", scope: .collection,
    fields: [
      IndexDefinition.Field(field("owner"), .ascending), IndexDefinition.Field(field("at"), .ascending),
    ])

  private static func query(_ path: String = "owner", by order: String? = "at") -> Query {
    var query = Query(collectionID: "c")
    query.filter = .field(field(path), .equal, 1)
    if let order { query.orders = [Order(field(order))] }
    return query
  }

  @Test func missingIndexIsRefusedIfIndexesAreRequired() throws {
    for requires in [false, true] {
      let fixture = try ServiceFixture(requiresIndexes: requires)
      let status = fixture.failure { _ = try fixture.paths(of: Self.query()) }
      #expect((status?.code == .failedPrecondition) == requires)
      #expect(status?.message.hasPrefix("The query requires an index. You can create it here: https://") != !requires)
      // Every field has an automatic index.
      #expect(fixture.failure { _ = try fixture.paths(of: Self.query(by: nil)) } == nil)
    }
  }

  @Test func indexUnderConstructionIsReported() throws {
    // The observer runs on the writer's thread, so the index is not built as long as it waits.
    let mayBuild = Observed(false)
    let states = Observed<[IndexReport.State]>([])
    let fixture = try ServiceFixture(requiresIndexes: true) { _, reports in
      states.update { $0 += reports.map(\.state) }
      _ = mayBuild.wait { $0 }
    }
    for number in 0..<10 { try fixture.commit(.set("c/d\(number)", ("owner", 1), ("at", .integer(Int64(number))))) }
    try fixture.database.setIndexes(IndexConfiguration(indexes: [Self.ownerByTime]))
    let text = fixture.failure { _ = try fixture.paths(of: Self.query()) }?.message
    #expect(
      text?.hasPrefix(
        "The query requires an index. That index is currently building and cannot be used yet. See its status here: "
          + "https://console.firebase.google.com/v1/r/project/p/firestore/indexes?create_composite=") == true,
      "\(text ?? "no error")")
    let listed = try fixture.service.listIndexes(in: fixture.id, as: ServiceFixture.admin)
    #expect(listed.map(\.state) == [.building] && listed.map(\.definition) == [Self.ownerByTime])
    mayBuild.value = true
    #expect(states.wait { $0.last == .ready })
    #expect(try fixture.paths(of: Self.query()) == (0..<10).map { "c/d\($0)" })
    #expect(
      try fixture.service.indexReports(in: fixture.id, as: ServiceFixture.admin).map(\.line) == [
        "c (owner ascending, at ascending): ready"
      ])
  }

  @Test func suggestedIndexesSuffice() throws {
    let fixture = try ServiceFixture(requiresIndexes: true)
    #expect(fixture.failure { _ = try fixture.paths(of: Self.query()) }?.code == .failedPrecondition)
    let suggested = try fixture.service.suggestIndexes(nil, in: fixture.id, as: ServiceFixture.admin)
    #expect(suggested.queries == 1 && suggested.added == 1 && suggested.isComplete)
    #expect(try FirestoreService.indexConfiguration(suggested.file) == suggested.configuration)
    #expect(throws: Status.self) { try FirestoreService.indexConfiguration(Array("{".utf8)) }
    let declared = try ServiceFixture(requiresIndexes: true)
    try declared.database.setIndexes(suggested.configuration)
    #expect(declared.failure { _ = try declared.paths(of: Self.query()) } == nil)
    let again = try declared.service.suggestIndexes(nil, in: declared.id, as: ServiceFixture.admin)
    #expect(again.queries == 1 && again.added == 0)
  }

  @Test func rememberedQueriesAreLimited() throws {
    let fixture = try ServiceFixture()
    func run(_ number: Int, by order: String? = nil) throws {
      var query = Self.query("f\(number)", by: order)
      query.limit = 0
      _ = try fixture.paths(of: query)
    }
    func suggest() throws -> IndexSuggestions {
      try fixture.service.suggestIndexes(nil, in: fixture.id, as: ServiceFixture.admin)
    }
    // A file cannot declare more than a thousand indexes.
    for number in 0..<1000 { try run(number, by: "at") }
    #expect(try suggest().isComplete)
    try run(1000, by: "at")
    #expect(try !suggest().isComplete && suggest().added == 1000)
    for number in 0..<8999 { try run(number) }
    #expect(try suggest().queries == 10_000)
    try run(8999)
    #expect(try suggest().queries == 10_000)
  }

  @Test func onlyAdministratorsSeeIndexes() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    var configuration = IndexConfiguration(indexes: [Self.ownerByTime])
    configuration.fields = [FieldIndexing(collectionID: "c", path: field("b"), entries: [])]
    try fixture.database.setIndexes(configuration)
    #expect(
      try fixture.service.listFields(in: fixture.id, as: ServiceFixture.admin).map(\.path) == [field("b")])
    let calls: [(Caller) throws -> Void] = [
      { _ = try fixture.service.listIndexes(in: fixture.id, as: $0) },
      { _ = try fixture.service.listFields(in: fixture.id, as: $0) },
      { _ = try fixture.service.indexReports(in: fixture.id, as: $0) },
      { _ = try fixture.service.suggestIndexes(nil, in: fixture.id, as: $0) },
    ]
    for call in calls { fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger], call) }
  }
}
