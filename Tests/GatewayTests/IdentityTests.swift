import Accounts
import Foundation
import HearthServer
import Synchronization
import Testing
import TestSupport
import WireFormat

/// The Identity Toolkit API over HTTP: requests and responses as clients see them.
@Suite struct IdentityTests {
  static let key = "?key=any"
  static let owner = [("Authorization", "Bearer owner")]

  /// A client of one server. Tests send values of one response in later requests.
  final class Session {
    let server: TestServer

    init(_ mode: HearthConfiguration.Mode = .emulator, change: (inout HearthConfiguration) -> Void = { _ in }) throws {
      server = try TestServer(mode, change: change)
    }

    func post(_ path: String, _ body: String = "{}", _ headers: [(String, String)] = []) throws -> TestServer.Response {
      try server.call("POST", path, body, headers: headers)
    }

    /// Sends a user's request, which must succeed.
    @discardableResult
    func user(_ call: String, _ body: String, _ status: Int = 200) throws -> [String: Any] {
      let reply = try post("/v1/accounts:\(call)\(IdentityTests.key)", body)
      #expect(reply.status == status, "\(call) \(body): \(reply.text)")
      return reply.json as? [String: Any] ?? [:]
    }

    /// Sends an administrator's request of emulator mode, which must succeed.
    @discardableResult
    func admin(_ call: String, _ body: String) throws -> [String: Any] {
      let reply = try post(
        "/identitytoolkit.googleapis.com/v1/projects/p/accounts\(call)", body, IdentityTests.owner)
      #expect(reply.status == 200, "\(call) \(body): \(reply.text)")
      return reply.json as? [String: Any] ?? [:]
    }

    /// The error code of a user's request, which must fail.
    func failure(_ call: String, _ body: String) throws -> String {
      let reply = try post("/v1/accounts:\(call)\(IdentityTests.key)", body)
      #expect(reply.status == 400, "\(call) \(body): \(reply.text)")
      let error = (reply.json as? [String: Any])?["error"] as? [String: Any]
      let message = error?["message"] as? String ?? ""
      #expect(error?["code"] as? Int == 400)
      #expect(((error?["errors"] as? [[String: Any]])?.first?["message"] as? String) == message)
      return message
    }
  }

  static func claims(_ token: Any?) throws -> [String: Any] {
    let parts = try #require(token as? String).split(separator: ".", omittingEmptySubsequences: false)
    let bytes = try #require(Base64.decode(String(parts[1])))
    return try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
  }

