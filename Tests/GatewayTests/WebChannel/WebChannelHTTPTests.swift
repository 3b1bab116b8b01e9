import Callers
import DatabaseService
import Dispatch
import DocumentModel
import Synchronization
import Testing
import TestSupport

@testable import FirestoreAPI
@testable import GatewayCore
@testable import Transport

/// Channels over sockets, with a scripted call: handshake, both directions, replay, ends and limits.
@Suite struct WebChannelHTTPTests {
  /// The messages that a scripted call received, and those it is to send. Safe to use from any thread.
  private final class Script: Sendable {
    struct State {
      var heard: [String] = []
      var say: [String] = []
      var failure: Status?
      var isFinished = false
      var hasRoom = true
      var ends = 0
      var callers: [String] = []
      var wakes: [@Sendable () -> Void] = []
    }

    let state = Mutex(State())

    var heard: [String] { state.withLock { $0.heard } }
    var ends: Int { state.withLock { $0.ends } }

    func change(_ body: @Sendable (inout State) -> Void) {
      let wakes = state.withLock { state in
        body(&state)
        return state.wakes
      }
      for wake in wakes { wake() }
    }

    func say(_ messages: String...) { change { $0.say += messages } }
  }

  private final class ScriptedCall: ChannelStream {
    let script: Script
    var database: DatabaseID? { nil }
    var hasRoom: Bool { script.state.withLock { $0.hasRoom } }

    init(_ script: Script) { self.script = script }

    func receive(_ request: [UInt8]) throws {
      let text = String(decoding: request, as: UTF8.self)
      script.state.withLock { $0.heard.append(text) }
      if text == "bad" { throw Status(.invalidArgument, "„bad“ is bad") }
      if text == "echo" { script.state.withLock { $0.say.append(#""echo""#) } }
    }

    func pull(_ emit: (UnsafeRawBufferPointer) -> Bool) throws -> BodyProgress {
      while let next = script.state.withLock({ $0.say.first }) {
        script.state.withLock { _ = $0.say.removeFirst() }
        guard Array(next.utf8).withUnsafeBytes({ emit($0) }) else { return .more }
      }
      let (failure, isFinished) = script.state.withLock { ($0.failure, $0.isFinished) }
      if let failure { throw failure }
      return isFinished ? .finished : .waiting
    }

    func stop(_ status: Status) { script.state.withLock { $0.failure = status } }

    func end() {
      script.state.withLock { state in
        state.ends += 1
        state.wakes = []
      }
    }
  }

  private struct Verifier: TokenVerifier {
    func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
      if token.elementsEqual("admin".utf8) { return .admin }
      throw Status(.unauthenticated, "no such token")
    }
  }

  /// A channel server on a free port.
  private final class Server: RequestHandler {
    let script = Script()
    let table: ChannelTable
    let clock = ManualClock()
    private let handler: WebChannelHandler
    private let running = Mutex<HTTPServer?>(nil)
    private let port16 = Atomic<UInt16>(0)

    var port: UInt16 { port16.load(ordering: .relaxed) }

    init(loops: Int = 1, limits: ChannelTable.Limits = ChannelTable.Limits()) throws {
      table = ChannelTable(limits)
      let script = script
      handler = WebChannelHandler(Authenticator(verifier: Verifier(), mode: .production), channels: table) {
        _, caller, wake in
        let name =
          switch caller {
          case .administrator: "admin"
          case .user: "user"
          }
        script.state.withLock { state in
          state.callers.append(name)
          state.wakes.append(wake)
        }
        return ScriptedCall(script)
      }
      var configuration = TransportConfiguration()
      configuration.port = 0
      configuration.loops = loops
      configuration.clock = clock
      let server = try HTTPServer(configuration: configuration, handler: self)
      port16.store(UInt16(try server.start().port), ordering: .relaxed)
      running.withLock { $0 = server }
    }

    func stop(graceSeconds: Int = 0) {
      let server = running.withLock { server in
        defer { server = nil }
        return server
      }
      server?.stop(graceSeconds: graceSeconds)
    }

    func advance(milliseconds: Int) {
      clock.advance(milliseconds: milliseconds)
      running.withLock { $0 }?.sweepDeadlines()
    }

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      RequestDispatcher(handler.endpoints).handle(request, exchange)
    }
  }

