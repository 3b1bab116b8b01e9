import Testing
import TestSupport

@testable import Transport

/// Every kind of exchange gives the same through a relay as from the server itself.
@Suite struct RelayTableTests {
  struct Row: Sendable, CustomStringConvertible {
    var method = "GET"
    var path: String
    var fields: [(String, String)] = []
    var body: [UInt8] = []
    var description: String { "\(method) \(path) \(fields.map(\.0)) \(body.count)" }
  }

  static let rows: [Row] = [
    Row(path: "/seen?a=b%20c"), Row(path: "/text"), Row(path: "/plain"), Row(path: "/none"),
    Row(path: "/unchanged"), Row(path: "/empty"), Row(path: "/missing"), Row(path: "/slices"), Row(path: "/sized"),
    Row(method: "POST", path: "/forbidden", body: [1, 2, 3]), Row(path: "/hidden"),
    Row(method: "HEAD", path: "/text"), Row(method: "HEAD", path: "/sized"), Row(method: "HEAD", path: "/missing"),
    Row(method: "POST", path: "/seen", body: Array("hello".utf8)), Row(method: "POST", path: "/seen"),
    Row(method: "PATCH", path: "/seen", body: [UInt8](repeating: 65, count: 100_000)),
    Row(method: "PUT", path: "/count", body: [UInt8](repeating: 66, count: 700_000)),
    Row(method: "DELETE", path: "/seen"), Row(method: "OPTIONS", path: "/seen", fields: [("origin", "http://a")]),
    Row(path: "/text", fields: [("accept-encoding", "gzip")]),
    Row(path: "/plain", fields: [("accept-encoding", "gzip")]),
    Row(path: "/seen", fields: [("hearth-envelope", "1 2 ap 9.9.9.9 -"), ("hearth-host", "evil")]),
    Row(path: "/seen", fields: [("x-forwarded-for", "203.0.113.9"), ("cookie", "a=b"), ("x-a", "1"), ("x-a", "2")]),
    Row(method: "POST", path: "/seen", fields: [("content-encoding", "gzip")], body: gzip),
    Row(method: "POST", path: "/seen", fields: [("content-encoding", "gzip")], body: [1, 2, 3]),
  ]

  /// The text `zipped` in gzip.
  static let gzip: [UInt8] = GzipCompressor().compress([UInt8](repeating: 0x7a, count: 4000)) ?? []

  @Test(arguments: rows)
  func isTheSameOverHTTP1(row: Row) throws {
    let pair = try RelayPair(handler: RelayHandler())
    let direct = try Self.first(row, pair.direct)
    let relayed = try Self.first(row, pair.front)
    #expect(relayed.status == direct.status)
    // A comparison within the macro would print megabytes.
    let isSame = relayed.body == direct.body
    #expect(isSame, "\(relayed.text.prefix(2000)) instead of \(direct.text.prefix(2000))")
    #expect(Self.compared(relayed.fields) == Self.compared(direct.fields))
  }

  private static func first(_ row: Row, _ server: TestServer) throws -> RawClient.Reply {
    let client = try server.connect()
    var head = "\(row.method) \(row.path) HTTP/1.1\r\nHost: test.example\r\n"
    for (name, value) in row.fields { head += "\(name): \(value)\r\n" }
    if !row.body.isEmpty { head += "Content-Length: \(row.body.count)\r\n" }
    client.send(Array("\(head)\r\n".utf8) + row.body)
    return try client.readReply(to: row.method)
  }

  static let streamed: [Row] = [
    Row(path: "/trailers"), Row(path: "/trailers-only"),
    Row(
      method: "POST", path: "/echo-stream", fields: [("te", "trailers"), ("content-type", "application/grpc")],
      body: [UInt8](repeating: 7, count: 100_000)),
  ]

  @Test(arguments: rows + streamed)
  func isTheSameOverHTTP2(row: Row) throws {
    let pair = try RelayPair(handler: RelayHandler())
    let direct = try Self.second(row, pair.direct)
    let relayed = try Self.second(row, pair.front)
    #expect(relayed.status == direct.status)
    // A comparison within the macro would print megabytes.
    let isSame = relayed.body == direct.body
    #expect(isSame, "\(relayed.text.prefix(2000)) instead of \(direct.text.prefix(2000))")
    #expect(Self.compared(relayed.fields) == Self.compared(direct.fields))
    #expect(Self.compared(relayed.trailers) == Self.compared(direct.trailers))
    #expect(relayed.resetCode == direct.resetCode)
  }

  private static func second(_ row: Row, _ server: TestServer) throws -> HTTP2Client.Reply {
    let client = try HTTP2Client(server)
    if row.body.count <= 16_000 {
      // In one piece, so that no server responds before it has the end of the request.
      let head = HTTP2Client.head(row.method, row.path) + row.fields
      let body: [HTTP2Frame] = row.body.isEmpty ? [] : [.data(1, row.body, end: true)]
      client.send([.headers(1, head, end: row.body.isEmpty)] + body)
    } else {
      client.request(1, row.method, row.path, row.fields, end: false)
      // The window of the server counts once its settings are acknowledged.
      try client.settle()
      try client.upload(row.body, on: 1)
    }
    try client.reply(1)
    // A reset may follow the end of a response.
    try client.settle()
    return try #require(client.replies[1])
  }

  @Test func stopsABodyThatIsNotWanted() throws {
    let pair = try RelayPair(handler: RelayHandler())
    for server in [pair.direct, pair.front] {
      let client = try HTTP2Client(server)
      client.request(1, "POST", "/forbidden", end: false)
      let reply = try client.reply(1)
      #expect(reply.status == 403)
      #expect(reply.text == "no")
      try client.settle()
      // The code of a server that needs no more of the request (RFC 9113, section 8.1).
      #expect(client.replies[1]?.resetCode == 0)
    }
  }

  /// Fields in the order of their names, without those that may differ: the time, and the framing of HTTP/1.
  private static func compared(_ fields: [(name: String, value: String)]) -> [String] {
    fields.filter { !["date", "connection"].contains($0.name) }
      .map { "\($0.name): \($0.value.drop { $0 == " " })" }.sorted()
  }
}
