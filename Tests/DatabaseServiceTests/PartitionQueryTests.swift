import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

@Suite struct PartitionQueryTests {
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /{path=**}/c/{id} { allow read: if request.auth != null; }
      }
    }
    """

  private static func fixture(rules: String? = nil, retention: Retention = Retention()) throws -> ServiceFixture {
    let fixture = try ServiceFixture(rules: rules, retention: retention)
    for number in 10..<22 { try fixture.commit(.set("c/d\(number)"), .set("p/x/c/d\(number)")) }
    return fixture
  }

  private static func request(
    _ count: Int64, query change: (inout Query) -> Void = { _ in }, size: Int = 0, token: [UInt8] = []
  ) -> PartitionQueryRequest {
    var query = Query(collectionID: "c", includesDescendants: true)
    change(&query)
    var request = PartitionQueryRequest(query)
    request.partitionCount = count
    request.pageSize = size
    request.pageToken = token
    return request
  }

  @Test func partitionsDivideTheGroupInNameOrder() throws {
    let fixture = try Self.fixture()
    let cuts = try fixture.partitions(Self.request(3)).partitions
    #expect(cuts.count == 3 && cuts == cuts.sorted())
    #expect(cuts.allSatisfy { $0.path.text.contains("c/d") })
    #expect(try ServiceFixture().partitions(Self.request(3)).partitions.isEmpty)
  }

  /// Commits between two pages do not change the partitions.
  @Test func pagesTogetherEqualTheWholeResponse() throws {
    let fixture = try Self.fixture()
    let whole = try fixture.partitions(Self.request(7))
    #expect(whole.partitions.count == 7 && whole.nextPageToken.isEmpty)
    var request = Self.request(7, size: 3)
    var pages: [[DocumentKey]] = []
    repeat {
      let page = try fixture.partitions(request)
      pages.append(page.partitions)
      request.pageToken = page.nextPageToken
      for number in 0..<5 { try fixture.commit(.set("c/a\(pages.count)-\(number)")) }
    } while !request.pageToken.isEmpty
    #expect(pages.map(\.count) == [3, 3, 1] && pages.flatMap { $0 } == whole.partitions)
  }

  @Test func tokenEndsWithItsHistory() throws {
    let fixture = try Self.fixture(retention: Retention(historySeconds: 300))
    var request = Self.request(7, size: 3)
    request.pageToken = try fixture.partitions(request).nextPageToken
    fixture.time.advance(seconds: 1)
    try fixture.commit(.set("c/new"))
    fixture.time.advance(seconds: 1000)
    try fixture.trim()
    #expect(
      fixture.failure { _ = try fixture.partitions(request) }
        == Status(.failedPrecondition, "The requested 'read_time' is too old."))
  }

  @Test func invalidRequestsAreRefused() throws {
    let fixture = try Self.fixture()
    let token = try fixture.partitions(Self.request(7, size: 3)).nextPageToken
    let form = "A partition query must have one collection with all descendants, ordered by __name__ ascending; "
    let cases: [(PartitionQueryRequest, String)] = [
      (Self.request(0), "partition_count must be positive."), (Self.request(-1), "partition_count must be positive."),
      (Self.request(3, size: -1), "Page size must be nonnegative."),
      (Self.request(3, token: [0, 0, 0]), "invalid page token"),
      (Self.request(6, token: token), "invalid page token"),
      (Self.request(3, query: { $0.includesDescendants = false }), form),
      (Self.request(3, query: { $0.limit = 3 }), form), (Self.request(3, query: { $0.offset = 3 }), form),
      (Self.request(3, query: { $0.orders = [Order(field("a"))] }), form),
      (
        Self.request(3, query: { $0.parent = document("p/x").path }),
        "The parent of a partition query must be the root of the documents."
      ),
    ]
    for (request, message) in cases {
      let status = fixture.failure { _ = try fixture.partitions(request) }
      #expect(status?.code == .invalidArgument && status?.message.hasPrefix(message) == true, "\(status as Any)")
    }
  }

  /// The partitions reveal names of documents.
  @Test func rulesAuthorizeTheQuery() throws {
    let fixture = try Self.fixture(rules: Self.rules)
    #expect(try fixture.partitions(Self.request(3), as: ServiceFixture.ann).partitions.count == 3)
    fixture.expectDenied(to: [ServiceFixture.stranger]) { _ = try fixture.partitions(Self.request(3), as: $0) }
  }
}
