import Accounts
import DocumentModel
import Testing
import TestSupport

/// Production mode: after the token of an open stream expires, the stream delivers no change and applies no write.
///
/// An idle stream may stay open for some seconds more. These tests commit a change in this time.
@Suite struct ExpiredTokenTests {
  private static func service() throws -> RulesServer {
    try RulesServer(
      rules: """
        match /users/{uid} { allow read, write: if request.auth.uid == uid; }
        match /notes/{id} { allow read: if request.auth != null; }
        """, users: ["ann"])
  }

  /// A listener that a test reads as text until it ends.
  private struct Listener {
    let name: String
    /// The next part of the stream, or `nil` at its end.
    let next: () throws -> String?

    /// Reads until a text arrives.
    func read(until text: String, count: Int = 1) throws {
      var found = 0
      while found < count {
        let part = try #require(try next(), "\(name) ended before \(text)")
        found += part.split(separator: text, omittingEmptySubsequences: false).count - 1
      }
    }

    /// Reads to the end.
    func rest() throws -> String {
      var rest = ""
      while let part = try next() { rest += part }
      return rest
    }
  }

  /// A listener of each protocol for one document, and for a query.
  private static func listeners(_ service: RulesServer, _ token: String) throws -> [Listener] {
    let port = service.port
    let authorization = [("authorization", "Bearer \(token)")]
    var listeners: [Listener] = []
    for target in [GRPCListenTests.documents(2, "users/ann"), GRPCListenTests.query(2, "notes")] {
      let grpc = try GRPCConnection(port: port)
      let stream = grpc.open("Listen", headers: authorization)
      grpc.send(target, on: stream)
      var isOver = false
      listeners.append(
        Listener(name: "gRPC") {
          if isOver { return nil }
          if let message = try grpc.next(on: stream) { return String(decoding: message, as: UTF8.self) }
          isOver = true
          let end = try grpc.end(of: stream)
          return "status \(end.status ?? -1) \(end.statusMessage)"
        })
    }
    for target in [
      #""documents":{"documents":["\#(TestServer.name)/users/ann"]}"#,
      #""query":{"parent":"\#(TestServer.name)","structuredQuery":{"from":[{"collectionId":"notes"}]}}"#,
    ] {
      let channel = ChannelClient(port)
      let add = #"{"database":"projects/p/databases/(default)","addTarget":{"targetId":2,\#(target)}}"#
      let opened = try channel.open(ChannelClient.form([add], from: 0, headers: "Authorization:Bearer \(token)\r\n"))
      try #require(opened.status == 200, "\(opened.text)")
      try channel.listen("AID=0&CI=0")
      listeners.append(Listener(name: "channel") { try channel.back?.next() })
    }
    for path in ["/users/ann:listen", "/notes:listen"] {
      for headers in [authorization, authorization + [("Accept", "text/event-stream")]] {
        let feed = try TestHTTPClient(port: port).opening("GET", TestServer.root + path, headers)
        listeners.append(Listener(name: "feed") { try feed.readPiece().map { String(decoding: $0, as: UTF8.self) } })
      }
    }
    return listeners
  }

  @Test func listenersDeliverNothingAfterExpiry() throws {
    let service = try Self.service()
    try service.set("users/ann", "first")
    try service.set("notes/a", "first")
    let listeners = try Self.listeners(service, try service.token("ann"))
    for listener in listeners { try listener.read(until: "first") }
    service.time.advance(seconds: RulesServer.tokenSeconds - 1)
    try service.set("users/ann", "in-time")
    try service.set("notes/a", "in-time")
    for listener in listeners { try listener.read(until: "in-time") }
    service.time.advance(seconds: 1)
    try service.set("users/ann", "too-late")
    try service.set("notes/a", "too-late")
    for listener in listeners {
      let rest = try listener.rest()
      #expect(!rest.contains("too-late"), "\(listener.name): \(rest)")
      #expect(rest.contains("UNAUTHENTICATED") || rest.contains("status 16"), "\(listener.name): \(rest)")
    }
  }

