import Foundation
import Testing

@testable import WebClient

/// Requests and responses without TLS, with a server that sends fixed texts.
@Suite struct HTTPClientTests {
  private static func client(
    _ server: ScriptedServer, configure: (inout HTTPClient.Options) -> Void = { _ in }
  ) -> HTTPClient {
    var options = HTTPClient.Options()
    options.stallMilliseconds = 20_000
    configure(&options)
    return HTTPClient(host: "127.0.0.1", port: server.port, options: options)
  }

  private static let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

  @Test(
    arguments: [
      ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", 200, "ab"),
      ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, ""),
      ("HTTP/1.1 204 No Content\r\n\r\n", 204, ""),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n", 200, "abc"),
      ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 1\r\n\r\nx", 201, "x"),
      ("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx", 200, "x"),
      ("HTTP/1.0 200 OK\r\n\r\nto the end", 200, "to the end"),
    ], [1, 7, 10_000])
  func parsesResponses(answer: (text: String, status: Int, body: String), pieceBytes: Int) throws {
    let server = try ScriptedServer(answer.text, pieceBytes: pieceBytes)
    let response = try Self.client(server).send("GET", "/")
    #expect(response.status == answer.status)
    #expect(String(decoding: response.body, as: UTF8.self) == answer.body)
  }

  @Test(
    arguments: [
      ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "early"),
      ("HTTP/1.1 200 OK\r\nContent-Le", "early"),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "early"),
      ("", "early"),
      ("SSH-2.0-OpenSSH\r\n", "malformed"),
      ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", "malformed"),
      ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "malformed"),
      ("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + String(repeating: "a", count: 1001), "large"),
    ], [1, 10_000])
  func rejectsIncompleteAndInvalidResponses(answer: (text: String, problem: String), pieceBytes: Int) throws {
    let server = try ScriptedServer(answer.text, pieceBytes: pieceBytes)
    let client = Self.client(server) { $0.bodyBytesMax = 1000 }
    let problems: [String: HTTPClientError] = [
      "early": .closedEarly(address: client.address), "malformed": .malformed(address: client.address),
      "large": .tooLarge(bytesMax: 1000),
    ]
    let problem = try #require(problems[answer.problem])
    #expect(throws: problem) { try client.send("GET", "/") }
  }

  @Test func responsesToHeadHaveNoBody() throws {
    let server = try ScriptedServer("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Self.ok)
    let client = Self.client(server)
    let response = try client.send("HEAD", "/")
    #expect(response.body.isEmpty && response.header("content-length") == "5")
    #expect(try client.send("GET", "/").body == Array("ok".utf8))
    #expect(server.connectionCount == 1)
  }

  @Test func fieldsHaveLowerCaseNamesAndIncludeTrailers() throws {
    let server = try ScriptedServer(
      "HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nX-Two: 1\r\nX-TWO:\t2 \r\nX-Empty:\r\n"
        + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Last: z\r\n\r\n")
    let response = try Self.client(server).send("GET", "/")
    #expect(
      response.headers.map { "\($0.name)=\($0.value)" } == [
        "x-two=1", "x-two=2", "x-empty=", "transfer-encoding=chunked", "x-last=z",
      ])
    #expect(response.header("x-two") == "1")
  }

  @Test func sendsExactlyTheGivenRequest() throws {
    let server = try ScriptedServer(Self.ok, Self.ok, Self.ok, Self.ok)
    let client = Self.client(server)
    _ = try client.send("GET", "/a/../b//c?x=%2f&y=[1]#z", headers: [("X-A", "1"), ("X-Empty", ""), ("X-A", "2")])
    _ = try client.send("POST", "/p")
    _ = try client.send("DELETE", "/d", headers: [("Accept", "a/b")])
    _ = try client.send("PATCH", "/q", headers: [("Content-Type", "a/b")], body: Array("body".utf8))
    let host = "Host: 127.0.0.1:\(server.port)\r\n"
    #expect(
      server.requests == [
        "GET /a/../b//c?x=%2f&y=[1]#z HTTP/1.1\r\n\(host)X-A: 1\r\nX-Empty:\r\nX-A: 2\r\n\r\n",
        "POST /p HTTP/1.1\r\n\(host)Content-Length: 0\r\n\r\n",
        "DELETE /d HTTP/1.1\r\n\(host)Accept: a/b\r\n\r\n",
        "PATCH /q HTTP/1.1\r\n\(host)Content-Type: a/b\r\nContent-Length: 4\r\n\r\nbody",
      ])
    #expect(server.connectionCount == 1)
  }

  @Test func environmentProxiesAndCredentialsAreNotUsed() throws {
    let server = try ScriptedServer(Self.ok)
    setenv("http_proxy", "http://127.0.0.1:1", 1)
    defer { unsetenv("http_proxy") }
    #expect(try Self.client(server).send("GET", "/").status == 200)
  }

  // MARK: Kept connections

  /// The server reads the second request and closes the connection without a response.
  @Test(arguments: [("GET", true, true), ("PATCH", true, true), ("POST", true, false), ("GET", false, false)])
  func aRequestIsRepeatedOnlyIfThatIsHarmless(method: String, mayRepeat: Bool, isRepeated: Bool) throws {
    let server = try ScriptedServer([.init(answers: [Self.ok, ""]), .init(answers: [Self.ok])])
    let client = Self.client(server) { $0.repeatsRequests = mayRepeat }
    _ = try client.send("GET", "/first")
    let body = method == "PATCH" ? Array("body".utf8) : nil
    if isRepeated {
      #expect(try client.send(method, "/second", body: body).status == 200)
      #expect(server.requests.count == 3 && server.requests[1] == server.requests[2])
    } else {
      #expect(throws: HTTPClientError.closedEarly(address: client.address)) {
        try client.send(method, "/second", body: body)
      }
      #expect(server.requests.count == 2 && server.connectionCount == 1)
    }
  }

  /// The server closes the connection after its first response.
  @Test func aClosedConnectionIsReplaced() throws {
    let server = try ScriptedServer([.init(answers: [Self.ok]), .init(answers: [Self.ok])])
    let client = Self.client(server) { $0.repeatsRequests = false }
    _ = try client.send("POST", "/first")
    // The response can arrive before the end of the connection.
    while true {
      do {
        #expect(try client.send("POST", "/second").status == 200)
        break
      } catch HTTPClientError.closedEarly where server.connectionCount == 1 { continue }
    }
    #expect(server.connectionCount == 2)
  }

  @Test func aRedirectIsAResponse() throws {
    let other = try ScriptedServer(Self.ok)
    let server = try ScriptedServer(
      "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:\(other.port)/\r\nContent-Length: 0\r\n\r\n")
    let response = try Self.client(server).send("GET", "/", headers: [("Authorization", "Bearer secret")])
    #expect(response.status == 302 && response.header("location") == "http://127.0.0.1:\(other.port)/")
    #expect(other.connectionCount == 0)
  }

  // MARK: Bodies in pieces

  @Test func anUploadNeedsMemoryForOnePiece() throws {
    let server = try ScriptedServer(Self.ok)
    let pieces = 64
    let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 20)
    var provided = 0
    let response = try Self.client(server).upload("PUT", "/", bodyBytes: pieces << 20) {
      provided += 1
      return piece
    }
    #expect(response.status == 200 && provided == pieces)
    let head = "PUT / HTTP/1.1\r\nHost: 127.0.0.1:\(server.port)\r\nContent-Length: \(pieces << 20)\r\n\r\n"
    #expect(server.requests.first?.utf8.count == head.utf8.count + pieces << 20)
  }

  @Test func anUploadStopsIfTheServerRejectsIt() throws {
    let server = try ScriptedServer([
      .init(
        answers: ["HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno"], staysOpen: true, readsBodies: false)
    ])
    let piece = [UInt8](repeating: 0, count: 1 << 20)
    var provided = 0
    let response = try Self.client(server).upload("PUT", "/", bodyBytes: 1 << 40) {
      provided += 1
      return piece
    }
    #expect(response.status == 413 && response.body == Array("no".utf8))
    #expect(provided < 1000)
  }

  @Test func anUploadFailsIfItsBodyEndsEarly() throws {
    let server = try ScriptedServer(Self.ok)
    let client = Self.client(server)
    var pieces: [[UInt8]] = [[1, 2], []]
    #expect(throws: HTTPClientError.failed(address: client.address, reason: "the body of the request ended early")) {
      try client.upload("PUT", "/", bodyBytes: 5) { pieces.removeFirst() }
    }
  }

  @Test func aResponseCanBeReadInPieces() throws {
    let chunk = "a\r\n0123456789\r\n"
    let server = try ScriptedServer([
      .init(
        answers: ["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk + "0\r\n\r\n", Self.ok],
        pieceBytes: 9)
    ])
    // The limit applies to each piece.
    let client = Self.client(server) { $0.bodyBytesMax = 20 }
    var body: [UInt8] = []
    let head = try client.open("GET", "/")
    #expect(head.status == 200 && head.body.isEmpty)
    while let piece = try client.read() { body += piece }
    #expect(String(decoding: body, as: UTF8.self) == "01234567890123456789")
    #expect(try client.read() == nil)
    #expect(try client.send("GET", "/").status == 200)
    #expect(server.connectionCount == 1)
  }

  @Test func anEndlessResponseCanBeLeft() throws {
    let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"
    let server = try ScriptedServer([.init(answers: [text], staysOpen: true), .init(answers: [Self.ok])])
    let client = Self.client(server)
    var pieces: [String] = []
    let response = try client.stream("GET", "/") { status, piece in
      pieces.append("\(status) \(String(decoding: piece, as: UTF8.self))")
      return false
    }
    #expect(response.status == 200 && pieces == ["200 a"])
    // The connection with the incomplete response is not used again.
    #expect(try client.send("GET", "/").status == 200)
    #expect(server.connectionCount == 2)
  }

  @Test func aFeedThatBreaksOffFails() throws {
    let server = try ScriptedServer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
    let client = Self.client(server)
    var body: [UInt8] = []
    #expect(throws: HTTPClientError.closedEarly(address: client.address)) {
      try client.stream("GET", "/") { _, piece in
        body += piece
        return true
      }
    }
    #expect(body == [UInt8(ascii: "a")])
  }

  // MARK: Time

  @Test(arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"])
  func aSilentServerTimesOut(answer: String) throws {
    let server = try ScriptedServer([.init(answers: [answer], staysOpen: true)])
    let client = Self.client(server) { $0.stallMilliseconds = 200 }
    let error = #expect(throws: HTTPClientError.self) { try client.send("GET", "/") }
    #expect(error == .timedOut(address: client.address, milliseconds: 200))
    #expect(error?.description == "\(client.address) sent no data for 0.2 seconds")
  }

  /// The total time ends before the time without a byte does.
  @Test(arguments: ["", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"])
  func aResponseThatTakesTooLongFails(answer: String) throws {
    let server = try ScriptedServer([.init(answers: [answer], staysOpen: true)])
    let client = Self.client(server) { $0.totalMilliseconds = 200 }
    let error = #expect(throws: HTTPClientError.self) { try client.send("GET", "/") }
    #expect(error == .tookTooLong(address: client.address, milliseconds: 200))
    #expect(error?.description == "the response from \(client.address) was not complete after 0.2 seconds")
  }

  @Test func aServerThatReadsNothingTimesOut() throws {
    let server = try ScriptedServer([.init(answers: [""], staysOpen: true, readsBodies: false)])
    let client = Self.client(server) { $0.stallMilliseconds = 200 }
    let piece = [UInt8](repeating: 0, count: 1 << 20)
    #expect(throws: HTTPClientError.timedOut(address: client.address, milliseconds: 200)) {
      try client.upload("PUT", "/", bodyBytes: 1 << 40) { piece }
    }
  }

  @Test func aHandshakeWithASilentServerTimesOut() throws {
    // The client sends no HTTP request before the handshake, so the server waits too.
    let server = try ScriptedServer([.init(answers: [""])])
    var options = HTTPClient.Options()
    options.connectMilliseconds = 200
    let client = HTTPClient(host: "127.0.0.1", port: server.port, isSecure: true, options: options)
    #expect(throws: HTTPClientError.notConnected(address: client.address, reason: "Connection timed out")) {
      try client.send("GET", "/")
    }
  }

  @Test func anotherThreadCanCancelARequest() throws {
    let server = try ScriptedServer([.init(answers: [""], staysOpen: true)])
    let client = Self.client(server)
    let cancellation = client.cancellation
    Thread {
      _ = server.waitForRequest()
      cancellation.cancel()
    }.start()
    #expect(throws: HTTPClientError.cancelled(address: client.address)) { try client.send("GET", "/") }
    #expect(throws: HTTPClientError.cancelled(address: client.address)) { try client.send("GET", "/") }
  }

  // MARK: Addresses

  @Test func aMissingServerIsReported() throws {
    let client = HTTPClient(host: "127.0.0.1", port: 1)
    let error = #expect(throws: HTTPClientError.self) { try client.send("GET", "/") }
    #expect(error?.description == "cannot connect to http://127.0.0.1:1: Connection refused")
    let nowhere = HTTPClient(host: "nowhere.invalid", port: 1)
    #expect(throws: HTTPClientError.hostNotFound(host: "nowhere.invalid")) { try nowhere.send("GET", "/") }
    #expect(HTTPClient(host: "::1", port: 443, isSecure: true).address == "https://[::1]:443")
  }
}