  @Test func channelCarriesMessagesInBothDirections() throws {
    let server = try Server()
    defer { server.stop() }
    let client = ChannelClient(server.port)
    let opened = try client.open("headers=Authorization%3ABearer%20admin%0D%0A&count=1&ofs=0&req0___data__=first")
    #expect(opened.status == 200 && opened.text == "60\n[[0,[\"c\",\"\(client.id)\",\"\",8,12,30000]]]")
    #expect(opened.header("content-type") == "text/plain; charset=utf-8")
    #expect(opened.header("cache-control") == "no-store" && opened.header("x-content-type-options") == "nosniff")
    #expect(opened.header("x-client-wire-protocol") == nil && opened.header("x-http-session-id") == nil)
    #expect(opened.header("access-control-allow-origin") == "http://page.test")
    #expect(opened.header("access-control-allow-credentials") == "true")
    #expect(opened.header("access-control-expose-headers")?.contains("X-Client-Wire-Protocol") == true)
    #expect(opened.header("vary") == "Origin")
    #expect(server.script.heard == ["first"] && server.script.state.withLock { $0.callers } == ["admin"])
    server.script.say("{}")
    try client.listen("AID=0&CI=0")
    #expect(try client.next() == "[[1,[{}]]]")
    let head = client.back?.head ?? ""
    #expect(head.contains("Access-Control-Allow-Origin: *") == false && head.contains("X-Accel-Buffering: no"))
    #expect(try client.send("count=1&ofs=1&req0___data__=second", acknowledging: 1) == "7\n[1,1,0]")
    #expect(try client.send("count=1&ofs=1&req0___data__=second", acknowledging: 1) == "7\n[1,1,0]")
    #expect(server.script.heard == ["first", "second"])
    server.script.say(#"{"ü":1}"#, "{}")
    #expect(try client.next() == #"[[2,[{"\u00fc":1}]],[3,[{}]]]"#)
    #expect(try client.send(acknowledging: 1) == "8\n[1,3,28]")
  }

  @Test func newStreamSendsAtOnceAndIsKeptAlive() throws {
    let server = try Server()
    defer { server.stop() }
    let client = ChannelClient(server.port)
    try client.open()
    try client.listen("AID=0&CI=0")
    #expect(try client.next() == #"[[1,["noop"]]]"#)
    for number in 2...3 {
      server.advance(milliseconds: ChannelSession.silenceMilliseconds)
      #expect(try client.next() == #"[[\#(number),["noop"]]]"#)
    }
    // The response ends after a while, with a last chunk.
    server.advance(milliseconds: ChannelSession.silenceMilliseconds)
    #expect(try client.next() == #"[[4,["noop"]]]"#)
    #expect(try client.back?.next() == nil)
    try client.listen("AID=4&CI=0")
    server.script.say("{}")
    #expect(try client.next().hasPrefix("[[5,"))
  }

  @Test func pollsEndWithTheirChunk() throws {
    let server = try Server()
    defer { server.stop() }
    let client = ChannelClient(server.port)
    try client.open()
    server.script.say("{}")
    try client.listen("AID=0&CI=1")
    #expect(try client.next() == "[[1,[{}]]]")
    #expect(try client.back?.next() == nil)
    try client.listen("AID=1&CI=1&TO=5000")
    // The poll's timer is set when this POST gets its response, because one event loop handles both.
    #expect(try client.send(acknowledging: 1) == "7\n[1,1,0]")
    server.advance(milliseconds: 5000)
    #expect(try client.next() == #"[[2,["noop"]]]"#)
    #expect(try client.back?.next() == nil)
  }

  @Test func clientBehindABufferingProxyPolls() throws {
    let server = try Server()
    defer { server.stop() }
    let client = ChannelClient(server.port)
    try client.open()
    server.script.say("1", "2", "3")
    try client.listen("AID=0&CI=0")
    #expect(try client.next() == "[[1,[1]],[2,[2]],[3,[3]]]")
    // The client received nothing of the stream.
    let first = client.back
    try client.listen("AID=0&CI=1")
    #expect(try client.next() == "[[1,[1]],[2,[2]],[3,[3]]]")
    #expect(try client.back?.next() == nil)
    #expect(try first?.next() == nil, "the replaced response has ended")
    try client.listen("AID=3&CI=1")
    server.script.say("4")
    #expect(try client.next() == "[[4,[4]]]")
  }

  @Test func brokenBackChannelIsReplayed() throws {
    let server = try Server(loops: 2)
    defer { server.stop() }
    let client = ChannelClient(server.port)
    try client.open()
    try client.listen("AID=0&CI=0")
    _ = try client.next()
    server.script.say("2", "3")
    var seen = try client.next()
    while !seen.contains("[3,[3]]") { seen += try client.next() }
    client.breakOff()
    // The server notices a moment later. Until then, the response to a POST reports a back channel.
    while try client.send(acknowledging: 2).contains("[1,3,") {}
    server.script.say("4")
    try client.listen("AID=2&CI=0")
    seen = try client.next()
    while !seen.contains("[4,[4]]") { seen += try client.next() }
    #expect(seen.hasPrefix("[[3,[3]]"))
  }

  @Test func errorsAreSentInTheChannel() throws {
    let server = try Server()
    defer { server.stop() }
    for (form, expected) in [
      (
        "count=1&ofs=0&req0___data__=bad",
        #"[[1,[{"error":{"code":400,"message":"\u201ebad\u201c is bad","status":"INVALID_ARGUMENT"}}]]]"#
      ),
      (
        "headers=authorization%3ABearer%20nobody%0D%0A&count=1&ofs=0&req0___data__=x",
        #"[[1,[{"error":{"code":401,"message":"no such token","status":"UNAUTHENTICATED"}}]]]"#
      ),
    ] {
      let client = ChannelClient(server.port)
      #expect(try client.open(form).status == 200)
      try client.listen("AID=0&CI=0")
      let error = try client.next()
      #expect(error == expected)
      #expect(try client.back?.next() == nil, "nothing follows an error")
      // The server ignores messages that the client sends after the error.
      #expect(try client.send("count=1&ofs=1&req0___data__=late", acknowledging: 0).contains("[0,1,"))
      // The client has acknowledged the error, so the channel is gone.
      try client.listen("AID=1&CI=0")
      #expect(
        client.back?.status == 400
          && client.back?.text.firstRange(of: "Unknown SID")?.lowerBound != client.back?.text.startIndex)
    }
    #expect(!server.script.heard.contains("late"))
    let client = ChannelClient(server.port)
    try client.open()
    server.script.change { $0.isFinished = true }
    try client.listen("AID=0&CI=0")
    #expect(try client.next() == #"[[1,["close"]]]"#)
  }

