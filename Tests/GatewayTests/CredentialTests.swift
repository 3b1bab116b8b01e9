import Foundation
import HearthServer
import Testing
import TestSupport

/// The caller of a request: the `authorization` header in both modes (rules-language.md, section 16).
@Suite struct CredentialTests {
  private static func server(_ mode: HearthConfiguration.Mode, _ condition: String) throws -> (
    TestServer, TemporaryDirectory
  ) {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/firestore.rules"
    try """
    rules_version = '2';
    service cloud.firestore { match /{path=**} { allow get: if \(condition); } }
    """.write(toFile: file, atomically: true, encoding: .utf8)
    return (try TestServer(mode) { $0.rules = [HearthConfiguration.RulesFile(file)] }, directory)
  }

  @Test(
    arguments: [
      (nil, "request.auth == null", true),
      (#"{"sub":"ann"}"#, "request.auth.uid == 'ann' && request.auth.token.sub == 'ann'", true),
      (#"{"sub":"ann"}"#, "request.auth == null", false),
      (#"{"sub":7}"#, "request.auth != null && request.auth.uid == null", true),
      (#"{}"#, "request.auth != null && request.auth.uid == null", true),
      (
        #"{"n":3,"x":3.0,"f":2.5}"#,
        "request.auth.token.n is int && request.auth.token.x is int && request.auth.token.f is float", true
      ),
      (#"{"a":{"b":["c",true,null]}}"#, "request.auth.token.a.b == ['c', true, null]", true),
      (#"{"sub":"é😀"}"#, "request.auth.uid == 'é😀'", true),
    ] as [(String?, String, Bool)])
  func emulatorReadsUnsignedTokens(payload: String?, condition: String, isAllowed: Bool) throws {
    let (server, directory) = try Self.server(.emulator, condition)
    defer { withExtendedLifetime(directory) {} }
    let headers = payload.map { [("Authorization", "BEARER " + UnsignedToken.make($0))] } ?? []
    // The server has cached the token by the second request.
    for _ in 0..<2 {
      let reply = try server.call("GET", "/a/b", headers: headers)
      #expect(reply.status == (isAllowed ? 404 : 403), "\(reply.text)")
    }
  }

  @Test func cacheDistinguishesSimilarTokens() throws {
    let (server, directory) = try Self.server(.emulator, "request.auth.uid == path[3]")
    defer { withExtendedLifetime(directory) {} }
    for _ in 0..<2 {
      for number in 0..<300 {
        let token = UnsignedToken.make(#"{"sub":"user-\#(number)","filler":"\#(String(repeating: "x", count: 300))"}"#)
        let headers = [("authorization", "Bearer " + token)]
        try #require(try server.call("GET", "/user-\(number)/x", headers: headers).status == 404)
      }
    }
  }

  @Test(arguments: [
    ("Bearer owner", 404), ("bEaReR owner", 404), ("Bearer ya29.abc", 404), ("Bearer Owner", 400), ("Bearer x", 400),
    ("Bearer a.b", 400), ("Bearer e30.e30.e30.e30", 400), ("Bearer e30.!!.x", 400), ("Bearer e30.W10.x", 400),
    ("Bearer e30.bm8.x", 400), ("Bearer", 401), ("Basic YTpi", 401), ("owner", 401),
  ])
  func emulatorChecksTheFormOfCredentials(header: String, status: Int) throws {
    let (server, directory) = try Self.server(.emulator, "false")
    defer { withExtendedLifetime(directory) {} }
    let reply = try server.call("GET", "/a/b", headers: [("Authorization", header)])
    #expect(reply.status == status, "\(reply.text)")
    if status == 400 { #expect(reply.message == "invalid jwt") }
    let grpc = try GRPCConnection(port: server.port)
    let name = Message { out in
      out.append(contentsOf: [10, UInt8(TestServer.name.utf8.count + 4)] + Array("\(TestServer.name)/a/b".utf8))
    }.bytes
    let answer = try grpc.call("GetDocument", name, headers: [("authorization", header)])
    #expect(answer.status == [404: 5, 400: 3, 401: 16][status], "\(answer.statusMessage)")
  }

  @Test func productionRefusesUnsignedTokens() throws {
    let (server, directory) = try Self.server(.production, "path[3] == 'public' || request.auth != null")
    defer { withExtendedLifetime(directory) {} }
    #expect(try server.call("GET", "/public/x").status == 404)
    let denied = try server.call("GET", "/private/x")
    #expect(denied.status == 403)
    #expect(denied.message == "Missing or insufficient permissions.")
    for token in ["owner", "ya29.x", UnsignedToken.make(#"{"sub":"ann"}"#)] {
      let reply = try server.call("GET", "/public/x", headers: [("authorization", "Bearer " + token)])
      #expect(reply.status == 401, "\(reply.text)")
    }
    #expect(try server.call("POST", ":listCollectionIds", "{}").message == "Missing or insufficient permissions.")
    #expect(try server.call("PUT", "/emulator/v1/projects/p:securityRules", "{}").status == 403)
    #expect(try server.call("DELETE", "/emulator/v1/projects/p/databases/(default)/documents").status == 403)
    #expect(try server.call("GET", "/hearth/v1/stats").status == 403)
  }
}
