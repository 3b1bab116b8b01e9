import DatabaseService
import DocumentModel
import Foundation
import Testing
import TestSupport
import WireFormat

@testable import FirestoreAPI
@testable import GatewayCore
@testable import Transport

/// Feeds over real sockets, with events that the tests produce.
@Suite struct ChangeFeedResponseTests {
  /// The events that a test sends to the feeds of its server, and the state of those feeds. Several event loops use
  /// it.
  private final class Source: Sendable {
    struct State {
      var texts: [String] = []
      var failure: Status?
      var isEndless = false
      var isAdmitted = true
      var isEnded = false
      /// Callbacks that wake the waiting feeds, by the number of the feed.
      var wakes: [Int: @Sendable () -> Void] = [:]
      var opened = 0
      var ended = 0
      var producedBytes = 0
    }
    let state = Observed(State())

    /// Changes the state and wakes every feed that waits.
    func update(_ change: (inout State) -> Void) {
      let wakes = state.update { state in
        change(&state)
        defer { state.wakes = [:] }
        return Array(state.wakes.values)
      }
      for wake in wakes { wake() }
    }
  }

  private final class Producer: ChangeFeedProducer {
    let source: Source
    let wake: @Sendable () -> Void
    private let number: Int
    private var sent = 0

    init(_ source: Source, _ wake: @escaping @Sendable () -> Void) {
      self.source = source
      self.wake = wake
      number = source.state.update { state in
        state.opened += 1
        return state.opened
      }
    }

    var isAdmitted: Bool { source.state.value.isAdmitted }

    func produce(into writer: inout ChangeFeedWriter, bytesMax: Int) throws -> BodyProgress {
      let state = source.state.value
      let (texts, failure, isEndless, isEnded) = (state.texts, state.failure, state.isEndless, state.isEnded)
      while sent < texts.count || isEndless {
        let text = isEndless ? String(repeating: "x", count: 1000) : texts[sent]
        writer.event(token: [UInt8(truncatingIfNeeded: sent)]) { $0.string(text) }
        sent += 1
        guard writer.byteCount < bytesMax else {
          source.state.update { $0.producedBytes += Exchange.sliceBytes }
          return .more
        }
      }
      if let failure { throw failure }
      if isEnded { return .finished }
      source.state.update { $0.wakes[number] = wake }
      return .waiting
    }

    func end() { source.state.update { $0.ended += 1 } }
  }

