import HearthServer
import Testing

/// The URLs of the Identity Toolkit API: every spelling, other methods, and calls that the server does not support.
@Suite struct IdentityRouteTests {
  struct Row: CustomTestStringConvertible {
    var method: String
    var path: String
    /// The statuses for a client with an API key, and for the administrator of an emulator.
    var user: Int
    var admin: Int

    init(_ method: String, _ path: String, _ user: Int, _ admin: Int? = nil) {
      (self.method, self.path, self.user, self.admin) = (method, path, user, admin ?? user)
    }

    var testDescription: String { "\(method) \(path)" }
  }

  static let hosted = ["", "/identitytoolkit.googleapis.com"]
  static let version3 = ["", "/www.googleapis.com"].map { $0 + "/identitytoolkit/v3/relyingparty" }

  static let rows: [Row] =
    hosted.flatMap { host in
      [
        Row("POST", "\(host)/v1/accounts:signUp", 200), Row("POST", "\(host)/v1/accounts:signInWithPassword", 400),
        Row("POST", "\(host)/v1/accounts:lookup", 400, 200), Row("GET", "\(host)/v1/accounts:lookup", 404),
        Row("DELETE", "\(host)/v1/accounts:signUp", 404), Row("POST", "\(host)/v1/accounts:unheardOf", 501),
        Row("GET", "\(host)/v1/accounts:sign/up", 501), Row("TRACE", "\(host)/v1/accounts:unheardOf", 404),
        Row("POST", "\(host)/v1/token", 400), Row("GET", "\(host)/v1/token", 404),
        Row("GET", "\(host)/v1/projects", 200), Row("POST", "\(host)/v1/projects", 200),
        Row("GET", "\(host)/v1/recaptchaParams", 200), Row("POST", "\(host)/v1/recaptchaParams", 404),
        Row("POST", "\(host)/v1/projects/p/accounts", 401, 200),
        Row("POST", "\(host)/v1/projects/p/accounts:signUp", 401, 200),
        Row("GET", "\(host)/v1/projects/p/accounts:batchGet", 401, 200),
        Row("POST", "\(host)/v1/projects/p/accounts:batchGet", 401, 200),
        Row("POST", "\(host)/v1/projects/p/accounts:query", 401, 200),
        Row("POST", "\(host)/v1/projects/p/accounts:batchDelete", 401, 400),
        Row("POST", "\(host)/v1/projects/p/accounts:createSessionCookie", 401, 400),
        Row("POST", "\(host)/v1/projects/p:createSessionCookie", 401, 400),
        Row("POST", "\(host)/v1/projects/p:queryAccounts", 401, 200),
        Row("GET", "\(host)/v1/projects/p/accounts:lookup", 404),
        Row("POST", "\(host)/v1/projects/p/accounts:signInWithPassword", 401, 501),
        Row("POST", "\(host)/v1/projects/p/accountsX", 404),
        Row("POST", "\(host)/v1/projects/p/tenants/t", 401, 501),
        Row("POST", "\(host)/v1/projects/p/tenants/t/accounts:signUp", 401, 501),
        Row("POST", "\(host)/v2/accounts/mfaEnrollment:start", 501), Row("GET", "\(host)/v2/recaptchaConfig", 200),
        Row("GET", "\(host)/v2/passwordPolicy", 200), Row("POST", "\(host)/v2/passwordPolicy", 404),
        Row("GET", "\(host)/v2/projects/p/config", 401, 200), Row("PATCH", "\(host)/v2/projects/p/config", 401, 200),
        Row("POST", "\(host)/v2/projects/p/config", 404), Row("GET", "\(host)/v2/projects/p/tenants", 401, 501),
        Row("GET", "\(host)/v2/projects/p", 404), Row("GET", "\(host)/emulator/v1/projects/p/config", 200),
        Row("PATCH", "\(host)/emulator/v1/projects/p/config", 200),
        Row("POST", "\(host)/emulator/v1/projects/p/config", 404),
        Row("GET", "\(host)/emulator/v1/projects/p/oobCodes", 200),
        Row("GET", "\(host)/emulator/v1/projects/p/verificationCodes", 200),
        Row("DELETE", "\(host)/emulator/v1/projects/p/accounts", 200),
        Row("GET", "\(host)/emulator/v1/projects/p/accounts", 404), Row("GET", "\(host)/emulator/action", 400),
      ]
    }
    + version3.flatMap { base in
      [
        Row("POST", "\(base)/signupNewUser", 200), Row("GET", "\(base)/signupNewUser", 404),
        Row("POST", "\(base)/uploadAccount", 401, 400), Row("GET", "\(base)/downloadAccount", 401, 200),
        Row("GET", "\(base)/getProjectConfig", 200), Row("POST", "\(base)/signOutUser", 501),
        Row("POST", "\(base)/unheardOf", 404),
      ]
    } + [Row("POST", "/securetoken.googleapis.com/v1/token", 400), Row("GET", "/v1/sessionCookiePublicKeys", 200)]

  @Test func everySpellingReachesItsCall() throws {
    let server = try TestServer()
    for row in Self.rows {
      let body = row.method == "GET" ? nil : "{}"
      for (headers, status) in [([], row.user), (IdentityTests.owner, row.admin)] {
        let reply = try server.request(row.method, row.path + "?key=any", body, headers: headers)
        #expect(reply.status == status, "\(row.testDescription): \(reply.text.prefix(200))")
      }
    }
  }

  @Test func productionRefusesTestSuitesAndOtherProjects() throws {
    let server = try TestServer(.production)
    for path in ["config", "oobCodes", "verificationCodes", "accounts", "action"] {
      let target = path == "action" ? "/emulator/action" : "/emulator/v1/projects/p/\(path)"
      let reply = try server.request(path == "accounts" ? "DELETE" : "GET", target + "?key=any")
      #expect(reply.status == 403, "\(path)")
      #expect(reply.message == "The caller does not have permission.")
    }
    #expect(try server.request("GET", "/v1/projects/p/accounts:batchGet").status == 401)
    #expect(try server.request("GET", "/v1/projects/p/accounts:batchGet", headers: IdentityTests.owner).status == 401)
  }
}
