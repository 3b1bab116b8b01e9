import CUV
import Glibc
import Testing
import TestSupport

@testable import Transport

/// Requests over a Unix socket beside the port.
@Suite struct AdminSocketTests {
  /// Says over which way the request came, and the client's address.
  @Sendable private static func tell(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let text = "\(request.isFromAdminSocket ? "admin" : "network") \(request.remoteAddress)"
    exchange.respond(status: 200, headers: { $0.add("Content-Type", "text/plain") }) { $0 += Array(text.utf8) }
  }

  private static func listen(_ path: String) throws -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    try #require(path.utf8.count < MemoryLayout.size(ofValue: address.sun_path))
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    try #require(status == 0 && Glibc.listen(descriptor, 16) == 0)
    return descriptor
  }

  private func server(
    _ path: String, configure: (inout TransportConfiguration) -> Void = { _ in }
  ) throws -> (HTTPServer, port: Int) {
    var configuration = TransportConfiguration()
    (configuration.port, configuration.loops) = (0, 2)
    configure(&configuration)
    let server = try HTTPServer(configuration: configuration, handler: ClosureHandler(Self.tell))
    return (server, try server.start(adminSocket: try Self.listen(path)).port)
  }

  @Test func onlyTheSocketMakesRequestsAdministrative() throws {
    let directory = try TemporaryDirectory()
    let (server, port) = try server(directory.file("s"))
    defer { server.stop(graceSeconds: 0) }
    let forged = [("Isfromadminsocket", "1"), ("Host", "localhost"), ("Forwarded", "for=unix"), ("X-Real-IP", "unix")]
    let network = TestHTTPClient(port: UInt16(port))
    let admin = TestHTTPClient(unixSocket: directory.file("s"))
    for _ in 0..<3 {
      #expect(try network.send("GET", "/", headers: forged).text == "network 127.0.0.1")
      #expect(try admin.send("GET", "/").text == "admin 127.0.0.1")
    }
    #expect(try admin.send("POST", "/", body: [UInt8](repeating: 1, count: 1 << 20)).status == 200)
    #expect(server.openConnections == 2)
  }

  @Test func aFullServerStillServesAdministrators() throws {
    let directory = try TemporaryDirectory()
    let (server, port) = try server(directory.file("s")) { $0.connectionsMax = 2 }
    defer { server.stop(graceSeconds: 0) }
    let clients = (0..<2).map { _ in TestHTTPClient(port: UInt16(port)) }
    for client in clients { #expect(try client.send("GET", "/").status == 200) }
    #expect(try TestHTTPClient(port: UInt16(port)).send("GET", "/").status == 503)
    let admins = (0..<AdminPeer.extraConnectionsMax).map { _ in TestHTTPClient(unixSocket: directory.file("s")) }
    for admin in admins { #expect(try admin.send("GET", "/").text == "admin 127.0.0.1") }
  }

  @Test func theSocketClosesWithTheServer() throws {
    let directory = try TemporaryDirectory()
    let (server, _) = try server(directory.file("s"))
    server.stop(graceSeconds: 0)
    #expect(throws: TestHTTPClientError.notConnected) {
      try TestHTTPClient(unixSocket: directory.file("s")).send("GET", "/")
    }
  }
}
