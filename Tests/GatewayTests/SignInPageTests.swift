import Accounts
import Foundation
import HearthServer
import IdentityService

import Testing
import TestSupport

/// The pages that the web SDK opens for sign-in, as a browser receives them.
@Suite struct SignInPageTests {
  private static let query =
    "apiKey=any&appName=a&authType=signInViaPopup&eventId=e&redirectUrl=https%3A%2F%2Fapp.example%2F&v=12"

  /// A server in production mode whose provider confirms no user. Its paths begin at the root.
  private static func production(
    _ change: (inout HearthConfiguration) -> Void = { _ in }
  ) throws -> TestServer {
    try TestServer(.production) { configuration in
      configuration.publicURL = "https://db.example.com"
      configuration.accounts.authorizedDomains = ["app.example"]
      configuration.accounts.signInProviders =
        #"{"oidc.work": {"issuer": "https://id.example.com", "clientId": "web", "scopes": ["groups"]}}"#
      configuration.providerFetch = { request in
        guard request.form == nil else { return ProviderResponse(status: 400, body: []) }
        return ProviderResponse(
          status: 200,
          body: Array(
            """
            {"issuer": "https://id.example.com", "authorization_endpoint": "https://id.example.com/authorize?a=b", \
            "token_endpoint": "https://id.example.com/token", "jwks_uri": "https://id.example.com/keys"}
            """.utf8))
      }
      change(&configuration)
    }
  }

  private static func get(
    _ server: TestServer, _ target: String, _ headers: [(String, String)] = []
  ) throws -> TestServer.Response {
    try server.request("GET", target, headers: headers)
  }

  @Test func theProviderIsOpenedWithATicket() throws {
    let server = try Self.production()
    for path in ["/__/auth/handler", "/emulator/auth/handler"] {
      let response = try Self.get(
        server,
        "\(path)?\(Self.query)&providerId=oidc.work&scopes=mail,groups&customParameters=%7B%22prompt%22:%22login%22%7D")
      #expect(response.status == 303)
      let location = try #require(response.header("location"))
      #expect(location.hasPrefix("https://id.example.com/authorize?a=b&response_type=code&client_id=web&"))
      let items = try #require(URLComponents(string: location)?.queryItems)
      #expect(items.first { $0.name == "redirect_uri" }?.value == "https://db.example.com/__/auth/handler")
      #expect(items.first { $0.name == "scope" }?.value == "openid email profile groups mail")
      #expect(items.first { $0.name == "prompt" }?.value == "login")
      let cookie = try #require(response.header("set-cookie"))
      #expect(cookie.hasPrefix("__Host-hearth-sign-in-"))
      #expect(cookie.hasSuffix("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"))
      #expect(response.header("referrer-policy") == "no-referrer" && response.header("cache-control") == "no-store")
    }
  }

  @Test func theResultGoesToTheApp() throws {
    let server = try Self.production()
    let start = try Self.get(server, "/__/auth/handler?\(Self.query)&providerId=oidc.work")
    let cookie = try #require(start.header("set-cookie")?.split(separator: ";").first.map(String.init))
    let items = URLComponents(string: start.header("location") ?? "")?.queryItems
    let state = try #require(items?.first { $0.name == "state" }?.value)
    // Another browser has no ticket.
    let stranger = try Self.get(server, "/__/auth/handler?code=c&state=\(state)")
    #expect(stranger.status == 400 && stranger.text.contains("auth/timeout"))
    // Two cookies of the name: one of them may be a stranger's.
    let two = try Self.get(server, "/__/auth/handler?code=c&state=\(state)", [("Cookie", "\(cookie); \(cookie)x")])
    #expect(two.text.contains("auth/timeout"))
    for twice in ["state=\(state)&state=x&code=c", "state=\(state)&code=c&code=d"] {
      #expect(try Self.get(server, "/__/auth/handler?\(twice)", [("Cookie", cookie)]).status == 400)
    }
    let response = try Self.get(
      server, "/__/auth/handler?error=access_denied&state=\(state)", [("Cookie", "a=b; \(cookie)")])
    #expect(response.status == 200 && response.text.contains(#""code":"auth/user-cancelled""#))
    #expect(response.header("set-cookie")?.contains("Max-Age=0") == true)
    #expect(response.header("access-control-allow-origin") == nil)
    let policy = try #require(response.header("content-security-policy"))
    #expect(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"))
    #expect(!policy.contains("unsafe") && !policy.contains("http"))
    let again = try Self.get(server, "/__/auth/handler?error=access_denied&state=\(state)", [("Cookie", cookie)])
    #expect(again.status == 400 && again.text.contains("auth/invalid-credential"))
  }

  @Test func foreignPagesGetNothing() throws {
    let server = try Self.production()
    for url in [
      "https://evil.example/", "http://app.example/", "javascript:alert(1)", "//app.example",
      "https://app.example.evil/",
      "https://app.example@evil.example/", "",
    ] {
      let encoded = url.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
      for type in ["signInViaPopup", "linkViaRedirect"] {
        let response = try Self.get(
          server,
          "/__/auth/handler?apiKey=a&appName=b&authType=\(type)&providerId=oidc.work&redirectUrl=\(encoded)")
        #expect(response.status == 400 && response.text.contains("auth/unauthorized-domain"), "\(url)")
        #expect(response.header("set-cookie") == nil && response.header("location") == nil)
      }
    }
    let frame = try Self.get(server, "/__/auth/iframe?apiKey=a&appName=b", [("Origin", "https://evil.example")])
    let policy = try #require(frame.header("content-security-policy"))
    #expect(policy.contains("frame-ancestors 'self' "))
    #expect(policy.contains("https://app.example:* https://*.app.example:*") && !policy.contains("http://app.example"))
    #expect(frame.header("access-control-allow-origin") == nil)
  }