  /// A client without a back channel does not read. After the token has expired it gets what it could have read before,
  /// at most.
  @Test func channelDeliversNothingThatChangedAfterExpiry() throws {
    let service = try Self.service()
    try service.set("users/ann", "first")
    let channel = ChannelClient(service.port)
    let add =
      #"{"database":"projects/p/databases/(default)","addTarget":{"targetId":2,"#
      + #""documents":{"documents":["\#(TestServer.name)/users/ann"]}}}"#
    try channel.open(
      ChannelClient.form([add], from: 0, headers: "Authorization:Bearer \(try service.token("ann"))\r\n"))
    service.time.advance(seconds: RulesServer.tokenSeconds)
    try service.set("users/ann", "too-late")
    try channel.listen("AID=0&CI=0")
    var rest = ""
    while let part = try channel.back?.next() { rest += part }
    #expect(rest.contains("UNAUTHENTICATED") && !rest.contains("first") && !rest.contains("too-late"), "\(rest)")
  }

  @Test func writeStreamsApplyNothingAfterExpiry() throws {
    let service = try Self.service()
    let token = try service.token("ann")
    let grpc = try GRPCConnection(port: service.port)
    let stream = grpc.open("Write", headers: [("authorization", "Bearer \(token)")])
    grpc.send(GRPCStreamTests.request() + GRPCStreamTests.request([GRPCStreamTests.set("users/ann", 1)]), on: stream)
    for _ in 0..<2 { _ = try #require(try grpc.next(on: stream)) }
    let channel = ChannelClient(service.port, "Write")
    try channel.open(
      ChannelClient.form(
        [#"{"database":"projects/p/databases/(default)"}"#], from: 0, headers: "Authorization:Bearer \(token)\r\n"))
    try channel.listen("AID=0&CI=0")
    #expect(try channel.next().contains("streamToken"))
    try service.set("users/ann", "first")
    service.time.advance(seconds: RulesServer.tokenSeconds)
    // The time of the commit that rules compare with the token is later too.
    grpc.send(GRPCStreamTests.request([GRPCStreamTests.set("users/ann", 2)]), on: stream)
    #expect(try grpc.end(of: stream).status == 16)
    let write =
      #"{"streamToken":"MA==","writes":[{"update":{"name":"\#(TestServer.name)/users/ann","fields":{}}}]}"#
    _ = try channel.send(ChannelClient.form([write], from: 1), acknowledging: 1)
    var rest = ""
    while let part = try channel.back?.next() { rest += part }
    #expect(rest.contains("UNAUTHENTICATED"), "\(rest)")
    #expect(try service.text("users/ann") == "first")
  }

  /// A program's streams outlive its short access token (docs/security.md), but not its key.
  @Test func changeFeedOfAProgramContinuesUntilItsKeyIsRevoked() throws {
    let service = try Self.service()
    let keys = service.accounts.serviceKeys
    let program = try ServiceProgram(try #require(MapValue(json: try keys.create(name: "backend", url: "http://x"))))
    let signed = try program.sign(
      [("aud", .string("https://oauth2.googleapis.com/token"))], at: service.accounts.nowSeconds)
    let token = try keys.accessToken(for: Array(signed.utf8), at: [])
    let feed = try FeedConnection(
      port: service.port, "GET", TestServer.root + ":changes", headers: [("authorization", "Bearer \(token)")])
    try feed.read(until: "resumeToken")
    service.time.advance(seconds: RulesServer.tokenSeconds + 1)
    try service.set("notes/a", "still-there")
    try feed.read(until: "still-there")
    // A new request with this token is refused, and users cannot open this feed at all.
    func status(_ token: String) throws -> Int {
      try service.server.call("GET", ":changes", headers: [("Authorization", "Bearer \(token)")]).status
    }
    #expect(try status(token) == 401)
    #expect(try status(try service.token("ann")) == 403)
    #expect(try keys.revoke("backend"))
    try service.set("notes/a", "too-late")
    #expect(try !feed.readToEnd().contains("too-late"))
  }
}

extension RulesServer {
  /// Sets a field to a text, as an administrator.
  fileprivate func set(_ path: String, _ text: String) throws {
    try set(path, "n", #"{"stringValue": "\#(text)"}"#)
  }

  fileprivate func text(_ path: String) throws -> String? {
    try get("/" + path, admin).json("fields", "n", "stringValue")
  }
}

extension TestHTTPClient {
  /// Begins an endless response, whose status must be 200.
  fileprivate func opening(_ method: String, _ target: String, _ headers: [(String, String)]) throws -> TestHTTPClient {
    let reply = try open(method, target, headers: headers)
    try #require(reply.status == 200)
    return self
  }
}
