import Accounts
import DocumentModel
import Synchronization

/// The published documents of a provider: its endpoints (OpenID Connect Discovery 1.0, section 3) and its keys. Both
/// are fetched when a sign-in needs them, and kept as long as the provider says.
///
/// If a fetch fails, an earlier document stays in use.
final class ProviderMetadata: Sendable {
  /// The parts of the discovery document that a sign-in needs.
  struct Endpoints: Sendable, Equatable {
    var authorization: String
    var token: String
    var keys: String
    /// Whether the secret is a field of the form, and not in the header `Authorization`.
    var postsSecret: Bool
    /// Whether each response of the provider names its issuer (RFC 9207).
    var namesIssuer: Bool
  }

  private struct State {
    var endpoints: Endpoints?
    var endpointsExpirySeconds: Int64 = 0
    var keys: ProviderKeys?
    var keysExpirySeconds: Int64 = 0
    /// The time of the last fetch of keys that a token with an unknown key caused.
    var unknownKeySeconds: Int64 = 0
    /// The time of the last failed fetch of each document, by its URL.
    var failures: [String: (seconds: Int64, failure: SignInFailure)] = [:]
    /// The number of fetches under way.
    var fetches = 0
  }

  private let provider: SignInProvider
  private let fetch: ProviderFetch
  private let now: @Sendable () -> Int64
  private let state = Mutex(State())

  /// Creates an empty cache. `now` returns the current time, in seconds.
  init(_ provider: SignInProvider, fetch: @escaping ProviderFetch, now: @escaping @Sendable () -> Int64) {
    self.provider = provider
    self.fetch = fetch
    self.now = now
  }

  /// Returns the endpoints. Fetches the discovery document if the server has none, or an old one.
  /// - Throws: ``SignInFailure`` if the document cannot be fetched or used, and no earlier one exists.
  func endpoints() throws(SignInFailure) -> Endpoints {
    let known = state.withLock { ($0.endpoints, $0.endpointsExpirySeconds) }
    if let endpoints = known.0, known.1 > now() { return endpoints }
    do {
      let base = provider.issuer.hasSuffix("/") ? String(provider.issuer.dropLast()) : provider.issuer
      let response = try document("\(base)/.well-known/openid-configuration")
      let endpoints = try read(response.body)
      let expiry = expiry(of: response)
      state.withLock { ($0.endpoints, $0.endpointsExpirySeconds) = (endpoints, expiry) }
      return endpoints
    } catch {
      guard let endpoints = known.0 else { throw error }
      return endpoints
    }
  }

  /// Checks the signature of a token. Fetches the keys if the server has none, or old ones, or if the token names an
  /// unknown one: the provider may have rotated its keys.
  /// - Throws: ``SignInFailure`` if the signature is not valid or no keys can be fetched.
  func verify(_ token: JSONWebToken) throws(SignInFailure) {
    let known = state.withLock { ($0.keys, $0.keysExpirySeconds) }
    var isCurrent = true
    let keys: ProviderKeys
    if let found = known.0 {
      keys = found
      isCurrent = known.1 <= now() ? false : true
    } else {
      keys = try fetchKeys()
    }
    do throws(TokenError) {
      try (isCurrent ? keys : (try? fetchKeys()) ?? keys).verify(token)
    } catch {
      guard error == .unknownKey, mayFetchForUnknownKey() else { throw Self.failure(error) }
      let newer = try fetchKeys()
      do throws(TokenError) { try newer.verify(token) } catch { throw Self.failure(error) }
    }
  }

  /// The failure for a token that is not valid.
  static func failure(_ error: TokenError) -> SignInFailure {
    SignInFailure(
      .invalidCredential, "The provider's response could not be verified.", detail: "the ID token: \(error)")
  }

  /// Whether enough time has passed since the last fetch for an unknown key, and notes one. Otherwise tokens with
  /// invented keys could make the server flood the provider.
  private func mayFetchForUnknownKey() -> Bool {
    let now = now()
    return state.withLock { state in
      guard now - state.unknownKeySeconds >= ProviderLimits.unknownKeySeconds else { return false }
      state.unknownKeySeconds = now
      return true
    }
  }

  private func fetchKeys() throws(SignInFailure) -> ProviderKeys {
    let response = try document(try endpoints().keys)
    guard let keys = ProviderKeys(response.body) else {
      throw unusable("the key set contains no key for RS256 or ES256")
    }
    let expiry = expiry(of: response)
    state.withLock { ($0.keys, $0.keysExpirySeconds) = (keys, expiry) }
    return keys
  }

  private func expiry(of response: ProviderResponse) -> Int64 {
    let range = ProviderLimits.documentSeconds
    let age = response.maxAgeSeconds ?? OnlineDocument.standardSeconds
    return now() + Int64(min(max(age, range.lowerBound), range.upperBound))
  }

  /// Fetches a document, unless that failed a short time ago or too many fetches are under way.
  private func document(_ url: String) throws(SignInFailure) -> ProviderResponse {
    let now = now()
    let known = state.withLock { state -> SignInFailure? in
      if let (seconds, failure) = state.failures[url], now - seconds < ProviderLimits.failureSeconds { return failure }
      guard state.fetches < ProviderLimits.fetchesMax else {
        return SignInFailure(
          .networkRequestFailed, "The server is waiting for the provider. Try again later.",
          detail: "\(url): \(ProviderLimits.fetchesMax) requests are under way")
      }
      state.fetches += 1
      return nil
    }
    if let known { throw known }
    do throws(SignInFailure) {
      let response = try response(of: url)
      state.withLock { state in
        state.fetches -= 1
        state.failures[url] = nil
      }
      return response
    } catch {
      state.withLock { state in
        state.fetches -= 1
        state.failures[url] = (now, error)
      }
      throw error
    }
  }

  private func response(of url: String) throws(SignInFailure) -> ProviderResponse {
    let response: ProviderResponse
    do { response = try fetch(ProviderRequest(url)) } catch {
      throw SignInFailure(
        .networkRequestFailed, "The server cannot reach the provider. Try again later.", detail: "\(url): \(error)")
    }
    guard response.status == 200 else { throw unusable("\(url) responded with status \(response.status)") }
    return response
  }

  private func read(_ body: [UInt8]) throws(SignInFailure) -> Endpoints {
    guard let map = MapValue(json: body), let issuer = map.text("issuer") else {
      throw unusable("the discovery document is not a JSON object with an issuer")
    }
    guard issuer.utf8.elementsEqual(provider.issuer.utf8) else {
      throw unusable("the discovery document names another issuer; the configuration must contain exactly that issuer")
    }
    guard let authorization = map.text("authorization_endpoint"), let token = map.text("token_endpoint"),
      let keys = map.text("jwks_uri"), [authorization, token, keys].allSatisfy(provider.mayUse)
    else { throw unusable("the discovery document lacks an https URL of an endpoint") }
    var methods: [String] = []
    if case .array(let values)? = map["token_endpoint_auth_methods_supported"] {
      methods = values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }
    return Endpoints(
      authorization: authorization, token: token, keys: keys, postsSecret: methods.contains("client_secret_post"),
      namesIssuer: map["authorization_response_iss_parameter_supported"] == .boolean(true))
  }

  private func unusable(_ detail: String) -> SignInFailure {
    SignInFailure(
      .internalError, "The server cannot use this provider. Its log contains the reason.", detail: detail)
  }
}

/// A document whose provider does not say how long it is valid.
enum OnlineDocument {
  /// The time for which such a document is kept, in seconds.
  static let standardSeconds = 3600
}
