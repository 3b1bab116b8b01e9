import Accounts
import DocumentModel
import HearthServer
import Testing
import TestSupport

/// Production mode: the credentials that the server accepts over REST and gRPC, and how they end (auth-api.md,
/// section 8).
@Suite struct AccountTokenTests {
  private static func server(_ mode: HearthConfiguration.Mode = .production) throws -> RulesServer {
    try RulesServer(
      mode,
      rules: """
        match /open/{id} { allow get; }
        match /users/{uid} { allow get: if request.auth.uid == uid; }
        match /roles/{role} { allow get: if request.auth.token.role == role; }
        """)
  }

  @Test func signedTokensReachTheRules() throws {
    let server = try Self.server()
    let token = try server.token("ann", [("role", .string("editor"))])
    for _ in 0..<2 {
      #expect(try server.get("/users/ann", token).status == 404)
      #expect(try server.get("/users/bob", token).status == 403)
      #expect(try server.get("/roles/editor", token).status == 404)
      #expect(try server.get("/roles/owner", token).status == 403)
    }
    #expect(try server.get("/users/ann", nil).status == 403)
    #expect(try server.get("/open/x", nil).status == 404)
    let grpc = try GRPCConnection(port: server.port)
    for (uid, status) in [("ann", 5), ("bob", 7)] {
      let name = "\(TestServer.name)/users/\(uid)"
      let message = [10, UInt8(name.utf8.count)] + Array(name.utf8)
      let answer = try grpc.call("GetDocument", message, headers: [("authorization", "Bearer \(token)")])
      #expect(answer.status == status, "\(answer.statusMessage)")
    }
  }

  @Test func badTokensAreRefusedEvenIfRulesAllowAll() throws {
    let server = try Self.server()
    let token = try server.token("ann")
    let other = try Self.server()
    let parts = token.split(separator: ".").map(String.init)
    let bad = [
      "owner", "ya29.x", "hat_x", "hat_a.1.b", "x", token + "A", String(token.dropLast()), "\(parts[0]).\(parts[1]).",
      UnsignedToken.make(#"{"sub":"ann"}"#), try other.token("ann"), "\(parts[1]).\(parts[0]).\(parts[2])",
    ]
    for text in bad {
      for _ in 0..<2 {
        let reply = try server.get("/open/x", text)
        #expect(reply.status == 401, "\(text.prefix(20)): \(reply.text)")
        #expect(reply.json("error", "status") == "UNAUTHENTICATED")
        #expect(reply.message.hasPrefix("Missing or invalid authentication: "))
        #expect(!reply.message.contains(parts[2]))
      }
    }
    #expect(try server.get("/open/x", token).status == 404)
  }

  @Test func cachedTokensEndWithTheirUsers() throws {
    let server = try Self.server()
    let states = server.accounts.userStates
    func set(_ state: UserState) throws { try states.set(state, of: "ann") }
    let token = try server.token("ann")
    #expect(try server.get("/users/ann", token).status == 404)
    try set(UserState(isDisabled: true))
    #expect(
      try server.get("/users/ann", token).message == "Missing or invalid authentication: the token's user is disabled.")
    try set(UserState())
    #expect(try server.get("/users/ann", token).status == 404)
    server.time.advance(seconds: 5)
    try set(UserState(validSinceSeconds: server.accounts.nowSeconds))
    #expect(try server.get("/users/ann", token).message == "Missing or invalid authentication: the token is revoked.")
    let fresh = try server.token("ann")
    #expect(try server.get("/users/ann", fresh).status == 404)
    server.time.advance(seconds: 3599)
    #expect(try server.get("/users/ann", fresh).status == 404)
    server.time.advance(seconds: 1)
    #expect(try server.get("/users/ann", fresh).message == "Missing or invalid authentication: the token is expired.")
  }

