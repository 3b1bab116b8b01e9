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
