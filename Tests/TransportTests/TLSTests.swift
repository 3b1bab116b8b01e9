import Foundation
import Glibc
import Testing
import TestSupport

@testable import Transport

/// TLS with OpenSSL's own client and with curl. OpenSSL's program creates the certificates.
@Suite(.needs(.tool(.openssl)))
struct TLSTests {
  /// A certificate for 127.0.0.1 and its key.
  struct Pair {
    let directory: TemporaryDirectory
    var configuration: TLSConfiguration {
      TLSConfiguration(certificateFile: directory.path + "/cert.pem", keyFile: directory.path + "/key.pem")
    }

    init(name: String) throws {
      directory = try TemporaryDirectory()
      try make(name)
    }

    /// Replaces both files.
    func make(_ name: String) throws {
      let made = try Tool.openssl.run([
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
        "-subj", "/CN=\(name)", "-addext", "subjectAltName=IP:127.0.0.1",
        "-keyout", configuration.keyFile, "-out", configuration.certificateFile,
      ])
      try #require(made.status == 0, "\(made.errors)")
    }
  }

  private static func server(
    _ pair: Pair, configure: (inout TransportConfiguration) -> Void = { _ in },
    handle: @escaping @Sendable (borrowing HTTPRequest, Exchange) -> Void = TestServer.echo
  ) throws -> TestServer {
    try TestServer(
      configure: {
        $0.tls = pair.configuration
        configure(&$0)
      }, handle: handle)
  }

  /// Returns the report of `openssl s_client` about a connection.
  private static func inspect(_ server: TestServer, _ arguments: [String] = []) throws -> String {
    let outcome = try Tool.openssl.run(
      ["s_client", "-connect", "127.0.0.1:\(server.port)"] + arguments, input: "")
    return outcome.output + outcome.errors
  }

  @Test(
    .needs(.tool(.curl)),
    arguments: [
      ["--http1.1"], ["--http2"], ["--http2", "--tls-max", "1.2"], ["--no-alpn"], ["--http2-prior-knowledge"],
    ])
  func servesBothProtocols(arguments: [String]) throws {
    let pair = try Pair(name: "both")
    let body = String(repeating: "0123456789", count: 200_000)
    let server = try Self.server(
      pair,
      handle: { request, exchange in
        let count = request.body.count
        exchange.respond(status: 200, headers: { $0.add("x-count", "\(count)") }, compressible: false) { out in
          out.append(contentsOf: Array(body.utf8))
        }
      })
    let file = pair.directory.path + "/body"
    try Data(body.utf8).write(to: URL(fileURLWithPath: file))
    let outcome = try Tool.curl.run(
      [
        "-s", "-S", "-H", "Expect:", "--cacert", pair.configuration.certificateFile, "--data-binary", "@" + file, "-D",
        file + ".head",
        "https://127.0.0.1:\(server.port)/",
      ] + arguments)
    #expect(outcome.status == 0, "\(outcome.errors)")
    #expect(outcome.output == body)
    let head = try String(contentsOfFile: file + ".head", encoding: .utf8)
    let isHTTP2 = arguments[0].hasPrefix("--http2")
    #expect(head.hasPrefix(isHTTP2 ? "HTTP/2 200" : "HTTP/1.1 200"), "\(head)")
    #expect(head.contains("x-count: \(body.utf8.count)"))
  }

  @Test(arguments: [
    (["-tls1_1"], "protocol version"), (["-alpn", "spdy/1"], "no application protocol"),
    (["-tls1_2", "-cipher", "AES128-SHA"], "handshake failure"),
  ])
  func unsupportedProtocolsAreRefusedWithAReason(arguments: [String], reason: String) throws {
    let server = try Self.server(try Pair(name: "refusing"))
    let seen = try Self.inspect(server, arguments)
    #expect(seen.contains(reason), "\(seen)")
    #expect(server.wait { server.server.openConnections == 0 })
  }

  @Test(arguments: [
    (["-alpn", "h2,http/1.1"], "h2"), (["-alpn", "http/1.1,h2"], "h2"), (["-alpn", "http/1.1"], "http/1.1"),
  ])
  func negotiatesTheProtocol(arguments: [String], chosen: String) throws {
    let server = try Self.server(try Pair(name: "alpn"))
    #expect(try Self.inspect(server, arguments).contains("ALPN protocol: \(chosen)"))
  }

