import Accounts
import DocumentModel
import Foundation
import IdentityService
import Synchronization
import Testing
import TestSupport

/// An OpenID provider in this process. It checks requests as a real one does: the code works once, for the same
/// redirect URL, with the PKCE verifier and the client's secret.
final class FakeOpenIDProvider: Sendable {
  /// The user who signs in, and the mistakes of the provider.
  struct State {
    var claims: [(String, Value)] = [("sub", .string("u1")), ("email", .string("ann@example.com"))]
    /// Changes the claims of each token before it is signed.
    var change: (@Sendable (inout [(String, Value)]) -> Void)?
    /// Makes the text of a token in place of the signed one.
    var makeToken: (@Sendable (MapValue) throws -> String)?
    var keyID = "k1"
    var publishedKeyID = "k1"
    var usesEllipticKey = false
    /// The responses to requests by the last part of their path, in place of the usual ones.
    var responses: [String: ProviderResponse] = [:]
    var isDown = false
    var discovery: [(String, Value)] = []
    var requests: [String] = []
    var authorizations: [String?] = []
    fileprivate var codes: [String: [String: String]] = [:]
    fileprivate var count = 0
  }

  static let issuer = "https://id.example.com"
  static let secret = "s3cret / +"
  /// A private key on P-256 that exists only for tests, and its coordinates.
  static let ellipticPEM = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/KHX3JjFjmPfXh8B
    4n97nCUlsidCBi1rfDpUI9WvJQChRANCAARa6Zzm5g7+LwR4+0Iqpz3l8YB5CVSW
    2kjz1Gr32z1qnrgv5aIsfTPmXA0eYrFGVSqV4caU3bvXoXBYjF1KCgQV
    -----END PRIVATE KEY-----
    """
  static let point = (
    x: "Wumc5uYO_i8EePtCKqc95fGAeQlUltpI89Rq99s9ap4", y: "uC_loix9M-ZcDR5isUZVKpXhxpTdu9ehcFiMXUoKBBU"
  )

  let key: RSAKey
  let ellipticKey: EllipticKey
  let clock: SteppedTime
  let state = Mutex(State())

  init(clock: SteppedTime) throws {
    key = try #require(RSAKey.make())
    ellipticKey = try #require(EllipticKey(privatePEM: Self.ellipticPEM))
    self.clock = clock
  }

  func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

  /// The requests so far, by the last part of their path.
  var requests: [String] { state.withLock(\.requests) }

  /// Lets the user confirm a sign-in on the provider's page, and returns the query with which the browser comes back.
  func authorize(_ url: String) throws -> ProviderSignIn.Return {
    let query = try Self.query(url)
    #expect(query["response_type"] == "code" && query["code_challenge_method"] == "S256")
    let state = try #require(query["state"])
    let code = self.state.withLock { provider in
      provider.count += 1
      provider.codes["c\(provider.count)"] = query
      return "c\(provider.count)"
    }
    return ProviderSignIn.Return(state: state, code: code)
  }

  static func query(_ url: String) throws -> [String: String] {
    let items = try #require(URLComponents(string: url)?.queryItems)
    return Dictionary(items.map { ($0.name, $0.value ?? "") }) { $1 }
  }

  func fetch(_ request: ProviderRequest) throws -> ProviderResponse {
    let name = request.url.split(separator: "/").last.map(String.init) ?? ""
    let (isDown, response) = state.withLock { state in
      state.requests.append(name)
      state.authorizations.append(request.authorization)
      return (state.isDown, state.responses[name])
    }
    if isDown { throw URLError(.timedOut) }
    if let response { return response }
    switch name {
    case "openid-configuration": return json(discovery)
    case "keys": return json(keys)
    case "token": return try token(request)
    default: return ProviderResponse(status: 404, body: [])
    }
  }

  private func json(_ value: MapValue, status: Int = 200) -> ProviderResponse {
    ProviderResponse(status: status, body: value.json, maxAgeSeconds: 3600)
  }

  private var discovery: MapValue {
    var fields: [(String, Value)] = [
      ("issuer", .string(Self.issuer)), ("authorization_endpoint", .string(Self.issuer + "/authorize")),
      ("token_endpoint", .string(Self.issuer + "/token")), ("jwks_uri", .string(Self.issuer + "/keys")),
    ]
    for (name, value) in state.withLock(\.discovery) {
      fields.removeAll { $0.0 == name }
      fields.append((name, value))
    }
    return MapValue(fields)
  }

  private var keys: MapValue {
    let id = state.withLock(\.publishedKeyID)
    func text(_ bytes: [UInt8]) -> Value {
      .string(
        Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-")
          .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: ""))
    }
    let rsa = MapValue([
      ("kty", .string("RSA")), ("kid", .string(id)), ("n", text(key.modulus)), ("e", text(key.exponent)),
    ])
    let elliptic = MapValue([
      ("kty", .string("EC")), ("crv", .string("P-256")), ("kid", .string("e1")), ("x", .string(Self.point.x)),
      ("y", .string(Self.point.y)),
    ])
    return MapValue([("keys", .array([.map(rsa), .map(elliptic)]))])
  }

  private func token(_ request: ProviderRequest) throws -> ProviderResponse {
    let form = Dictionary((request.form ?? []).map { ($0.name, $0.value) }) { $1 }
    let state = self.state.withLock { $0 }
    let query = self.state.withLock { $0.codes.removeValue(forKey: form["code"] ?? "") }
    let encoded = "web:s3cret%20%2F%20%2B"
    let verifier = Array((form["code_verifier"] ?? "").utf8)
    let challenge = Data(RandomBytes.sha256(verifier)).base64EncodedString()
      .replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
      .replacingOccurrences(of: "=", with: "")
    guard let query, request.authorization == "Basic \(Data(encoded.utf8).base64EncodedString())",
      query["redirect_uri"] == form["redirect_uri"], query["code_challenge"] == challenge
    else { return json(MapValue([("error", .string("invalid_grant"))]), status: 400) }
    let now = clock.now / 1_000_000
    var claims: [(String, Value)] =
      state.claims + [
        ("iss", .string(Self.issuer)), ("aud", .string("web")), ("iat", .integer(now)), ("exp", .integer(now + 300)),
        ("nonce", .string(query["nonce"] ?? "")),
      ]
    state.change?(&claims)
    let map = MapValue(claims)
    let text =
      try state.makeToken?(map)
      ?? (state.usesEllipticKey
        ? JSONWebToken.signed(map, by: ellipticKey, id: "e1") : JSONWebToken.signed(map, by: key, id: state.keyID))
    return json(MapValue([("id_token", .string(text)), ("access_token", .string("a1"))]))
  }
}