  @Test func anUnknownHostGetsNothing() throws {
    let server = try Self.production { $0.publicURL = nil }
    let response = try Self.get(
      server, "/__/auth/handler?\(Self.query)&providerId=oidc.work", [("Host", "evil.example")])
    #expect(response.status == 400 && response.text.contains("--public-url"))
    let own = try Self.get(
      server, "/__/auth/handler?\(Self.query)&providerId=oidc.work",
      [("Host", "db.app.example"), ("X-Forwarded-Proto", "https")])
    #expect(own.header("location")?.contains("redirect_uri=https%3A%2F%2Fdb.app.example%2F__%2Fauth%2Fhandler") == true)
    let plain = try Self.get(server, "/__/auth/handler?\(Self.query)&providerId=oidc.work")
    #expect(plain.header("set-cookie")?.hasPrefix("hearth-sign-in-") == true)
    #expect(plain.header("set-cookie")?.contains("Secure") == false)
  }

  @Test func errorsBeforeTheProviderReachTheApp() throws {
    let server = try Self.production { $0.providerFetch = { _ in throw URLError(.timedOut) } }
    for (id, code) in [("oidc.work", "auth/network-request-failed"), ("google.com", "auth/operation-not-allowed")] {
      let response = try Self.get(server, "/__/auth/handler?\(Self.query)&providerId=\(id)")
      #expect(response.status == 200 && response.text.contains(#""code":"\#(code)""#))
    }
    for target in [
      "/__/auth/handler", "/__/auth/handler?\(Self.query)", "/__/auth/handler?apiKey=a&appName=b&authType=verifyApp",
      "/__/auth/iframe", "/__/auth/handler?%", "/__/auth/handler?\(Self.query)&apiKey=b&providerId=oidc.work",
      "/__/auth/handler?\(Self.query)&providerId=\(String(repeating: "a", count: 600))",
    ] {
      #expect(try Self.get(server, target).status == 400, "\(target)")
    }
  }

  @Test func formsOfProvidersContinueAsURLs() throws {
    let server = try Self.production()
    let form = [("Content-Type", "application/x-www-form-urlencoded")]
    let response = try server.request(
      "POST", "/__/auth/handler", "state=a%26b&code=c&user=%7B%7D&id_token=x", headers: form)
    #expect(response.status == 303)
    #expect(response.header("location") == "/__/auth/handler?state=a%26b&code=c")
    let twice = try server.request("POST", "/__/auth/handler", "state=a&state=b", headers: form)
    #expect(twice.status == 400)
  }

  @Test func emulatorPagesShowTextAsText() throws {
    let server = try TestServer()
    let hostile = "%3C%2Fscript%3E%3Cimg%20src%3Dx%3E%22"
    let page = try Self.get(
      server,
      "/emulator/auth/handler?apiKey=\(hostile)&appName=\(hostile)&authType=signInViaPopup&providerId=\(hostile)"
        + "&redirectUrl=http%3A%2F%2Fany.example%2F")
    #expect(page.status == 200)
    #expect(!page.text.contains("<img"))
    let frame = try Self.get(server, "/emulator/auth/iframe?apiKey=\(hostile)&appName=\(hostile)")
    #expect(
      !frame.text.contains("<img")
        && frame.header("content-security-policy")?.contains("https://apis.google.com") == true)
    let own = try Self.get(server, "/emulator/auth/iframe?apiKey=a&appName=b&loader=own")
    #expect(own.header("content-security-policy")?.contains("google") == false)
    let loader = try Self.get(server, "/__/auth/gapi.js")
    #expect(loader.status == 200 && loader.header("content-type") == "text/javascript; charset=utf-8")
    // A site whose name leads to this machine must not see the accounts.
    let rebound = try Self.get(
      server, "/emulator/auth/handler?\(Self.query)&providerId=google.com", [("Host", "evil.example")])
    #expect(rebound.status == 400)
    #expect(try server.request("POST", "/__/auth/handler").status == 400)
  }

  @Test func emulatorListsTheAccountsOfAProvider() throws {
    let server = try TestServer()
    for (provider, sub) in [("google.com", "g1"), ("google.com", "g2"), ("github.com", "h1")] {
      let token = #"{"sub": "\#(sub)", "name": "User \#(sub)"}"#.addingPercentEncoding(
        withAllowedCharacters: .alphanumerics)
      let body = #"{"requestUri": "http://localhost", "postBody": "id_token=\#(token ?? "")&providerId=\#(provider)"}"#
      let response = try server.request("POST", "/v1/accounts:signInWithIdp?key=any", body)
      #expect(response.status == 200 && response.json("oauthIdToken", as: String.self)?.contains(sub) == true)
    }
    let page = try Self.get(server, "/emulator/auth/handler?\(Self.query)&providerId=google.com").text
    #expect(page.contains("User g1") && page.contains("User g2") && !page.contains("User h1"))
  }
}