  @Test func guestBecomesMemberWithTheSameID() throws {
    let session = try Session()
    let guest = try session.user("signUp", #"{"returnSecureToken": true}"#)
    #expect(guest["kind"] as? String == "identitytoolkit#SignupNewUserResponse")
    #expect(guest["expiresIn"] as? String == "3600")
    let uid = try #require(guest["localId"] as? String)
    #expect(uid.count == 28)
    let token = try #require(guest["idToken"] as? String)
    #expect(try Self.claims(token)["provider_id"] as? String == "anonymous")
    let looked = try session.user("lookup", #"{"idToken": "\#(token)"}"#)
    #expect((looked["users"] as? [[String: Any]])?.first?["localId"] as? String == uid)
    // No field of a guest may make a client assume a password.
    #expect((looked["users"] as? [[String: Any]])?.first?["passwordHash"] == nil)
    let member = try session.user(
      "update",
      #"{"idToken": "\#(token)", "email": "Ann@Example.com", "password": "secret-1", "returnSecureToken": true}"#)
    #expect(member["localId"] as? String == uid)
    #expect(member["email"] as? String == "ann@example.com")
    let claims = try Self.claims(member["idToken"])
    #expect(claims["provider_id"] == nil)
    #expect((claims["firebase"] as? [String: Any])?["sign_in_provider"] as? String == "password")
    let elsewhere = try session.user("signInWithPassword", #"{"email": "ann@example.COM", "password": "secret-1"}"#)
    #expect(elsewhere["localId"] as? String == uid)
    #expect(elsewhere["registered"] as? Bool == true)
    #expect(elsewhere["displayName"] as? String == "")
    let own = try session.user("lookup", #"{"idToken": "\#(elsewhere["idToken"] as? String ?? "")"}"#)
    let record = try #require((own["users"] as? [[String: Any]])?.first)
    #expect(record["passwordHash"] as? String == "UkVEQUNURUQ=")
    #expect(record["salt"] == nil)
    #expect(((record["providerUserInfo"] as? [[String: Any]])?.first?["rawId"] as? String) == "ann@example.com")
  }

  @Test func errorsHaveTheDocumentedCodes() throws {
    let session = try Session()
    try session.user("signUp", #"{"email": "ann@example.com", "password": "secret-1"}"#)
    try session.admin("", #"{"localId": "off", "email": "off@example.com", "password": "secret-1", "disabled": true}"#)
    for (call, body, message) in [
      ("signUp", #"{"email": "ann@example.com", "password": "secret-1"}"#, "EMAIL_EXISTS"),
      ("signUp", #"{"email": "ANN@example.com", "password": "secret-1"}"#, "EMAIL_EXISTS"),
      (
        "signUp", #"{"email": "bob@example.com", "password": "12345"}"#,
        "WEAK_PASSWORD : Password should be at least 6 characters"
      ),
      ("signUp", #"{"email": "nobody", "password": "secret-1"}"#, "INVALID_EMAIL"),
      ("signUp", #"{"email": "bob@example.com"}"#, "MISSING_PASSWORD"),
      ("signUp", #"{"password": "secret-1"}"#, "MISSING_EMAIL"),
      ("signUp", #"{"localId": "mine"}"#, "UNEXPECTED_PARAMETER : User ID"),
      ("signUp", #"{"idToken": "x", "email": "a@b", "password": "secret-1"}"#, "INVALID_ID_TOKEN"),
      ("signInWithPassword", #"{"email": "ann@example.com", "password": "secret-2"}"#, "INVALID_PASSWORD"),
      ("signInWithPassword", #"{"email": "bob@example.com", "password": "secret-2"}"#, "EMAIL_NOT_FOUND"),
      ("signInWithPassword", #"{"email": "off@example.com", "password": "wrong"}"#, "USER_DISABLED"),
      ("signInWithPassword", #"{"email": "bob", "password": "secret-2"}"#, "INVALID_EMAIL"),
      ("signInWithPassword", #"{"email": null, "password": "secret-2"}"#, "MISSING_EMAIL"),
      ("signInWithPassword", #"{"email": "ann@example.com"}"#, "MISSING_PASSWORD"),
      (
        "signInWithPassword", #"{"email": "ann@example.com", "password": "x", "tenantId": "t"}"#,
        "UNSUPPORTED_TENANT_OPERATION"
      ),
      ("signInWithCustomToken", #"{}"#, "MISSING_CUSTOM_TOKEN"),
      ("signInWithIdp", #"{}"#, "MISSING_REQUEST_URI"),
      ("lookup", #"{}"#, "MISSING_ID_TOKEN"),
      ("lookup", #"{"localId": ["off"]}"#, "INSUFFICIENT_PERMISSION"),
      ("delete", #"{"localId": "off"}"#, "INSUFFICIENT_PERMISSION"),
      ("update", #"{}"#, "MISSING_ID_TOKEN"),
      ("resetPassword", #"{}"#, "MISSING_OOB_CODE"),
      ("resetPassword", #"{"oobCode": "x"}"#, "INVALID_OOB_CODE"),
      ("sendOobCode", #"{}"#, "MISSING_REQ_TYPE"),
      ("sendOobCode", #"{"requestType": "X"}"#, "INVALID_REQ_TYPE"),
      ("sendOobCode", #"{"requestType": "PASSWORD_RESET", "email": "bob@example.com"}"#, "EMAIL_NOT_FOUND"),
      (
        "sendOobCode", #"{"requestType": 1, "email": "ann@example.com", "continueUrl": "javascript:x"}"#,
        "INVALID_CONTINUE_URI"
      ),
      ("createAuthUri", #"{}"#, "MISSING_IDENTIFIER"),
      ("createAuthUri", #"{"identifier": "a@b"}"#, "MISSING_CONTINUE_URI"),
    ] {
      #expect(try session.failure(call, body) == message, "\(call) \(body)")
    }
  }

  @Test func requestsAreChecked() throws {
    let session = try Session()
    let noKey = try session.post("/v1/accounts:signUp")
    #expect(noKey.status == 403)
    #expect(noKey.message == "The request is missing a valid API key.")
    #expect(try session.post("/v1/accounts:signUp?key=").status == 403)
    #expect(try session.post("/v1/accounts:signUp", "{}", [("X-Goog-Api-Key", "k")]).status == 200)
    let noBearer = try session.post("/v1/projects/p/accounts:lookup?key=k", #"{"localId": ["a"]}"#)
    #expect(noBearer.status == 401)
    #expect(noBearer.text.contains("Login Required."))
    #expect(try session.post("/v1/projects/p/accounts:lookup", "{}", [("Authorization", "Bearer junk")]).status == 401)
    #expect(try session.post("/v1/accounts:signUp?key=k", "{}", [("Authorization", "Basic YTpi")]).status == 200)
    let target = try session.post("/v1/accounts:sendOobCode?key=k", #"{"targetProjectId": "p"}"#)
    #expect(target.message == "INSUFFICIENT_PERMISSION : Only authenticated requests can specify target_project_id.")
    let malformed = try session.post("/v1/accounts:signUp?key=k", "{")
    #expect(malformed.status == 400)
    #expect(malformed.text.contains("parseError"))
    #expect(try session.post("/v1/accounts:signUp?key=k", "[]").status == 400)
    #expect(try session.post("/v1/accounts:unheardOf?key=k").status == 501)
    #expect(try session.server.call("GET", "/v1/accounts:signUp?key=k").status == 404)
    let large = String(repeating: "x", count: 300_000)
    #expect(try session.post("/v1/accounts:signUp?key=k", #"{"displayName": "\#(large)"}"#).status == 413)
    let preflight = try session.server.call(
      "OPTIONS", "/identitytoolkit.googleapis.com/v1/accounts:signUp?key=k",
      headers: [
        ("Origin", "http://app.example"), ("Access-Control-Request-Headers", "content-type,x-client-version"),
        ("Access-Control-Request-Private-Network", "true"),
      ])
    #expect(preflight.header("access-control-allow-origin") == "http://app.example")
    #expect(preflight.header("access-control-allow-headers") == "content-type,x-client-version")
    #expect(preflight.header("access-control-allow-private-network") == "true")
    let answer = try session.post("/v1/accounts:signUp?key=k", "{}", [("Origin", "http://app.example")])
    #expect(answer.header("access-control-allow-origin") == "http://app.example")
    #expect(answer.header("cache-control") == "no-store")
    // The Firestore API handles the other paths below /v1/.
    #expect(try session.server.call("GET", "/v1/projects/p/databases/(default)/documents/a/b").status == 404)
  }

  @Test func refreshAcceptsFormsAndJSON() throws {
    let session = try Session()
    let guest = try session.user("signUp", "{}")
    let token = try #require(guest["refreshToken"] as? String)
    for (path, body, type) in [
      ("/v1/token", "grant_type=refresh_token&refresh_token=\(token)", "application/x-www-form-urlencoded"),
      (
        "/securetoken.googleapis.com/v1/token", #"{"grantType": "refresh_token", "refreshToken": "\#(token)"}"#,
        "application/json"
      ),
      (
        "/securetoken.googleapis.com/v1/token", #"{"grant_type": "refresh_token", "refresh_token": "\#(token)"}"#,
        "application/x-www-form-urlencoded"
      ),
    ] {
      let reply = try session.post(path + Self.key, body, [("Content-Type", type)])
      let answer = try #require(reply.json as? [String: Any])
      #expect(reply.status == 200, "\(reply.text)")
      #expect(answer["id_token"] as? String == answer["access_token"] as? String)
      #expect(answer["user_id"] as? String == guest["localId"] as? String)
      #expect(answer["expires_in"] as? String == "3600")
      #expect(answer["token_type"] as? String == "Bearer")
      #expect(answer["idToken"] == nil)
    }
    for (body, message) in [
      ("{}", "MISSING_GRANT_TYPE"), (#"{"grantType": "x"}"#, "INVALID_GRANT_TYPE"),
      (#"{"grantType": "refresh_token"}"#, "MISSING_REFRESH_TOKEN"),
      (#"{"grantType": "refresh_token", "refreshToken": "x"}"#, "INVALID_REFRESH_TOKEN"),
    ] { #expect(try session.post("/v1/token" + Self.key, body).message == message) }
    #expect(try session.post("/v1/token", #"{"grantType": "refresh_token"}"#).status == 403)
  }

  @Test func endedSessionsReportTheReason() throws {
    let session = try Session()
    let user = try session.user("signUp", #"{"email": "ann@example.com", "password": "secret-1"}"#)
    let uid = try #require(user["localId"] as? String)
    let idToken = try #require(user["idToken"] as? String)
    let refresh = #"{"grantType": "refresh_token", "refreshToken": "\#(user["refreshToken"] as? String ?? "")"}"#
    // A time in the future, as if the session were revoked a second after the token was issued.
    let later = Int(Date().timeIntervalSince1970) + 5
    try session.admin(":update", #"{"localId": "\#(uid)", "validSince": \#(later)}"#)
    #expect(try session.failure("lookup", #"{"idToken": "\#(idToken)"}"#) == "TOKEN_EXPIRED")
    #expect(try session.post("/v1/token" + Self.key, refresh).message == "TOKEN_EXPIRED")
    try session.admin(":update", #"{"localId": "\#(uid)", "validSince": "1", "disableUser": true}"#)
    #expect(try session.failure("lookup", #"{"idToken": "\#(idToken)"}"#) == "USER_DISABLED")
    #expect(try session.post("/v1/token" + Self.key, refresh).message == "USER_DISABLED")
    try session.admin(":delete", #"{"localId": "\#(uid)"}"#)
    #expect(try session.failure("lookup", #"{"idToken": "\#(idToken)"}"#) == "USER_NOT_FOUND")
    #expect(try session.post("/v1/token" + Self.key, refresh).message == "USER_NOT_FOUND")
  }

  @Test func customTokensCarryClaims() throws {
    let session = try Session()
    let audience = "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"
    let token = UnsignedToken.make(#"{"aud": "\#(audience)", "uid": "someone", "claims": {"team": "red"}}"#)
    let first = try session.user("signInWithCustomToken", #"{"token": "\#(token)"}"#)
    #expect(first["isNewUser"] as? Bool == true)
    #expect(first["localId"] == nil)
    try session.admin(
      ":update", #"{"localId": "someone", "customAttributes": "{\"admin\": true, \"team\": \"blue\"}"}"#)
    let second = try session.user("signInWithCustomToken", #"{"token": "\#(token)"}"#)
    #expect(second["isNewUser"] as? Bool == false)
    let claims = try Self.claims(second["idToken"])
    #expect(claims["admin"] as? Bool == true)
    #expect(claims["team"] as? String == "red")
    #expect(claims["sub"] as? String == "someone")
    // A refreshed token repeats the claims of the session.
    let refreshed = try session.post(
      "/v1/token" + Self.key,
      #"{"grantType": "refresh_token", "refreshToken": "\#(second["refreshToken"] as? String ?? "")"}"#)
    #expect(try Self.claims((refreshed.json as? [String: Any])?["id_token"])["team"] as? String == "red")
    let other = UnsignedToken.make(#"{"aud": "x", "uid": "someone"}"#)
    #expect(try session.failure("signInWithCustomToken", #"{"token": "\#(other)"}"#) == "CREDENTIAL_MISMATCH")
    #expect(try session.failure("signInWithCustomToken", #"{"token": "x"}"#).hasPrefix("INVALID_CUSTOM_TOKEN : "))
    let bad = try session.post(
      "/v1/projects/p/accounts:update", #"{"localId": "someone", "customAttributes": "{\"iss\": 1}"}"#, Self.owner)
    #expect(bad.message == "FORBIDDEN_CLAIM : iss")
    #expect(
      try session.failure("update", #"{"idToken": "\#(second["idToken"] as? String ?? "")", "customAttributes": "{}"}"#)
        == "INSUFFICIENT_PERMISSION")
    let cookie = try session.post(
      "/v1/projects/p:createSessionCookie",
      #"{"idToken": "\#(second["idToken"] as? String ?? "")", "validDuration": 600}"#, Self.owner)
    let cookieClaims = try Self.claims((cookie.json as? [String: Any])?["sessionCookie"])
    #expect(cookieClaims["iss"] as? String == "https://session.firebase.google.com/p")
    let short = try session.post(
      "/v1/projects/p:createSessionCookie",
      #"{"idToken": "\#(second["idToken"] as? String ?? "")", "validDuration": "1"}"#, Self.owner)
    #expect(short.message == "INVALID_DURATION")
  }

  @Test func mailedCodesWork() throws {
    let session = try Session()
    let user = try session.user("signUp", #"{"email": "ann@example.com", "password": "secret-1"}"#)
    let idToken = try #require(user["idToken"] as? String)
    func code(_ type: String) throws -> String {
      let reply = try session.server.call("GET", "/emulator/v1/projects/p/oobCodes")
      let codes = try #require((reply.json as? [String: Any])?["oobCodes"] as? [[String: Any]])
      return try #require(codes.last { $0["requestType"] as? String == type }?["oobCode"] as? String)
    }
    try session.user("sendOobCode", #"{"requestType": "VERIFY_EMAIL", "idToken": "\#(idToken)"}"#)
    let verified = try session.user("update", #"{"oobCode": "\#(try code("VERIFY_EMAIL"))"}"#)
    #expect(verified["emailVerified"] as? Bool == true)
    try session.user("sendOobCode", #"{"requestType": "PASSWORD_RESET", "email": "ann@example.com"}"#)
    let reset = try code("PASSWORD_RESET")
    #expect(
      try session.user("resetPassword", #"{"oobCode": "\#(reset)"}"#)["requestType"] as? String == "PASSWORD_RESET")
    #expect(
      try session.failure("resetPassword", #"{"oobCode": "\#(reset)", "newPassword": "123"}"#).hasPrefix(
        "WEAK_PASSWORD"))
    try session.user("resetPassword", #"{"oobCode": "\#(reset)", "newPassword": "secret-2"}"#)
    #expect(
      try session.failure("resetPassword", #"{"oobCode": "\#(reset)", "newPassword": "secret-3"}"#)
        == "INVALID_OOB_CODE")
    #expect(
      try session.failure("signInWithPassword", #"{"email": "ann@example.com", "password": "secret-1"}"#)
        == "INVALID_PASSWORD")
    try session.user("signInWithPassword", #"{"email": "ann@example.com", "password": "secret-2"}"#)
    // An administrator gets the link instead of a mail, with the parameters that clients read.
    let link = try session.admin(
      ":sendOobCode",
      #"{"requestType": "EMAIL_SIGNIN", "email": "new@example.com", "returnOobLink": true, "continueUrl": "https://app.example/?x=1&y"}"#
    )
    let url = try #require(URLComponents(string: link["oobLink"] as? String ?? ""))
    let items = Dictionary(uniqueKeysWithValues: (url.queryItems ?? []).map { ($0.name, $0.value) })
    #expect(items["mode"] == "signIn")
    #expect(items["continueUrl"] == "https://app.example/?x=1&y")
    let signIn = try #require(items["oobCode"] ?? nil)
    #expect(signIn == link["oobCode"] as? String)
    let action = try session.server.call("GET", "/emulator/action?" + (url.percentEncodedQuery ?? ""))
    #expect(action.status == 303)
    #expect(action.header("location")?.hasPrefix("https://app.example/?x=1&y&mode=signIn") == true)
    #expect(
      try session.failure("signInWithEmailLink", #"{"email": "other@example.com", "oobCode": "\#(signIn)"}"#).hasPrefix(
        "INVALID_EMAIL"))
    let byLink = try session.user("signInWithEmailLink", #"{"email": "new@example.com", "oobCode": "\#(signIn)"}"#)
    #expect(byLink["isNewUser"] as? Bool == true)
    #expect(try Self.claims(byLink["idToken"])["email_verified"] as? Bool == true)
    #expect(
      try session.failure("sendOobCode", #"{"requestType": "PASSWORD_RESET", "email": "a@b", "returnOobLink": true}"#)
        == "INSUFFICIENT_PERMISSION")
  }

  @Test func otherProvidersSignUsersIn() throws {
    let session = try Session()
    func body(_ claims: String, _ more: String = "") -> String {
      let token = claims.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      return #"{"requestUri": "http://localhost", "postBody": "id_token=\#(token)&providerId=google.com"\#(more)}"#
    }
    let first = try session.user(
      "signInWithIdp", body(#"{"sub": "g1", "email": "Ann@example.com", "email_verified": true, "name": "Ann"}"#))
    #expect(first["isNewUser"] as? Bool == true)
    #expect(first["federatedId"] as? String == "https://accounts.google.com/g1")
    let uid = first["localId"] as? String
    let second = try session.user("signInWithIdp", body(#"{"sub": "g1"}"#))
    #expect(second["localId"] as? String == uid)
    #expect(second["isNewUser"] as? Bool == false)
    let claims = try Self.claims(second["idToken"])
    #expect(
      ((claims["firebase"] as? [String: Any])?["identities"] as? [String: Any])?["google.com"] as? [String] == ["g1"])
    // An unverified address of another account does not open that account. A verified one does.
    try session.user("signUp", #"{"email": "bob@example.com", "password": "secret-1"}"#)
    let unverified = try session.user("signInWithIdp", body(#"{"sub": "g2", "email": "bob@example.com"}"#))
    #expect(unverified["needConfirmation"] as? Bool == true)
    #expect(unverified["idToken"] == nil)
    try session.user("signInWithIdp", body(#"{"sub": "g2", "email": "bob@example.com", "email_verified": true}"#))
    // Bob never verified his address, so the password that was set with it is removed.
    #expect(
      try session.failure("signInWithPassword", #"{"email": "bob@example.com", "password": "secret-1"}"#)
        == "INVALID_PASSWORD")
    // Linking keeps the ID. An identity that is linked to another account is rejected.
    let guest = try session.user("signUp", "{}")
    let token = guest["idToken"] as? String ?? ""
    #expect(
      try session.failure("signInWithIdp", body(#"{"sub": "g1"}"#, #", "idToken": "\#(token)""#))
        == "FEDERATED_USER_ID_ALREADY_LINKED")
    let linked = try session.user("signInWithIdp", body(#"{"sub": "g3"}"#, #", "idToken": "\#(token)""#))
    #expect(linked["localId"] as? String == guest["localId"] as? String)
    let unlinked = try session.user(
      "update", #"{"idToken": "\#(linked["idToken"] as? String ?? "")", "deleteProvider": ["google.com"]}"#)
    #expect(unlinked["providerUserInfo"] == nil)
  }

  @Test func emulatorSignsInWithPhoneNumbers() throws {
    let session = try Session()
    let sent = try session.user("sendVerificationCode", #"{"phoneNumber": "+1 650-555-3434"}"#)
    let list = try session.server.call("GET", "/emulator/v1/projects/p/verificationCodes")
    let entry = try #require(((list.json as? [String: Any])?["verificationCodes"] as? [[String: Any]])?.last)
    #expect(entry["phoneNumber"] as? String == "+16505553434")
    let info = sent["sessionInfo"] as? String ?? ""
    #expect(
      try session.failure("signInWithPhoneNumber", #"{"sessionInfo": "\#(info)", "code": "x"}"#) == "INVALID_CODE")
    let user = try session.user(
      "signInWithPhoneNumber", #"{"sessionInfo": "\#(info)", "code": "\#(entry["code"] as? String ?? "")"}"#)
    #expect(user["phoneNumber"] as? String == "+16505553434")
    #expect(try Self.claims(user["idToken"])["phone_number"] as? String == "+16505553434")
  }

  @Test func administratorsReadAndWriteManyUsersAtOnce() throws {
    let session = try Session()
    let users = (0..<5).map {
      #"{"localId": "u\#($0)", "email": "u\#($0)@example.com", "rawPassword": "secret-\#($0)"}"#
    }
    let created = try session.admin(":batchCreate", #"{"users": [\#(users.joined(separator: ","))]}"#)
    #expect(created["error"] == nil)
    var found: [String] = []
    var token = ""
    repeat {
      let reply = try session.server.call(
        "GET", "/v1/projects/p/accounts:batchGet?maxResults=2&nextPageToken=\(token)", headers: Self.owner)
      let page = try #require(reply.json as? [String: Any])
      found += (page["users"] as? [[String: Any]] ?? []).compactMap { $0["localId"] as? String }
      token = page["nextPageToken"] as? String ?? ""
    } while !token.isEmpty
    #expect(found == ["u0", "u1", "u2", "u3", "u4"])
    // After an export is imported again without parameters, the same password signs in.
    let exported = try session.server.call(
      "GET", "/v1/projects/p/accounts:batchGet?maxResults=1000", headers: Self.owner
    ).text
    #expect(try session.server.call("DELETE", "/emulator/v1/projects/p/accounts").status == 200)
    #expect(try session.admin(":lookup", #"{"localId": ["u1"]}"#)["users"] == nil)
    let again = try session.post("/v1/projects/p/accounts:batchCreate", exported, Self.owner)
    #expect(again.status == 200, "\(again.text)")
    try session.user("signInWithPassword", #"{"email": "u3@example.com", "password": "secret-3"}"#)
    let looked = try session.admin(
      ":lookup", #"{"localId": ["u1", "x"], "email": ["U1@example.com", "u2@example.com"]}"#)
    #expect((looked["users"] as? [Any])?.count == 2)
    let query = try session.admin(":query", #"{"expression": [{"email": "u2@example.com"}]}"#)
    #expect(query["recordsCount"] as? String == "1")
    let sorted = try session.admin(":query", #"{"sortBy": "USER_EMAIL", "order": "DESC", "limit": 2, "offset": 1}"#)
    #expect((sorted["userInfo"] as? [[String: Any]])?.compactMap { $0["localId"] as? String } == ["u3", "u2"])
    let deleted = try session.admin(":batchDelete", #"{"localIds": ["u0", "nobody", "u1"]}"#)
    #expect((deleted["errors"] as? [[String: Any]])?.compactMap { $0["index"] as? Int } == [0, 2])
    #expect(try session.admin(":batchDelete", #"{"localIds": ["u0", "nobody", "u1"], "force": true}"#).isEmpty)
    let bad = try session.admin(
      ":batchCreate",
      #"{"users": [{"localId": "ok"}, {"email": "x"}, {"localId": "h", "passwordHash": "AAAA"}, {"localId": "dup", "email": "u2@example.com"}]}"#
    )
    #expect(
      (bad["error"] as? [[String: Any]])?.compactMap { $0["message"] as? String } == [
        "MISSING_LOCAL_ID", "MISSING_HASH_ALGORITHM", "EMAIL_EXISTS",
      ])
    try session.admin(
      ":batchCreate",
      #"{"users": [{"localId": "fake", "email": "f@b.c", "passwordHash": "fakeHash:salt=S:password=secret-9"}]}"#)
    try session.user("signInWithPassword", #"{"email": "f@b.c", "password": "secret-9"}"#)
  }

  /// The records that firebase-admin's integration tests for Node expect.
  @Test func administratorsReadWhatTheyWrote() throws {
    let session = try Session()
    try session.admin("", #"{"localId": "ann", "email": "ann@example.com", "password": "secret-1"}"#)
    func record(_ uid: String) throws -> [String: Any] {
      let users = try session.admin(":lookup", #"{"localId": ["\#(uid)"]}"#)["users"] as? [[String: Any]]
      return try #require(users?.first)
    }
    #expect(try record("ann")["customAttributes"] == nil)
    try session.admin(":update", #"{"localId": "ann", "customAttributes": "{}"}"#)
    #expect(try record("ann")["customAttributes"] as? String == "{}")
    let list = try session.server.call("GET", "/v1/projects/p/accounts:batchGet?maxResults=9", headers: Self.owner)
    let salt: String = try #require(list.json("users", 0, "salt"), "\(list.text)")
    #expect(Base64.decode(salt)?.count == 16)
    try session.admin(
      ":batchCreate",
      #"""
      {"users": [{"localId": "bob", "email": "bob@example.com", "phoneNumber": "+15554446666", "providerUserInfo": [
        {"providerId": "facebook.com", "rawId": "bob-facebook", "email": "bob@example.com"},
        {"providerId": "twitter.com", "rawId": "bob-twitter"}]}]}
      """#)
    let providers = try record("bob")["providerUserInfo"] as? [[String: Any]]
    #expect(providers?.compactMap { $0["providerId"] as? String } == ["facebook.com", "twitter.com", "phone"])
    #expect(providers?.last?["rawId"] as? String == "+15554446666")
  }

  @Test func oldMethodNamesWork() throws {
    let session = try Session()
    let base = "/www.googleapis.com/identitytoolkit/v3/relyingparty/"
    let user = try session.post(
      base + "signupNewUser?key=k", #"{"email": "ann@example.com", "password": "secret-1", "returnSecureToken": true}"#)
    #expect(user.status == 200, "\(user.text)")
    #expect(
      try session.post(base + "verifyPassword?key=k", #"{"email": "ann@example.com", "password": "secret-1"}"#).status
        == 200)
    let token = (user.json as? [String: Any])?["idToken"] as? String ?? ""
    #expect(try session.post(base + "getAccountInfo?key=k", #"{"idToken": "\#(token)"}"#).status == 200)
    #expect(try session.post(base + "downloadAccount?key=k", "{}").status == 401)
    // Some clients send nulls and other spellings.
    let update = try session.post(
      "/identitytoolkit.googleapis.com/v1/accounts:update?key=k",
      #"{"idToken": "\#(token)", "displayName": "Ann", "photoURL": "http://x/y.png", "deleteAttribute": null, "return_secure_token": true}"#
    )
    #expect((update.json as? [String: Any])?["photoUrl"] as? String == "http://x/y.png", "\(update.text)")
    #expect(try session.post(base + "deleteAccount?key=k", #"{"idToken": "\#(token)"}"#).status == 200)
  }

  @Test func productionRevealsNoSecrets() throws {
    let lines = Lines()
    let session = try Session(.production) { configuration in
      configuration.report = { lines.add($0) }
      configuration.accounts.allowsAnonymous = false
    }
    #expect(try session.failure("signUp", "{}") == "ADMIN_ONLY_OPERATION")
    try session.user("signUp", #"{"email": "ann@example.com", "password": "secret-1"}"#)
    for body in [
      #"{"email": "ann@example.com", "password": "wrong-1"}"#, #"{"email": "bob@example.com", "password": "wrong-1"}"#,
    ] {
      #expect(try session.failure("signInWithPassword", body) == "INVALID_LOGIN_CREDENTIALS")
    }
    // Responses do not reveal whether an account exists. Unsigned tokens and the emulator's administrator are
    // rejected.
    try session.user("sendOobCode", #"{"requestType": "PASSWORD_RESET", "email": "bob@example.com"}"#)
    let methods = try session.user("createAuthUri", #"{"identifier": "ann@example.com", "continueUri": "http://x"}"#)
    #expect(methods["registered"] == nil)
    #expect(try session.post("/v1/projects/p/accounts:lookup", #"{"localId": ["a"]}"#, Self.owner).status == 401)
    let unsigned = UnsignedToken.make(
      #"{"sub": "x", "user_id": "x", "aud": "p", "iss": "https://securetoken.google.com/p"}"#)
    #expect(try session.failure("lookup", #"{"idToken": "\#(unsigned)"}"#) == "INVALID_ID_TOKEN")
    #expect(
      try session.failure("signInWithCustomToken", #"{"token": "\#(unsigned)"}"#).hasPrefix("INVALID_CUSTOM_TOKEN"))
    for (method, path) in [
      ("GET", "oobCodes"), ("DELETE", "accounts"), ("GET", "config"), ("GET", "verificationCodes"),
    ] {
      #expect(try session.server.call(method, "/emulator/v1/projects/p/\(path)").status == 403)
    }
    #expect(
      try session.failure(
        "signInWithIdp", #"{"requestUri": "http://x", "postBody": "id_token=\#(unsigned)&providerId=google.com"}"#
      ).hasPrefix("OPERATION_NOT_ALLOWED"))
    for _ in 0..<9 {
      _ = try session.failure("signInWithPassword", #"{"email": "ann@example.com", "password": "wrong-1"}"#)
    }
    #expect(
      try session.failure("signInWithPassword", #"{"email": "ann@example.com", "password": "secret-1"}"#).hasPrefix(
        "TOO_MANY_ATTEMPTS_TRY_LATER : "))
    #expect(lines.all.contains { $0.contains("created with a password by user from this machine") })
    #expect(
      !lines.all.contains {
        $0.contains("secret-1") || $0.contains("$argon2id$") || $0.contains("ey") && $0.contains(".ey")
      })
  }

  @Test func unknownUserAndWrongPasswordTakeEquallyLong() throws {
    // The minimum of several attempts excludes delays of the machine and the network. A busy machine needs more
    // attempts, and a server limits attempts, so each round starts a new server.
    var least = [Double.infinity, .infinity]
    var isAlike: Bool { (0.5...2).contains(least[0] / least[1]) }
    for _ in 0..<10 where !isAlike {
      let session = try Session(.production)
      try session.user("signUp", #"{"email": "ann@example.com", "password": "secret-1"}"#)
      for _ in 0..<6 {
        for (index, name) in ["ann", "nobody"].enumerated() {
          let start = ContinuousClock.now
          _ = try session.failure("signInWithPassword", #"{"email": "\#(name)@example.com", "password": "wrong-1"}"#)
          let (seconds, attoseconds) = (ContinuousClock.now - start).components
          least[index] = min(least[index], Double(seconds) + Double(attoseconds) * 1e-18)
        }
      }
    }
    #expect(isAlike, "\(least)")
  }

  @Test func rulesSeeTheCaller() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/firestore.rules"
    try """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{d}/documents {
        match /own/{uid} { allow read, write: if request.auth.uid == uid; }
        match /staff/{id} { allow read, write: if request.auth.token.admin == true; }
      }
    }
    """.write(toFile: file, atomically: true, encoding: .utf8)
    for mode in [HearthConfiguration.Mode.emulator, .production] {
      let session = try Session(mode) { $0.rules = [HearthConfiguration.RulesFile(file)] }
      let user = try session.user("signUp", "{}")
      let uid = user["localId"] as? String ?? ""
      func status(_ path: String, _ token: Any?) throws -> Int {
        try session.server.call(
          "PATCH", "/v1/\(TestServer.name)\(path)", #"{"fields": {}}"#,
          headers: [("Authorization", "Bearer \(token as? String ?? "")")]
        ).status
      }
      #expect(try status("/own/\(uid)", user["idToken"]) == 200)
      #expect(try status("/own/other", user["idToken"]) == 403)
      let member = try session.user(
        "signUp",
        #"{"idToken": "\#(user["idToken"] as? String ?? "")", "email": "ann@example.com", "password": "secret-1"}"#)
      #expect(member["localId"] as? String == uid)
      let elsewhere = try session.user("signInWithPassword", #"{"email": "ann@example.com", "password": "secret-1"}"#)
      #expect(try status("/own/\(uid)", elsewhere["idToken"]) == 200)
      guard mode == .emulator else { continue }
      #expect(try status("/staff/x", elsewhere["idToken"]) == 403)
      try session.admin(":update", #"{"localId": "\#(uid)", "customAttributes": "{\"admin\": true}"}"#)
      let admin = try session.user("signInWithPassword", #"{"email": "ann@example.com", "password": "secret-1"}"#)
      #expect(try status("/staff/x", admin["idToken"]) == 200)
    }
    withExtendedLifetime(directory) {}
  }
}

/// The lines that a server logs.
private final class Lines: Sendable {
  private let lines = Mutex<[String]>([])
  var all: [String] { lines.withLock { $0 } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
