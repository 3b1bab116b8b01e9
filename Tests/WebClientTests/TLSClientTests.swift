import Testing
import TestSupport
import Transport
import WebClient

/// Requests over TLS to Hearth's own HTTP server, and certificates that must be rejected.
@Suite(.needs(.tool(.openssl))) struct TLSClientTests {
  /// Responds with the HTTP version and the body of the request.
  private final class Echo: RequestHandler {
    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      let version = "\(request.version) "
      let body = Array(request.body)
      exchange.respond(status: 200, headers: { $0.add("Content-Type", "text/plain") }) { out in
        out += Array(version.utf8) + body
      }
    }
  }

  private final class SecureServer {
    let server: HTTPServer
    let port: Int

    init(_ certificate: TestAuthority.Certificate?) throws {
      var configuration = TransportConfiguration()
      configuration.port = 0
      configuration.loops = 1
      configuration.tls = certificate.map { TLSConfiguration(certificateFile: $0.file, keyFile: $0.keyFile) }
      server = try HTTPServer(configuration: configuration, handler: Echo())
      port = try server.start().port
    }

    deinit { server.stop(graceSeconds: 0) }
  }

  private static let local = "DNS:localhost,IP:127.0.0.1"

  private static func client(
    _ server: SecureServer, host: String = "127.0.0.1", trusting file: String? = nil, usesHTTP2: Bool = false
  ) -> HTTPClient {
    var options = HTTPClient.Options()
    options.connectMilliseconds = 20_000
    options.authoritiesFile = file
    options.usesHTTP2 = usesHTTP2
    return HTTPClient(host: host, port: server.port, isSecure: true, options: options)
  }

  @Test(arguments: ["127.0.0.1", "localhost"], [false, true])
  func aTrustedServerIsUsed(host: String, usesHTTP2: Bool) throws {
    let authority = try TestAuthority()
    let server = try SecureServer(authority.issue(for: Self.local))
    let client = Self.client(server, host: host, trusting: authority.file, usesHTTP2: usesHTTP2)
    let body = [UInt8](repeating: UInt8(ascii: "x"), count: 300_000)
    for _ in 0..<3 {
      let response = try client.send("POST", "/", body: body)
      #expect(response.status == 200 && response.header("content-type") == "text/plain")
      #expect(response.body == Array((usesHTTP2 ? "http2 " : "http11 ").utf8) + body)
    }
    #expect(server.server.openConnections == 1)
  }

  @Test func anUnknownAuthorityIsRejected() throws {
    let authority = try TestAuthority()
    let server = try SecureServer(authority.issue(for: Self.local))
    let other = try TestAuthority()
    for file in [nil, other.file] {
      let client = Self.client(server, trusting: file)
      #expect(
        throws: HTTPClientError.certificateRejected(
          address: client.address, .notTrusted(reason: "unable to get local issuer certificate"))
      ) { try client.send("GET", "/") }
    }
    #expect(server.server.requestsServed == 0)
  }

  @Test(arguments: [
    (local, true, "its certificate has expired"), ("DNS:other.test", false, "its certificate is not for '127.0.0.1'"),
  ])
  func anUnsuitableCertificateIsRejected(names: String, isExpired: Bool, problem: String) throws {
    let authority = try TestAuthority()
    let server = try SecureServer(authority.issue(for: names, isExpired: isExpired))
    let client = Self.client(server, trusting: authority.file)
    let error = #expect(throws: HTTPClientError.self) { try client.send("GET", "/") }
    #expect(error?.description == "\(client.address) is not trusted: \(problem)")
    #expect(server.server.requestsServed == 0)
  }

  @Test func aPlainServerIsReported() throws {
    let server = try SecureServer(nil)
    let client = Self.client(server)
    #expect(throws: HTTPClientError.notTLS(address: client.address)) { try client.send("GET", "/") }
  }

  @Test func plainRequestsToATLSServerFail() throws {
    let server = try SecureServer(TestAuthority().issue(for: Self.local))
    let client = HTTPClient(host: "127.0.0.1", port: server.port)
    #expect(throws: HTTPClientError.self) { try client.send("GET", "/") }
    #expect(server.server.requestsServed == 0)
  }

  @Test func aFileWithoutCertificatesIsReported() throws {
    let server = try SecureServer(TestAuthority().issue(for: Self.local))
    for file in ["/nowhere/ca.pem", "/dev/null"] {
      #expect(throws: HTTPClientError.authoritiesUnusable(file: file)) {
        try Self.client(server, trusting: file).send("GET", "/")
      }
    }
  }
}
