import Testing
import TestSupport

@testable import Transport

/// Requests that a handler keeps for later.
@Suite struct HeldRequestTests {
  /// Keeps each request until the next turn of the loop, then has another handler handle it.
  private final class Keeper: RequestHandler {
    private let next = Echo()

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      guard let held = HeldRequest(request, exchange) else {
        return exchange.respond(status: 503, headers: { _ in }, body: { _ in })
      }
      exchange.loop.atNextTurn { [next] in
        held.handle(by: next)
        #expect(exchange.chosen === next || !exchange.isAwaitingResponse)
      }
    }
  }

  /// Responds with everything that it sees of a request.
  private final class Echo: RequestHandler {
    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      var text = Array("\(request.method) ".utf8) + Array(request.target)
      for index in 0..<request.headerCount {
        let (name, value) = request.header(at: index)
        text += Array(" ".utf8) + Array(name) + Array("=".utf8) + Array(value)
      }
      text += Array(" \(request.remoteAddress) ".utf8) + Array(request.body)
      exchange.respond(status: 200, headers: { _ in }, body: { $0 += text })
    }
  }

  @Test(arguments: [
    ("GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n", "get /a?b=c Host=x 127.0.0.1 "),
    (
      "POST /p HTTP/1.1\r\nHost: x\r\nA: b \r\nContent-Length: 4\r\n\r\nbody",
      "post /p Host=x A=b Content-Length=4 127.0.0.1 body"
    ),
  ]) func theCopyIsWhole(text: String, seen: String) throws {
    let server = try TestServer(handler: Keeper())
    let client = try server.connect()
    // The second request on the connection waits for the first.
    client.send(text + text)
    for _ in 0..<2 { #expect(try client.readReply().body == Array(seen.utf8)) }
  }

  @Test func aClientThatLeftIsForgotten() throws {
    let server = try TestServer(handler: Keeper())
    for _ in 0..<20 {
      let client = try server.connect()
      client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      client.reset()
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try client.readReply().status == 200)
  }
}
