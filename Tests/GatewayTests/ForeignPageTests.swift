import Glibc
import HearthServer
import TestSupport
import Testing

/// A web page that a developer visits cannot act as the owner of an emulator on the developer's machine.
@Suite struct ForeignPageTests {
  private static let owner = ("Authorization", "Bearer owner")

  @Test(
    arguments: [
      (nil, 200), ("http://localhost:3000", 200), ("http://app.localhost", 200), ("http://127.0.0.1:5000", 200),
      ("http://[::1]:5000", 200), ("https://evil.example", 403), ("http://localhost.evil.example", 403),
      ("http://127.evil.example", 403), ("null", 403), ("http://192.0.2.7:3000", 403), ("file://", 403), ("", 403),
    ] as [(String?, Int)])
  func theOwnersTokenWorksOnPagesOfThisMachine(origin: String?, status: Int) throws {
    let server = try TestServer()
    let headers = [Self.owner] + (origin.map { [("Origin", $0)] } ?? [])
    let commit = try server.call("POST", ":commit", "{}", headers: headers)
    #expect(commit.status == status, "\(commit.text)")
    for path in [
      "/emulator/v1/projects/p/databases/(default)/documents", "/emulator/v1/projects/p/accounts",
      "/hearth/v1/projects/p/databases/(default)/documents/c",
    ] {
      let response = try server.request("DELETE", path, headers: origin.map { [("Origin", $0)] } ?? [])
      #expect(response.status == status, "\(path): \(response.text)")
    }
  }

  // A browser sends no `Origin` with a GET of a page on its own host, so a rebound name arrives in `Host` only.
  @Test(
    arguments: [
      ("localhost:8080", true), ("LocalHost", true), ("app.localhost:8080", true), ("127.0.0.1:8080", true),
      ("[::1]:8080", true), ("192.0.2.7", true), ("hearth:8080", true), ("hearth.:8080", true),
      ("host.docker.internal:8080", true), ("hearth.default.svc.cluster.local", true), ("db.test", true),
      ("evil.example:8080", false), ("127.evil.example", false), ("localhost.evil.example", false),
      ("evil.example.", false), ("evillocal.example", false), ("xn--internal.example", false),
    ] as [(String, Bool)])
  func aReboundNameCannotActAsOwner(host: String, isTrusted: Bool) throws {
    let server = try TestServer()
    for (method, path) in [
      ("GET", "\(TestServer.root)/c/x"), ("POST", "\(TestServer.root):listCollectionIds"),
      ("GET", "/emulator/v1/projects/p/oobCodes"), ("DELETE", "/emulator/v1/projects/p/accounts"),
    ] {
      let response = try Self.send(method, path, "Authorization: Bearer owner", host: host, to: server)
      #expect((response.status != 403) == isTrusted, "\(host) \(path)")
    }
    // Without the rights of an administrator, every name works.
    let token = UnsignedToken.make(#"{"sub": "ann"}"#)
    let user = try Self.send("GET", "\(TestServer.root)/c/x", "Authorization: Bearer \(token)", host: host, to: server)
    #expect(user.status == 404)
  }

  @Test func theNameOnWhichTheServerListensIsTrusted() throws {
    // The server takes the socket, so the name need not be resolved.
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
    let isBound = withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    try #require(isBound && listen(socket, 16) == 0)
    let server = try TestServer { configuration in
      configuration.host = "dev.example"
      configuration.listeningSocket = socket
    }
    for (host, status) in [("Dev.Example:8080", 404), ("dev.example", 404), ("dev.example.org", 403), ("example", 404)]
    {
      let response = try Self.send(
        "GET", "\(TestServer.root)/c/x", "Authorization: Bearer owner", host: host, to: server)
      #expect(response.status == status, "\(host)")
    }
  }

  private static func send(
    _ method: String, _ path: String, _ field: String, host: String, to server: TestServer
  ) throws -> StreamedResponse {
    let head =
      "\(method) \(path) HTTP/1.1\r\nHost: \(host)\r\n\(field)\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    let response = try StreamedResponse(port: server.port, request: Array(head.utf8), hasBody: true)
    try response.readToEnd()
    return response
  }

  // A browser sends no `Origin` with pictures, scripts and frames of another page.
  @Test(
    arguments: [
      ("localhost:8080", "cross-site", "empty", false), ("localhost:8080", "cross-site", "image", false),
      ("localhost:8080", "cross-site", "iframe", false), ("localhost:8080", "cross-site", "document", true),
      ("localhost:8080", "same-site", "image", true), ("127.0.0.1:8080", "same-site", "empty", true),
      ("localhost:8080", "same-origin", "empty", true), ("localhost:8080", "none", "document", true),
      ("db.test:8080", "same-site", "image", false), ("db.test:8080", "same-origin", "empty", true),
    ] as [(String, String, String, Bool)])
  func theBrowserSaysForWhichPageARequestIs(host: String, site: String, use: String, isTrusted: Bool) throws {
    let server = try TestServer()
    let fields = "Sec-Fetch-Site: \(site)\r\nSec-Fetch-Dest: \(use)"
    for path in ["\(TestServer.root)/c/x", "/emulator/v1/projects/p/oobCodes", "/metrics"] {
      let response = try Self.send("GET", path, "Authorization: Bearer owner\r\n\(fields)", host: host, to: server)
      #expect((response.status != 403) == isTrusted, "\(path): \(response.status)")
    }
    // A person who follows a link sends no write.
    let write = try Self.send("DELETE", "/emulator/v1/projects/p/accounts", fields, host: host, to: server)
    #expect((write.status != 403) == (isTrusted && site != "cross-site"))
  }

  @Test func metricsAreNotForPagesOfOtherSites() throws {
    let server = try TestServer()
    for (host, field, status) in [
      ("localhost:8080", "Accept: */*", 200), ("evil.example:8080", "Accept: */*", 403),
      ("localhost:8080", "Origin: https://evil.example", 403), ("localhost:8080", "Origin: http://localhost:3000", 200),
    ] {
      #expect(try Self.send("GET", "/metrics", field, host: host, to: server).status == status, "\(host) \(field)")
      #expect(try Self.send("GET", "/readyz", field, host: host, to: server).status == 200)
    }
  }

  @Test func usersOfOtherPagesAreServed() throws {
    let server = try TestServer()
    let token = UnsignedToken.make(#"{"sub": "ann"}"#)
    for headers in [[], [("Authorization", "Bearer \(token)")]] {
      let response = try server.call("GET", "/c/x", headers: headers + [("Origin", "https://app.example")])
      #expect(response.status == 404)
      #expect(response.header("access-control-allow-origin") == "https://app.example")
    }
  }

  @Test func aPageOnTheServersNumericAddressIsNotForeign() throws {
    let server = try TestServer()
    // The request goes to loopback; only the header fields differ.
    for (host, origin, status) in [
      ("192.0.2.7:8080", "http://192.0.2.7:3000", 200), ("192.0.2.7", "http://192.0.2.7:3000", 200),
      ("192.0.2.70:8080", "http://192.0.2.7:3000", 403), ("evil.example:8080", "http://evil.example:8080", 403),
    ] {
      let head =
        "POST \(TestServer.root):commit HTTP/1.1\r\nHost: \(host)\r\nOrigin: \(origin)\r\n"
        + "Authorization: Bearer owner\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
      let response = try StreamedResponse(port: server.port, request: Array(head.utf8), hasBody: true)
      try response.readToEnd()
      #expect(response.status == status, "\(host) \(origin)")
    }
  }
}