  @Test(arguments: [true, false]) func openStreamsEndWithTheirTokens(disables: Bool) throws {
    let server = try Self.server()
    let admin = [("Authorization", "Bearer \(server.accounts.serviceKeys.localAccessToken())")]
    func write() throws { #expect(try server.server.call("PATCH", "/users/ann", "{}", headers: admin).status == 200) }
    try write()
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Listen", headers: [("authorization", "Bearer \(try server.token("ann"))")])
    grpc.send(GRPCListenTests.documents(2, "users/ann"), on: stream)
    // The server reports that it added the target, then sends the document.
    for _ in 0..<2 { _ = try #require(try grpc.next(on: stream)) }
    // Changes of other users do not end the stream.
    try server.accounts.userStates.set(UserState(isDisabled: true), of: "bob")
    try write()
    for _ in 0..<2 { _ = try #require(try grpc.next(on: stream)) }
    if disables {
      try server.accounts.userStates.set(UserState(isDisabled: true), of: "ann")
    } else {
      try server.accounts.signingKeys.rotate(.idToken, immediately: true)
    }
    try write()
    let end = try grpc.end(of: stream)
    #expect(end.status == 16, "\(end.statusMessage)")
    #expect(end.statusMessage.contains("is no longer valid"), "\(end.statusMessage)")
  }

  @Test(arguments: [true, false]) func openStreamsOfAdministratorsEndWithTheirKeys(isSelfSigned: Bool) throws {
    let server = try Self.server()
    let keys = server.accounts.serviceKeys
    let program = try ServiceProgram(try #require(MapValue(json: try keys.create(name: "backend", url: "http://x"))))
    let audience = isSelfSigned ? "https://firestore.googleapis.com/" : "https://oauth2.googleapis.com/token"
    let signed = try program.sign([("aud", .string(audience))], at: server.accounts.nowSeconds)
    let token = isSelfSigned ? signed : try keys.accessToken(for: Array(signed.utf8), at: [])
    func write() throws {
      let admin = [("Authorization", "Bearer \(keys.localAccessToken())")]
      #expect(try server.server.call("PATCH", "/users/ann", "{}", headers: admin).status == 200)
    }
    try write()
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Listen", headers: [("authorization", "Bearer \(token)")])
    grpc.send(GRPCListenTests.documents(2, "users/ann"), on: stream)
    for _ in 0..<2 { _ = try #require(try grpc.next(on: stream)) }
    // Neither the token's expiry nor a change of another account ends the stream.
    server.time.advance(seconds: 7200)
    try server.accounts.userStates.set(UserState(isDisabled: true), of: "bob")
    try write()
    for _ in 0..<2 { _ = try #require(try grpc.next(on: stream)) }
    #expect(try keys.revoke("backend"))
    try write()
    let end = try grpc.end(of: stream)
    #expect(end.status == 16, "\(end.statusMessage)")
    #expect(end.statusMessage.contains("is no longer valid"), "\(end.statusMessage)")
  }

  @Test func cachedTokensEndWithTheirKeys() throws {
    let (server, cloud, other) = (try Self.server(), try Self.server(), try Self.server())
    let issuer = TrustedIssuer(issuer: "https://securetoken.google.com/elsewhere", audience: "elsewhere")
    func trust(_ keys: SigningKeys) throws {
      _ = try keys.current(.idToken)
      try server.accounts.trustedIssuers.trust(issuer, keys: keys.jsonWebKeySet(.idToken))
    }
    let claims = MapValue([
      ("iss", .string(issuer.issuer)), ("aud", .string(issuer.audience)), ("sub", .string("ann")),
      ("iat", .integer(server.accounts.nowSeconds)), ("exp", .integer(server.accounts.nowSeconds + 3600)),
    ])
    let key = try cloud.accounts.signingKeys.current(.idToken)
    let foreign = try JSONWebToken.signed(claims, by: key.key, id: key.id)
    try trust(cloud.accounts.signingKeys)
    let own = try server.token("ann")
    for token in [own, foreign] { #expect(try server.get("/users/ann", token).status == 404) }
    try trust(other.accounts.signingKeys)
    #expect(try server.get("/users/ann", foreign).status == 401)
    #expect(try server.get("/users/ann", own).status == 404)
    try server.accounts.signingKeys.rotate(.idToken, immediately: true)
    #expect(try server.get("/users/ann", own).status == 401)
    #expect(try server.get("/users/ann", try server.token("ann")).status == 404)
  }

  @Test func serviceKeysMakeAdmins() throws {
    let server = try Self.server()
    let file = try #require(MapValue(json: try server.accounts.serviceKeys.create(name: "backend", url: "http://x")))
    let program = try ServiceProgram(file)
    let now = server.accounts.nowSeconds
    let assertion = try program.sign([("aud", .string("https://oauth2.googleapis.com/token"))], at: now)
    func exchange(_ body: String) throws -> TestServer.Response {
      try server.server.request(
        "POST", "/token", body, headers: [("Content-Type", "application/x-www-form-urlencoded")])
    }
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"
    let reply = try exchange("assertion=\(assertion)&\(grant)")
    #expect(reply.status == 200, "\(reply.text)")
    #expect(reply.json("token_type") == "Bearer" && reply.json("expires_in", as: Int.self) == 3600)
    #expect(reply.header("cache-control") == "no-store")
    let access = try #require(reply.json("access_token") as String?)
    let signed = try program.sign([("aud", .string("https://firestore.googleapis.com/"))], at: now)
    for token in [access, signed] {
      for _ in 0..<2 { #expect(try server.get("/users/bob", token).status == 404) }
      #expect(
        try server.server.call(
          "PATCH", "/users/bob", #"{"fields":{}}"#, headers: [("Authorization", "Bearer \(token)")]
        ).status == 200)
      #expect(
        try server.server.call("DELETE", "/users/bob", headers: [("Authorization", "Bearer \(token)")]).status == 200)
    }
    for (body, error) in [
      ("", "unsupported_grant_type"), (grant, "invalid_grant"), ("\(grant)&assertion=x.y.z", "invalid_grant"),
      ("grant_type=refresh_token&assertion=\(assertion)", "unsupported_grant_type"),
      ("\(grant)&assertion=\(signed)", "invalid_grant"), ("%zz", "invalid_request"),
    ] {
      let reply = try exchange(body)
      #expect(reply.status == 400 && reply.json("error") == error, "\(body.prefix(40)): \(reply.text)")
    }
    let custom = try program.sign(
      [("aud", .string(AccountStore.customTokenAudience)), ("uid", .string("eve"))], at: now)
    #expect(try server.get("/open/x", custom).status == 401)
    #expect(try server.accounts.serviceKeys.revoke("backend"))
    for token in [access, signed] { #expect(try server.get("/users/bob", token).status == 401) }
    #expect(try exchange("assertion=\(assertion)&\(grant)").json("error") == "invalid_grant")
  }

  @Test func keysAreManagedByAdmins() throws {
    let server = try Self.server()
    let admin = [("Authorization", "Bearer \(server.accounts.serviceKeys.localAccessToken())")]
    let user = [("Authorization", "Bearer \(try server.token("ann"))")]
    func call(_ method: String, _ path: String, _ body: String? = nil, _ headers: [(String, String)]) throws
      -> TestServer.Response
    {
      try server.server.call(method, "/hearth/v1/\(path)", body, headers: headers)
    }
    for (method, path, body) in [
      ("GET", "keys", nil), ("POST", "keys", #"{"name":"eve"}"#), ("DELETE", "keys/backend", nil),
      ("POST", "keys:rotate", nil), ("POST", "tokens", #"{"uid":"eve"}"#),
    ] as [(String, String, String?)] {
      #expect(try call(method, path, body, []).status == 403)
      #expect(try call(method, path, body, user).status == 403)
    }
    #expect(try call("GET", "keys", nil, admin).json("keys", as: [Any].self)?.isEmpty == true)
    let made = try call("POST", "keys", #"{"name":"backend"}"#, admin)
    #expect(made.json("token_uri") == "http://localhost/token", "\(made.text)")
    #expect(try call("POST", "keys", #"{"name":"backend"}"#, admin).status == 400)
    #expect(try call("POST", "keys", "[]", admin).status == 400)
    #expect(try call("GET", "keys", nil, admin).json("keys", 0, "name") == "backend")
    #expect(try call("DELETE", "keys/backend", nil, admin).status == 200)
    #expect(try call("DELETE", "keys/backend", nil, admin).status == 404)
    #expect(
      server.lines.all.filter { $0.contains("service key") } == [
        "accounts: service key backend was created by admin from this machine",
        "accounts: service key backend was revoked by admin from this machine",
      ])
    #expect(try call("POST", "keys:rotate", nil, admin).json("keys", as: [Any].self)?.count == 2)
    let token = try #require(
      try call("POST", "tokens", #"{"uid":"ann","claims":{"role":"editor"}}"#, admin).json("idToken") as String?)
    #expect(try server.get("/roles/editor", token).status == 404)
    #expect(try call("POST", "tokens", #"{"claims":{}}"#, admin).status == 400)
  }

  @Test func keysArePublished() throws {
    let server = try Self.server()
    let names = [
      "/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com", "/identitytoolkit/v3/relyingparty/publicKeys",
    ]
    for path in names + names.map({ "/www.googleapis.com\($0)" }) {
      let reply = try server.server.request("GET", path)
      #expect(reply.status == 200 && reply.header("cache-control") == "public, max-age=3600")
      let keys = try #require(reply.json as? [String: String])
      #expect(
        keys.count == 1 && keys.values.allSatisfy { $0.hasPrefix("-----BEGIN CERTIFICATE-----") }, "\(reply.text)")
    }
    for path in ["/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com", "/v1/sessionCookiePublicKeys"] {
      for prefix in ["", "/www.googleapis.com", "/identitytoolkit.googleapis.com"] {
        #expect(try server.server.request("GET", prefix + path).json("keys", as: [Any].self)?.count == 1)
      }
      #expect(try server.server.request("POST", path, "{}").status == 405)
    }
    let discovery = try server.server.request("GET", "/securetoken.google.com/p/.well-known/openid-configuration")
    #expect(discovery.json("issuer") == "https://securetoken.google.com/p")
    let emulator = try Self.server(.emulator)
    #expect(try emulator.server.request("GET", "/v1/sessionCookiePublicKeys").text == #"{"keys":[]}"#)
  }

  @Test func emulatorsAcceptAccessTokens() throws {
    let server = try Self.server(.emulator)
    #expect(try server.get("/users/ann", server.accounts.serviceKeys.localAccessToken()).status == 404)
    #expect(try server.get("/users/ann", "hat_local.1.x").status == 401)
    #expect(try server.get("/users/ann", try server.token("ann")).status == 404)
  }
}

/// A program with a service-account file.
struct ServiceProgram {
  private let id: String
  private let email: String
  private let key: RSAKey

  init(_ file: MapValue) throws {
    id = try #require(file.text("private_key_id"))
    email = try #require(file.text("client_email"))
    key = try #require(file.text("private_key").flatMap { RSAKey(privatePEM: $0) })
  }

  func sign(_ claims: [(String, Value)], at now: Int64) throws -> String {
    var all = MapValue([
      ("iss", .string(email)), ("sub", .string(email)), ("iat", .integer(now)), ("exp", .integer(now + 3600)),
    ])
    for (name, value) in claims { all[name] = value }
    return try JSONWebToken.signed(all, by: key, id: id)
  }
}
