import Foundation
import Testing

@testable import HearthClient

/// Sign-in with tokens of Google, Apple and other OpenID providers.
@Suite struct IdentitySignInTests {
  /// A token that a server in emulator mode accepts: its signature is not verified.
  private static func token(_ sub: String, email: String? = nil, verified: Bool = true) -> String {
    func part(_ text: String) -> String {
      Data(text.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
    let address = email.map { #", "email": "\#($0)", "email_verified": \#(verified)"# } ?? ""
    return "\(part(#"{"alg":"none"}"#)).\(part(#"{"sub": "\#(sub)"\#(address)}"#))."
  }

  private func reason(_ reason: HearthClientError.Reason) -> @Sendable (any Error) -> Bool {
    { ($0 as? HearthClientError)?.reason == reason }
  }

  @Test func signsInWithEachProvider() async throws {
    let hearth = try TestHearth()
    for (credential, provider) in [
      (
        IdentityCredential.google(idToken: Self.token("g1", email: "ann@example.com"), accessToken: "a&b"), "google.com"
      ),
      (.apple(idToken: Self.token("a1"), nonce: "random"), "apple.com"),
      (.oidc(provider: "oidc.example", idToken: Self.token("o1")), "oidc.example"),
    ] {
      let auth = try hearth.client().auth
      let user = try await auth.signIn(with: credential)
      #expect(user.identityProviders == [provider] && !user.isAnonymous && auth.currentUser == user)
      #expect(try await hearth.client().auth.signIn(with: credential).uid == user.uid)
      #expect(credential.providerID == provider)
    }
  }

  @Test func linksAndUnlinks() async throws {
    let hearth = try TestHearth()
    let auth = try hearth.client().auth
    let guest = try await auth.signInAnonymously()
    let linked = try await auth.link(with: .google(idToken: Self.token("g1", email: "ann@example.com")))
    #expect(linked.uid == guest.uid && !linked.isAnonymous && linked.email == "ann@example.com")
    #expect(
      try await auth.link(with: .apple(idToken: Self.token("a1"))).identityProviders == ["apple.com", "google.com"])
    let rest = try await auth.unlink("google.com")
    #expect(rest.uid == guest.uid && rest.identityProviders == ["apple.com"] && auth.currentUser == rest)
    // The identity is free again, and the address signs in to the same account.
    let other = try hearth.client().auth
    #expect(try await other.signIn(with: .apple(idToken: Self.token("a1"))).uid == guest.uid)
  }

  @Test func failuresHaveTypedReasons() async throws {
    let hearth = try TestHearth()
    let auth = try hearth.client().auth
    try await auth.signIn(with: .google(idToken: Self.token("g1", email: "ann@example.com")))
    let other = try hearth.client().auth
    try await other.signInAnonymously()
    await #expect { try await other.link(with: .google(idToken: Self.token("g1"))) } throws: {
      reason(.identityAlreadyLinked)($0)
    }
    await #expect { try await other.signIn(with: .google(idToken: "not a token")) } throws: {
      reason(.invalidIdentity)($0)
    }
    let unverified = Self.token("o1", email: "ann@example.com", verified: false)
    await #expect { try await other.signIn(with: .oidc(provider: "oidc.example", idToken: unverified)) } throws: {
      reason(.needsConfirmation)($0) && ($0 as? HearthClientError)?.code == .alreadyExists
    }
    other.signOut()
    await #expect { try await other.unlink("google.com") } throws: {
      ($0 as? HearthClientError)?.code == .unauthenticated
    }
    await #expect { try await other.link(with: .apple(idToken: Self.token("a1"))) } throws: {
      ($0 as? HearthClientError)?.code == .unauthenticated
    }
  }

  @Test func theFormIsPercentEncoded() {
    let credential = IdentityCredential.apple(idToken: "a&b=c", nonce: "n +%")
    #expect(credential.postBody == "id_token=a%26b%3Dc&nonce=n%20%2B%25&providerId=apple.com")
    #expect(IdentityCredential.google(idToken: "t").postBody == "id_token=t&providerId=google.com")
  }
}