  @Test func headersMayBeInTheFormTheQueryOrTheRequest() throws {
    let server = try Server()
    defer { server.stop() }
    let bad = "Authorization%3ABearer%20bad%0D%0A"
    let good = "X%3Ay%0D%0Aauthorization%3A%20Bearer%20admin%0D%0A"
    for (form, query, header) in [
      ("headers=\(good)&count=0", "&%24httpHeaders=\(bad)", "Bearer bad"),
      ("count=0", "&%24httpHeaders=\(good)", "Bearer bad"),
      ("headers=X%3Ay%0D%0A&count=0", "", "Bearer admin"),
    ] {
      let client = ChannelClient(server.port)
      try client.open(form, query: "RID=1\(query)", headers: [("Authorization", header)])
    }
    try ChannelClient(server.port).open()
    #expect(server.script.state.withLock { $0.callers } == ["admin", "admin", "admin", "user"])
  }

  @Test func invalidChannelRequestsAreRefused() throws {
    let server = try Server()
    defer { server.stop() }
    let client = ChannelClient(server.port)
    try client.open()
    let none = String(repeating: "0", count: 32)
    for (method, target, form) in [
      ("POST", "\(ChannelClient.root)Listen/channel?VER=8&SID=\(none)&RID=1&AID=0", "count=0"),
      ("POST", "\(ChannelClient.root)Listen/channel?VER=8&SID=x&RID=1&AID=0", "count=0"),
      ("POST", "\(ChannelClient.root)Write/channel?VER=8&SID=\(client.id)&RID=1&AID=0", "count=0"),
      ("POST", "\(ChannelClient.root)Listen/channel?VER=8&SID=\(client.id)&RID=1&AID=7", "count=0"),
      (
        "POST", "\(ChannelClient.root)Listen/channel?VER=8&SID=\(client.id)&RID=1&AID=0",
        "count=1&ofs=5000&req0___data__=x"
      ),
      (
        "POST", "\(ChannelClient.root)Listen/channel?VER=8&SID=\(client.id)&RID=1&AID=0",
        "count=1&ofs=0&req0___data__=%"
      ),
      ("POST", "\(ChannelClient.root)Listen/channel?VER=7&RID=1", "count=0"),
      ("GET", "\(ChannelClient.root)Listen/channel?VER=8&RID=rpc&SID=\(none)&AID=0&CI=0", ""),
      ("GET", "\(ChannelClient.root)Listen/channel?VER=8&RID=rpc&AID=0&CI=0", ""),
      ("GET", "\(ChannelClient.root)Listen/channel?VER=8&RID=rpc&SID=\(client.id)&AID=99&CI=0", ""),
    ] {
      let reply = try client.posts.send(method, target, headers: ChannelClient.form, body: Array(form.utf8))
      #expect(reply.status == 400 && !reply.body.isEmpty, "\(method) \(target)")
      #expect(reply.header("access-control-allow-origin") == "http://page.test", "\(target)")
      if target.contains(none) { #expect(reply.text.contains("Unknown SID") && !reply.text.hasPrefix("Unknown SID")) }
    }
    let reply = try client.posts.send(
      "PUT", "\(ChannelClient.root)Listen/channel?VER=8", headers: ChannelClient.form, body: [])
    #expect(reply.status == 405)
    #expect(try client.send(acknowledging: 0) == "7\n[0,0,0]", "the channel still works")
  }

  @Test func terminateEndsTheCallAndItsBackChannel() throws {
    let server = try Server(loops: 2)
    defer { server.stop() }
    let client = ChannelClient(server.port)
    try client.open()
    try client.listen("AID=0&CI=0")
    _ = try client.next()
    let ended = try client.posts.send(
      "POST", "\(ChannelClient.root)Listen/channel?VER=8&SID=\(client.id)&RID=3&TYPE=terminate",
      headers: [("Content-Type", "text/plain")],
      body: [])
    #expect(ended.status == 200)
    #expect(try client.back?.next() == nil)
    #expect(server.script.ends == 1 && server.table.count == 0)
    try client.listen("AID=1&CI=0")
    #expect(client.back?.status == 400)
    #expect(
      try client.posts.send("GET", "\(ChannelClient.root)Listen/channel?VER=8&SID=\(client.id)&TYPE=terminate").status
        == 200)
  }

