import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

@Suite struct ListDocumentsTests {
  private static func request(
    _ path: String = "c", change: (inout ListDocumentsRequest) -> Void = { _ in }
  ) -> ListDocumentsRequest {
    var request = ListDocumentsRequest(collection(path))
    change(&request)
    return request
  }

  /// Returns the paths on each page.
  private static func pages(_ request: ListDocumentsRequest, _ fixture: ServiceFixture) throws -> [[String]] {
    var request = request
    var pages: [[String]] = []
    repeat {
      let page = try fixture.page(request)
      pages.append(page.paths)
      request.pageToken = page.token
      // The token must fit in a URL.
      #expect(request.pageToken.count < 10_000)
    } while !request.pageToken.isEmpty && pages.count < 100
    return pages
  }

  @Test func collectionIsListedPageByPage() throws {
    let fixture = try ServiceFixture()
    for id in ["b", "a", "d", "c", "e"] { try fixture.commit(.set("c/\(id)"), .set("c/\(id)/s/x")) }
    #expect(
      try Self.pages(Self.request { $0.pageSize = 2 }, fixture) == [["c/a", "c/b"], ["c/c", "c/d"], ["c/e"]])
    #expect(try Self.pages(Self.request(), fixture) == [["c/a", "c/b", "c/c", "c/d", "c/e"]])
    #expect(try Self.pages(Self.request("none"), fixture) == [[]])
    #expect(try Self.pages(Self.request("c/a/s"), fixture) == [["c/a/s/x"]])
  }

  /// A page shows the state at the time of its own request, from the position of the previous page.
  @Test func pagesContinueAtTheirPositionAfterChanges() throws {
    let fixture = try ServiceFixture()
    for id in ["a", "b", "c", "d"] { try fixture.commit(.set("c/\(id)")) }
    var request = Self.request { $0.pageSize = 2 }
    request.pageToken = try fixture.page(request).token
    try fixture.commit(.delete("c/b"), .set("c/aa"), .set("c/bb"))
    #expect(try fixture.page(request).paths == ["c/bb", "c/c"])
  }

  @Test func collectionsBelowAParentAreListedTogether() throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("a/x"), .set("b/y"), .set("b/y/deep/z"), .set("c/z"))
    #expect(try fixture.page(ListDocumentsRequest(allBelow: .root)).paths == ["a/x", "b/y", "c/z"])
    #expect(try fixture.page(ListDocumentsRequest(allBelow: document("b/y").path)).paths == ["b/y/deep/z"])
  }

  @Test func missingParentsAreListedOnRequest() throws {
    let fixture = try ServiceFixture()
    try fixture.commit(.set("c/b"), .set("c/a/s/x"), .set("c/c/s/x/t/y"))
    #expect(try fixture.page(Self.request()).paths == ["c/b"])
    #expect(
      try fixture.page(Self.request { $0.showMissing = true }).paths == ["c/a (missing)", "c/b", "c/c (missing)"])
  }

  @Test func listsOrderUnusualIDsAndLongValues() throws {
    let fixture = try ServiceFixture()
    let ids = ["__id-2__", "__id7__", "a", "a\u{0}", "a\u{0}b", "a\u{1}", "ab", "\u{1F600}"]
    let long = Value.string(String(repeating: "x", count: 100_000))
    for id in ids { try fixture.commit(.set("c/" + id, ("n", 1), ("long", long))) }
    let paths = ids.map { "c/" + $0 }
    func list(_ orderBy: String, _ pageSize: Int) throws -> [String] {
      let request = Self.request {
        $0.orderBy = orderBy
        $0.pageSize = pageSize
      }
      return try Self.pages(request, fixture).flatMap { $0 }
    }
    for size in [1, 3, 100] {
      #expect(try list("__name__ desc", size) == paths.reversed())
      #expect(try list("n", size) == paths)
      #expect(try list("n desc", size) == paths.reversed())
      #expect(try list("n desc, __name__", size) == paths)
      #expect(try list("long desc, n", size) == paths)
    }
    #expect(try list("none", 1).isEmpty)
  }

  @Test func pagesAreBoundedInBytes() throws {
    let fixture = try ServiceFixture()
    let large = Value.bytes(Array(repeating: 1, count: 1_000_000))
    for index in 0..<12 { try fixture.commit(.set("c/d\(index + 10)", ("b", large), ("n", .integer(Int64(index))))) }
    for order in ["", "n", "n desc", "__name__ desc"] {
      let request = Self.request {
        $0.orderBy = order
        $0.pageSize = 100
      }
      let pages = try Self.pages(request, fixture)
      #expect(pages.map(\.count) == [9, 3], "by '\(order)'")
      #expect(Set(pages.flatMap { $0 }).count == 12)
    }
  }

  @Test func invalidListingsAreRefused() throws {
    let fixture = try ServiceFixture()
    for id in ["a", "b"] { try fixture.commit(.set("c/\(id)"), .set("d/\(id)")) }
    let token = try fixture.page(Self.request { $0.pageSize = 1 }).token
    var below = ListDocumentsRequest(allBelow: .root)
    below.showMissing = true
    var ordered = ListDocumentsRequest(allBelow: .root)
    ordered.orderBy = "a"
    let cases: [(ListDocumentsRequest, String)] = [
      (Self.request { $0.pageSize = -1 }, "Page size must be nonnegative."),
      (Self.request { $0.pageToken = [1] }, "invalid page token"),
      (Self.request("d") { $0.pageToken = token }, "invalid page token"),
      (
        Self.request {
          $0.pageToken = token
          $0.orderBy = "a"
        }, "invalid page token"
      ),
      (
        Self.request {
          $0.showMissing = true
          $0.orderBy = "a"
        }, "cannot specify an order when show_missing is true"
      ),
      (below, "collection id must be set when show_missing is true"),
      (ordered, "kind is required for all orders except __key__ ascending"),
    ]
    for (request, message) in cases {
      #expect(fixture.failure { _ = try fixture.page(request) } == Status(.invalidArgument, message))
    }
  }

  @Test func rulesSeeTheLimitOfAListing() throws {
    let fixture = try ServiceFixture(rules: ServiceFixture.rules)
    for id in ["a", "b", "c"] { try fixture.commit(.set("open/\(id)")) }
    let two = Self.request("open") { $0.pageSize = 2 }
    #expect(try fixture.page(two, as: ServiceFixture.stranger).paths == ["open/a", "open/b"])
    for size in [0, 3] {
      fixture.expectDenied(to: [ServiceFixture.ann, ServiceFixture.stranger]) {
        _ = try fixture.page(Self.request("open") { $0.pageSize = size }, as: $0)
      }
    }
    // The rules do not prove that each note belongs to the caller.
    fixture.expectDenied(to: [ServiceFixture.ann]) { _ = try fixture.page(Self.request("notes"), as: $0) }
    fixture.expectDenied(to: [ServiceFixture.ann]) {
      _ = try fixture.page(
        Self.request("open") {
          $0.showMissing = true
          $0.pageSize = 1
        }, as: $0)
    }
  }

  @Test func stateOfACollectionChangesWithItsDocuments() throws {
    let fixture = try ServiceFixture()
    func state() throws -> (incarnation: UInt64, lastChange: Int64) {
      try fixture.service.listDocuments(Self.request(), in: fixture.id, as: ServiceFixture.admin).state
    }
    #expect(try state().lastChange == 0)
    let version = try fixture.commit(.set("c/x")).version.microseconds
    #expect(try state().lastChange == version)
    try fixture.commit(.set("other/x"))
    #expect(try state().lastChange == version)
    let before = try state().incarnation
    try fixture.clear()
    #expect(try state().incarnation != before)
  }
}