  @Test func refusesRenegotiation() throws {
    let server = try Self.server(try Pair(name: "renegotiation"))
    let outcome = try Tool.openssl.run(
      ["s_client", "-tls1_2", "-connect", "127.0.0.1:\(server.port)"], input: "R\n", keepsInputOpen: true)
    #expect((outcome.output + outcome.errors).contains("no renegotiation"))
  }

  @Test(arguments: [
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{0}\u{0}\u{0}\u{0}\u{0}\u{0}",
  ])
  func refusesPlainBytes(text: String) throws {
    let handled = Observed(0)
    let server = try Self.server(try Pair(name: "plain"), handle: { _, _ in handled.value += 1 })
    let client = try server.connect()
    client.send(text)
    // At most an alert, and an orderly end.
    #expect(client.readToEnd().count <= 7)
    client.endSending()
    #expect(server.wait { server.server.openConnections == 0 } && handled.value == 0)
  }

  @Test func handshakeMustBeCompleteInTime() throws {
    let server = try Self.server(try Pair(name: "slow"))
    let silent = try server.connect()
    let slow = try server.connect()
    // The start of a TLS record that announces a client hello of 512 bytes.
    slow.send([0x16, 0x03, 0x01, 0x02, 0x00, 0x01])
    server.advance(seconds: 14)
    #expect(server.server.openConnections == 2)
    server.advance(seconds: 2)
    #expect(silent.isEnded() && slow.isEnded())
  }

  @Test func oldHandshakesEndWhenOthersWait() throws {
    let server = try Self.server(try Pair(name: "crowd")) {
      $0.handshakesMax = 1
      $0.loops = 1
    }
    // A whole record with the start of a longer message.
    let record: [UInt8] = [0x16, 0x03, 0x01, 0x00, 0x04, 0x01, 0x00, 0x20, 0x00]
    let first = try server.connect()
    first.send(record)
    #expect(server.wait { server.server.openConnections == 1 })
    let second = try server.connect()
    second.send(record)
    #expect(server.wait { server.server.openConnections == 2 })
    // The first one keeps its place for a while, then has to leave it to the second.
    server.advance(seconds: 1)
    #expect(first.isEnded())
    #expect(server.server.openConnections == 1)
  }

  @Test func incompleteFirstMessagesTakeNoPlace() throws {
    let pair = try Pair(name: "incomplete")
    let server = try Self.server(pair) {
      $0.handshakesMax = 1
      $0.loops = 1
    }
    let slow = try (0..<20).map { _ in try server.connect() }
    for client in slow { client.send([0x16, 0x03, 0x01, 0x02, 0x00, 0x01]) }
    #expect(try Self.inspect(server).contains("CN = incomplete"))
    #expect(server.server.openConnections >= 20)
  }

  @Test func reloadedCertificateServesNewConnections() throws {
    let pair = try Pair(name: "first")
    let server = try Self.server(pair)
    #expect(try Self.inspect(server).contains("CN = first"))
    try pair.make("second")
    #expect(try Self.inspect(server).contains("CN = first"))
    try server.server.reloadCertificate()
    #expect(try Self.inspect(server).contains("CN = second"))
    try Data("no certificate".utf8).write(to: URL(fileURLWithPath: pair.configuration.certificateFile))
    let error = #expect(throws: TransportError.self) { try server.server.reloadCertificate() }
    #expect(error?.description.contains(pair.configuration.certificateFile) == true)
    #expect(try Self.inspect(server).contains("CN = second"))
  }

  @Test func refusesAMismatchedPair() throws {
    let first = try Pair(name: "one")
    let second = try Pair(name: "two")
    var configuration = TransportConfiguration()
    configuration.tls = TLSConfiguration(
      certificateFile: first.configuration.certificateFile, keyFile: second.configuration.keyFile)
    #expect(
      throws: TransportError.badCertificate(file: second.configuration.keyFile, reason: "key values mismatch")
    ) { try HTTPServer(configuration: configuration, handler: ClosureHandler(TestServer.echo)) }
    let missing = first.directory.path + "/none.pem"
    configuration.tls?.certificateFile = missing
    #expect(throws: TransportError.badCertificate(file: missing, reason: "No such file or directory")) {
      try HTTPServer(configuration: configuration, handler: ClosureHandler(TestServer.echo))
    }
  }
}