  @Test func channelsWorkOverHTTP2() throws {
    let server = try Server(loops: 2)
    defer { server.stop() }
    let connection = try GRPCConnection(port: server.port)
    let type = [("content-type", "application/x-www-form-urlencoded"), ("origin", "http://page.test")]
    let path = ChannelClient.root + "Listen/channel?VER=8&"
    let opened = try connection.call(
      path: path + "RID=1", body: Array("count=1&ofs=0&req0___data__=0".utf8), headers: type)
    #expect(
      opened.fields["x-client-wire-protocol"] == "h2"
        && opened.fields["access-control-allow-origin"] == "http://page.test")
    #expect(opened.fields["access-control-expose-headers"]?.contains("X-Client-Wire-Protocol") == true)
    #expect(server.table.count == 1)
  }

  @Test func messagesWaitWhileTheCallIsFull() throws {
    let server = try Server()
    defer { server.stop() }
    let client = ChannelClient(server.port)
    server.script.change { $0.hasRoom = false }
    try client.open("count=2&ofs=0&req0___data__=0&req1___data__=1")
    #expect(server.script.heard.isEmpty)
    try client.listen("AID=0&CI=0")
    _ = try client.next()
    server.script.change { state in
      state.hasRoom = true
      state.say.append("{}")
    }
    #expect(try client.next() == "[[2,[{}]]]")
    // The loop delivers the messages before it responds to this POST.
    _ = try client.send(acknowledging: 2)
    #expect(server.script.heard == ["0", "1"])
  }

