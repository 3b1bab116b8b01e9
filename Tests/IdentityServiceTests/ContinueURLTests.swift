import Accounts
import Testing

@testable import IdentityService

/// The URLs to which links in mails may lead.
@Suite struct ContinueURLTests {
  @Test(
    arguments: [
      ("https://app.example.com/done?x=1#y", "app.example.com"), ("http://LOCALHOST:8080", "localhost"),
      ("https://app.example.com", "app.example.com"), ("http://[::1]:80/", "[::1]"), ("http://127.0.0.1/", "127.0.0.1"),
      ("https://example.com?@evil.example", "example.com"),
      // Browsers and servers could read these hosts differently.
      ("https://app.example.com@evil.example/", nil), ("https://evil.example\\@app.example.com/", nil),
      ("https://evil.example\\.app.example.com/", nil), ("https://app.example.com:80:90/", nil),
      ("https://app.example.com:x@evil.example/", nil), ("https://ex%61mple.com/", nil), ("https://exämple.com/", nil),
      ("javascript:x", nil), ("https://", nil), ("https:///x", nil), ("//example.com", nil), ("https://a b/", nil),
    ] as [(String, String?)])
  func findsTheHostOfAURL(url: String, host: String?) {
    #expect(ContinueURL.host(of: url) == host)
  }

  @Test func usersContinueOnlyOnAuthorizedDomains() throws {
    let world = try ServiceWorld {
      $0.actionURL = "https://app.example.com/action"
      $0.authorizedDomains = ["Shop.example"]
      $0.settings.allowsEmailLink = true
    }
    func outcome(_ url: String, _ caller: AccountsCaller = ServiceWorld.user) -> AccountError.Code? {
      var request = AccountsService.SendOobCode(.resetPassword, email: "ann@example.com")
      request.continueURL = url
      return refusal { try world.service.sendOobCode(request, by: caller) }
    }
    _ = try world.signUp("ann")
    for url in ["https://app.example.com/x", "http://localhost:5000", "https://www.shop.example/"] {
      #expect(outcome(url) == nil, "\(url)")
    }
    for url in [
      "https://evil.example", "https://notshop.example", "https://example.com", "https://shop.example.evil.example",
    ] {
      #expect(outcome(url) == .unauthorizedDomain, "\(url)")
    }
    #expect(outcome("https://evil.example", ServiceWorld.admin) == nil)
    #expect(outcome("https://evil.example@app.example.com") == .invalidContinueURI)
  }
}
