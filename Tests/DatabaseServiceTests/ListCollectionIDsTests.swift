import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

@Suite struct ListCollectionIDsTests {
  private static func list(
    _ fixture: ServiceFixture, below parent: ResourcePath = .root, _ size: Int = 0, _ token: [UInt8] = [],
    _ consistency: ConsistencySelector = .latest, as caller: Caller = ServiceFixture.admin
  ) throws -> (ids: [String], token: [UInt8]) {
    var request = ListCollectionIdsRequest(below: parent)
    request.pageSize = size
    request.pageToken = token
    request.consistency = consistency
    let page = try fixture.service.listCollectionIds(request, in: fixture.id, as: caller)
    return (page.ids, page.nextPageToken)
  }

  @Test func collectionsAreListedInOrderPageByPage() throws {
    let fixture = try ServiceFixture()
    for id in ["b", "a", "c"] { try fixture.commit(.set("\(id)/x"), .set("\(id)/x/s\(id)/y")) }
    #expect(try Self.list(fixture).ids == ["a", "b", "c"])
    #expect(try Self.list(fixture, below: document("b/x").path).ids == ["sb"])
    #expect(try Self.list(fixture, below: document("b/none").path).ids.isEmpty)
    let first = try Self.list(fixture, 2)
    #expect(first.ids == ["a", "b"])
    let second = try Self.list(fixture, 2, first.token)
    #expect(second.ids == ["c"] && second.token.isEmpty)
  }

  @Test func pastCollectionsAreListed() throws {
    let fixture = try ServiceFixture()
    let first = try fixture.commit(.set("a/x")).version
    try fixture.commit(.delete("a/x"), .set("b/x"))
    #expect(try Self.list(fixture).ids == ["b"])
    #expect(try Self.list(fixture, 0, [], .readTime(first)).ids == ["a"])
  }

  @Test func invalidRequestsAreRefused() throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("a/x"), .set("b/x"), .set("a/x/s/y"), .set("a/x/t/y"))
    let token = try Self.list(fixture, 1).token
    #expect(
      fixture.failure { _ = try Self.list(fixture, -1) } == Status(.invalidArgument, "Page size must be nonnegative."))
    for (parent, token) in [(ResourcePath.root, [1, 2]), (document("a/x").path, token)] {
      let status = fixture.failure { _ = try Self.list(fixture, below: parent, 1, token) }
      #expect(status == Status(.invalidArgument, "invalid page token"))
    }
  }

  @Test func onlyAdministratorsListCollections() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) { _ = try Self.list(fixture, as: $0) }
  }
}