  @Test func sessionWithoutABackChannelExpires() throws {
    let server = try Server()
    defer { server.stop() }
    let client = ChannelClient(server.port)
    try client.open()
    server.advance(milliseconds: ChannelSession.expiryMilliseconds - 1000)
    #expect(try client.send(acknowledging: 0) == "7\n[0,0,0]")
    server.advance(milliseconds: ChannelSession.expiryMilliseconds - 1000)
    #expect(server.table.count == 1)
    server.advance(milliseconds: 1000)
    #expect(server.table.count == 0 && server.script.ends == 1)
  }

  @Test func channelsPerAddressAreLimited() throws {
    var limits = ChannelTable.Limits()
    limits.addressChannelsMax = 2
    let server = try Server(limits: limits)
    defer { server.stop() }
    let clients = (0..<3).map { _ in ChannelClient(server.port) }
    #expect(try clients[0].open().status == 200 && clients[1].open().status == 200)
    let refused = try clients[2].open()
    #expect(refused.status == 503 && refused.header("access-control-allow-origin") != nil)
    _ = try clients[0].posts.send(
      "POST", "\(ChannelClient.root)Listen/channel?VER=8&SID=\(clients[0].id)&TYPE=terminate", body: [])
    #expect(try clients[2].open().status == 200)
  }

  @Test func channelsAboveTheMemoryLimitAreClosed() throws {
    var limits = ChannelTable.Limits()
    limits.heldBytesMax = 1 << 20
    let server = try Server(limits: limits)
    defer { server.stop() }
    let client = ChannelClient(server.port)
    try client.open()
    let form = "count=1&ofs=1&req0___data__=\(String(repeating: "x", count: 2 << 20))"
    // The first message is missing, so the server holds this one.
    #expect(try client.send(form, acknowledging: 0) == "7\n[0,0,0]")
    #expect(try client.send(acknowledging: 0).contains("Unknown SID"))
    #expect(server.table.count == 0 && server.script.ends == 1 && !server.table.budget.isExceeded)
  }

  @Test func stoppingTheServerSendsAStatus() throws {
    let server = try Server(loops: 2)
    let client = ChannelClient(server.port)
    try client.open()
    try client.listen("AID=0&CI=0")
    _ = try client.next()
    let isStopped = DispatchSemaphore(value: 0)
    DispatchQueue.global().async {
      server.stop(graceSeconds: 10)
      isStopped.signal()
    }
    #expect(try client.next().contains(#""status":"UNAVAILABLE""#))
    #expect(try client.back?.next() == nil)
    client.breakOff()
    isStopped.wait()
    #expect(server.script.ends == 1)
  }
}
