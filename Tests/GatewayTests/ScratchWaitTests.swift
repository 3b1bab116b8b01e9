import Basics
import Foundation
import HearthServer
import Synchronization
import Testing
import TestSupport

/// Requests that wait for memory to sort their results, over real sockets.
@Suite struct ScratchWaitTests {
  /// A server with little scratch memory, all of which `holder` takes.
  private final class Fixture: Sendable {
    let server: TestServer
    let budget: ScratchBudget
    private let milliseconds: Clock
    let holder: Scratch

    final class Clock: Sendable { let now = Atomic<Int64>(1) }

    init() throws {
      let clock = Clock()
      milliseconds = clock
      var limits = ScratchBudget.Limits()
      limits.memoryBytesMax = 64 << 10
      limits.chunkBytes = 8 << 10
      limits.smallBytesMax = 1 << 10
      limits.queryMemoryBytesMax = 64 << 10
      let budget = ScratchBudget(limits, clock: { clock.now.load(ordering: .relaxed) }, hasTimer: false)
      self.budget = budget
      server = try TestServer { $0.scratchBudget = budget }
      holder = Scratch(ScratchSpace(budget))
      let writes = (0..<300).map { number in
        let name = "\(TestServer.name)/c/d\(number)"
        let key = String(repeating: "x", count: 50) + "\(1000 + number * 7 % 300)"
        return
          #"{"update": {"name": "\#(name)", "fields": {"a": {"integerValue": "1"}, "b": {"stringValue": "\#(key)"}}}}"#
      }
      let reply = try server.call("POST", ":commit", #"{"writes": [\#(writes.joined(separator: ","))]}"#)
      try #require(reply.status == 200)
    }

    func exhaust() throws {
      while try holder.allocateOptional(8 << 10) != nil {}
    }

    /// Waits until `count` requests are in line. Meanwhile the server responds to others.
    func waits(_ count: Int) throws -> Bool {
      for _ in 0..<5_000 where budget.use.waiting != count { #expect(try server.call("GET", "/healthz").status < 500) }
      return budget.use.waiting == count
    }

    /// Waits until nothing is in use.
    func becomesFree() throws -> Bool {
      for _ in 0..<5_000 where budget.use != (0, 0, 0) { _ = try server.call("GET", "/healthz") }
      return budget.use == (0, 0, 0)
    }

    func pass(seconds: Int64) {
      milliseconds.now.wrappingAdd(seconds * 1000, ordering: .relaxed)
      budget.tick()
    }
  }

  private static let order = #""orderBy": [{"field": {"fieldPath": "a"}}, {"field": {"fieldPath": "b"}}]"#
  private static let query = #"{"from": [{"collectionId": "c"}], \#(order)}"#
  private static let expected = (0..<300).sorted { ($0 * 7 % 300, $0) < ($1 * 7 % 300, $1) }

  /// A query, an aggregation that must sort, and a list.
  private static let calls: [(method: String, path: String, body: String?)] = [
    ("POST", ":runQuery", #"{"structuredQuery": \#(query)}"#),
    (
      "POST", ":runAggregationQuery",
      #"{"structuredAggregationQuery": {"structuredQuery": {"from": [{"collectionId": "c"}], \#(order), "#
        + #""limit": 250}, "aggregations": [{"alias": "n", "sum": {"field": {"fieldPath": "a"}}}]}}"#
    ),
    ("GET", "/c?orderBy=a,b&pageSize=1000", nil),
  ]

  private static func start(_ fixture: Fixture) -> () -> [TestServer.Response?] {
    startThreads(calls.count) { index in
      let call = calls[index]
      return try? fixture.server.call(call.method, call.path, call.body)
    }
  }

  private static func numbers(_ text: String) -> [Int] {
    text.components(separatedBy: "/documents/c/d").dropFirst().compactMap { Int($0.prefix { $0.isNumber }) }
  }

  @Test func requestsWaitWithoutHoldingALoop() async throws {
    try await onDedicatedThread {
      let fixture = try Fixture()
      try fixture.exhaust()
      let wait = Self.start(fixture)
      #expect(try fixture.waits(Self.calls.count))
      fixture.holder.end()
      let replies = wait()
      let texts = replies.map { $0?.text ?? "" }
      #expect(Self.numbers(texts[0]) == Self.expected)
      #expect(texts[1].contains(#""integerValue": "250""#), "\(texts[1])")
      #expect(Self.numbers(texts[2]) == Self.expected)
      #expect(try fixture.becomesFree())
    }
  }

  @Test func requestsThatWaitTooLongSayWhatToDo() async throws {
    try await onDedicatedThread {
      let fixture = try Fixture()
      try fixture.exhaust()
      let wait = Self.start(fixture)
      #expect(try fixture.waits(Self.calls.count))
      fixture.pass(seconds: 10)
      for reply in wait() {
        #expect(reply?.text.contains("RESOURCE_EXHAUSTED") == true, "\(reply?.text ?? "")")
        #expect(reply?.text.contains("Declare an index for the order of the query, or add a limit") == true)
      }
      fixture.holder.end()
      #expect(try fixture.becomesFree())
    }
  }

  /// The transport lets a client of a list end its sending side and still read, so only streamed responses are cut.
  @Test func clientsThatDisconnectLeaveTheLine() async throws {
    try await onDedicatedThread {
      let fixture = try Fixture()
      try fixture.exhaust()
      var sockets: [LoopbackSocket] = []
      for call in Self.calls.prefix(2) {
        let socket = try LoopbackSocket(port: fixture.server.port)
        let body = call.body ?? ""
        socket.send(
          "\(call.method) \(TestServer.root + call.path) HTTP/1.1\r\nHost: localhost\r\n"
            + "Content-Length: \(body.utf8.count)\r\n\r\n" + body)
        sockets.append(socket)
      }
      #expect(try fixture.waits(2))
      for socket in sockets { socket.close() }
      #expect(try fixture.waits(0))
      fixture.holder.end()
      #expect(try fixture.becomesFree())
    }
  }

  @Test func listenersWaitToo() async throws {
    try await onDedicatedThread {
      let fixture = try Fixture()
      try fixture.exhaust()
      // The results of the first are read by the listener itself, those of the second, with a limit, by the hub.
      for query in [Self.query, String(Self.query.dropLast()) + #", "limit": 200}"#] {
        let feed = try FeedConnection(
          port: fixture.server.port, "POST", TestServer.root + ":listen",
          headers: [("Accept", "text/event-stream"), ("Content-Type", "application/json")],
          body: #"{"structuredQuery": \#(query)}"#)
        #expect(try fixture.waits(1))
        fixture.holder.clear()
        let body = try feed.read(until: #""CURRENT""#)
        #expect(Self.numbers(body).count >= 200)
        feed.close()
        try fixture.exhaust()
      }
      fixture.holder.end()
      #expect(try fixture.becomesFree())
    }
  }
}