  private final class Handler: RequestHandler {
    let source: Source
    init(_ source: Source) { self.source = source }

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      let reply = Responder(exchange, request)
      let isLines = request.target.elementsEqual("/lines".utf8)
      guard let database = DatabaseID(project: "p") else { return }
      do {
        try ChangeFeedResponse.start(reply, isLines ? .lines : .events, of: database) { Producer(source, $0) }
      } catch { reply.sendError(Status(error, database: database)) }
    }
  }

  /// A feed server, stopped when the object is released.
  private final class Server {
    let source = Source()
    let clock = ManualClock()
    let server: HTTPServer
    let port: UInt16

    init(loops: Int = 2) throws {
      var configuration = TransportConfiguration()
      configuration.port = 0
      configuration.loops = loops
      configuration.clock = clock
      configuration.errorBody = ErrorJSON.body
      server = try HTTPServer(configuration: configuration, handler: Handler(source))
      port = UInt16(try server.start().port)
    }

    deinit { server.stop(graceSeconds: 0) }

    func connect(_ target: String = "/events") throws -> FeedConnection {
      try FeedConnection(port: port, "GET", target, headers: [("Origin", "http://page.example")])
    }

    func advance(seconds: Int) {
      clock.advance(milliseconds: seconds * 1000)
      server.sweepDeadlines()
    }

    /// Waits until the state satisfies a condition, which other threads bring about.
    func wait(_ condition: (Source.State) -> Bool) -> Bool { source.state.wait(until: condition) }

    /// Gives the loops turns until feeds that can send have nothing more to send.
    func settle() {
      var produced = -1
      while produced != source.state.value.producedBytes {
        produced = source.state.value.producedBytes
        for _ in 0..<50 { server.sweepDeadlines() }
      }
    }
  }

  @Test func eventsHaveTheRequestedFormat() throws {
    let server = try Server()
    server.source.update { $0.texts = ["one", "two\nlines"] }
    let events = try server.connect()
    try events.read(until: "\n\n", count: 3)
    #expect(events.body == "retry: 2000\n\ndata: \"one\"\nid: AA==\n\ndata: \"two\\nlines\"\nid: AQ==\n\n")
    #expect(events.head.contains("content-type: text/event-stream"))
    #expect(events.head.contains("cache-control: no-store, no-transform"))
    #expect(events.head.contains("access-control-allow-origin: http://page.example"))
    let lines = try server.connect("/lines")
    try lines.read(until: "\n", count: 2)
    #expect(lines.body == "\"one\"\n\"two\\nlines\"\n")
    #expect(lines.head.contains("content-type: application/x-ndjson"))
    #expect(server.wait { $0.wakes.count == 2 })
    server.source.update { $0.texts.append("three") }
    try events.read(until: "data: \"three\"\nid: Ag==\n\n")
    try lines.read(until: "\"three\"\n")
    server.source.update { $0.isEnded = true }
    try events.readToEnd()
    try lines.readToEnd()
    #expect(server.wait { $0.ended == 2 })
  }

  @Test func failureBeforeTheFirstEventSetsTheStatus() throws {
    let server = try Server()
    // The server does not know yet whether the caller may read the feed, so it sends nothing.
    server.source.update {
      $0.isAdmitted = false
      $0.texts = ["hidden"]
    }
    let feed = try server.connect()
    #expect(server.wait { $0.wakes.count == 1 })
    server.source.update { $0.failure = Status(.permissionDenied, "no") }
    try feed.readToEnd()
    #expect(feed.status == 403)
    #expect(feed.body.contains(#""status": "PERMISSION_DENIED""#) && !feed.body.contains("hidden"))
    #expect(server.wait { $0.ended == 1 })
  }

  @Test func laterFailureIsTheLastEvent() throws {
    let server = try Server()
    server.source.update { $0.texts = ["one"] }
    let feed = try server.connect("/lines")
    try feed.read(until: "one")
    #expect(server.wait { $0.wakes.count == 1 })
    server.source.update { $0.failure = Status(.permissionDenied, "no more") }
    try feed.readToEnd()
    #expect(
      feed.body == "\"one\"\n" + #"{"error":{"code":403,"message":"no more","status":"PERMISSION_DENIED"}}"# + "\n")
  }

  @Test func silentFeedsSendKeepAlives() throws {
    let server = try Server()
    server.source.update { $0.texts = ["one"] }
    let (events, lines) = (try server.connect(), try server.connect("/lines"))
    try events.read(until: "one")
    try lines.read(until: "one")
    #expect(server.wait { $0.wakes.count == 2 })
    server.advance(seconds: 24)
    server.source.update { $0.texts.append("two") }
    try events.read(until: "two")
    server.advance(seconds: 10)
    // The server sent an event ten seconds ago.
    #expect(!events.body.contains("keep-alive"))
    server.advance(seconds: 16)
    try events.read(until: ": keep-alive\n\n")
    server.advance(seconds: 26)
    try events.read(until: ": keep-alive\n\n", count: 2)
    // A feed outlives the idle timeout of connections.
    for _ in 0..<10 { server.advance(seconds: 26) }
    #expect(server.wait { $0.wakes.count == 2 })
    server.source.update { $0.texts.append("three") }
    try lines.read(until: "three")
    #expect(lines.body == "\"one\"\n\"two\"\n\"three\"\n")
    try events.read(until: "three")
  }

  @Test func feedPausesIfTheClientDoesNotRead() throws {
    let server = try Server()
    server.source.update { $0.isEndless = true }
    let feed = try server.connect()
    // The buffers of the sockets take some megabytes, then the feed pauses.
    #expect(server.wait { $0.producedBytes > 0 })
    server.settle()
    #expect(server.source.state.value.producedBytes < 32 << 20)
    // The server drops a client that reads nothing for half a minute. The kernel may still move some bytes from one
    // buffer to the other, which counts as reading.
    for _ in 0..<100 where server.source.state.value.ended == 0 {
      server.advance(seconds: 20)
      server.settle()
    }
    #expect(server.wait { $0.ended == 1 })
    #expect(feed.isCut())
  }

  @Test func feedsOfClientsThatDisconnectEnd() throws {
    let server = try Server()
    server.source.update { $0.texts = ["one"] }
    do {
      let feed = try server.connect()
      try feed.read(until: "one")
    }
    #expect(server.wait { $0.ended == 1 })
    // A client may also disconnect before the first event.
    server.source.update { $0.isAdmitted = false }
    do {
      _ = try server.connect()
      #expect(server.wait { $0.opened == 2 && $0.wakes.count == 1 })
    }
    // The client may have closed only its sending side, so it has some seconds to read the response.
    for _ in 0..<3 { server.advance(seconds: 5) }
    #expect(server.wait { $0.ended == 2 })
    // The server does not wake feeds that have ended.
    server.source.update { $0.texts.append("two") }
  }

  @Test func stoppingTheServerEndsItsFeeds() throws {
    let server = try Server()
    server.source.update { $0.texts = ["one"] }
    let feeds = try (0..<10).map { _ in try server.connect() }
    for feed in feeds { try feed.read(until: "one") }
    let transport = server.server
    let stopping = startThreads(1) { _ in transport.stop(graceSeconds: 600) }
    // The feeds end with a complete response, well within the grace period. Then the server waits for clients to
    // close.
    for feed in feeds {
      try feed.readToEnd()
      feed.close()
    }
    #expect(server.wait { $0.ended == 10 })
    _ = stopping()
  }

  /// Other tests have files open at the same time.
  @Test(.needs(.openFiles(6001))) func oneAddressMayHaveThousandsOfFeeds() throws {
    let count = 2000
    let server = try Server()
    server.source.update { $0.texts = ["one"] }
    let feeds = try (0..<count).map { _ in try server.connect() }
    for feed in feeds { try feed.read(until: "one") }
    #expect(server.wait { $0.wakes.count == count })
    server.source.update { $0.texts.append("two") }
    for feed in feeds { try feed.read(until: "two") }
    #expect(server.server.openConnections == count)
  }
}
