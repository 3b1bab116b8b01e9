import Accounts
import DocumentModel
import Synchronization
import WireFormat

/// Sign-in at other providers by their own pages: the authorization code flow with PKCE (OpenID Connect Core 1.0,
/// section 3.1; RFC 7636).
///
/// The browser keeps the ``SignInTicket``, so the server stores nothing until a provider returns a user. The functions
/// wait for the provider. Call them on ``AccountsService/Workload/provider``.
package final class ProviderSignIn: Sendable {
  private struct Entry {
    let provider: SignInProvider
    let metadata: ProviderMetadata
  }

  private let entries: [Entry]
  private let fetch: ProviderFetch?
  private let now: @Sendable () -> Int64
  private let seal = TicketSeal()
  let pending: PendingIdentities
  /// The tickets that a provider has returned.
  private let returned = Mutex(UsedTickets(countMax: ProviderLimits.returnsMax))

  /// Creates the flow. `now` returns the current time, in seconds. Without `fetch`, no provider can be used.
  init(_ providers: [SignInProvider], fetch: ProviderFetch?, now: @escaping @Sendable () -> Int64) {
    self.fetch = fetch
    self.now = now
    pending = PendingIdentities(now: now)
    entries = providers.map { provider in
      let web = fetch ?? { _ in ProviderResponse(status: 0, body: []) }
      return Entry(provider: provider, metadata: ProviderMetadata(provider, fetch: web, now: now))
    }
  }

  /// The IDs of the configured providers.
  package var providerIDs: [String] { entries.map(\.provider.id) }

  private func entry(_ id: String) throws(SignInFailure) -> Entry {
    guard let entry = entries.first(where: { $0.provider.id.utf8.elementsEqual(id.utf8) }) else {
      throw SignInFailure(
        .operationNotAllowed, "This server does not offer sign-in with \(id).",
        detail: "the provider is not in the configuration")
    }
    return entry
  }

  // MARK: The way to the provider

  /// Begins a sign-in. Returns the URL of the provider's page, the ticket, and the ticket as sealed text.
  /// - Parameters:
  ///   - scopes: scopes to request besides the configured ones.
  ///   - parameters: parameters for the provider's page. Those that the protocol needs cannot be changed.
  /// - Throws: ``SignInFailure`` if the provider is not configured or cannot be used.
  package func begin(
    _ providerID: String, returnURL: String, app: WaitingApp?, scopes: [String] = [],
    parameters: [(name: String, value: String)] = []
  ) throws(SignInFailure) -> (url: String, ticket: SignInTicket, sealed: String) {
    let entry = try entry(providerID)
    let endpoints = try entry.metadata.endpoints()
    let ticket = SignInTicket(
      id: RandomBytes.text(24), providerID: providerID, returnURL: returnURL,
      expirySeconds: now() + ProviderLimits.ticketSeconds, app: app)
    let provider = entry.provider
    let verifier = seal.secret("verifier", of: ticket)
    let challenge = Base64URL.encode(RandomBytes.sha256(verifier.utf8))
    let more = scopes.filter { !provider.scopes.contains($0) }
    var fields = [
      ("response_type", "code"), ("client_id", provider.clientID), ("redirect_uri", returnURL),
      ("scope", (provider.scopes + more).joined(separator: " ")), ("state", seal.state(of: ticket)),
      ("nonce", seal.secret("nonce", of: ticket)), ("code_challenge", String(decoding: challenge, as: UTF8.self)),
      ("code_challenge_method", "S256"),
    ]
    // Apple returns the user's email address only by a form.
    if provider.id == "apple.com" { fields.append(("response_mode", "form_post")) }
    let reserved = fields.map(\.0) + ["response_mode", "request", "request_uri", "registration", "client_secret"]
    for (name, value) in parameters where !reserved.contains(name) { fields.append((name, value)) }
    let url = FormText.url(endpoints.authorization, fields.map { (name: $0.0, value: $0.1) })
    return (url, ticket, seal.seal(ticket))
  }

  /// The name of the cookie that contains the ticket of a sign-in, without its prefix. Each sign-in has its own, so
  /// that several can be under way.
  package func cookieName(of ticket: SignInTicket) -> String { Self.cookieName(state: seal.state(of: ticket)) }

  /// The name of the cookie for the `state` that a provider returns.
  package static func cookieName(state: String) -> String {
    "hearth-sign-in-" + String(decoding: state.utf8.prefix(12).filter { $0.isPlain }, as: UTF8.self)
  }

  // MARK: The way back

  /// The parameters with which a provider returns the user.
  package struct Return: Sendable {
    package var state: String
    package var code: String?
    /// The provider's error code.
    package var error: String?
    /// The provider's issuer (RFC 9207).
    package var issuer: String?

    package init(state: String, code: String?, error: String? = nil, issuer: String? = nil) {
      self.state = state
      self.code = code
      self.error = error
      self.issuer = issuer
    }
  }

  /// Returns the ticket to which a return belongs, and uses it up.
  /// - Parameter sealed: the ticket that the browser has kept.
  /// - Throws: ``SignInFailure`` if this server did not make the ticket, it is too old or used, or the state is
  ///   another.
  package func ticket(_ sealed: String?, for back: Return) throws(SignInFailure) -> SignInTicket {
    guard let sealed, let ticket = seal.open(sealed, nowSeconds: now()) else {
      throw SignInFailure(
        .timeout, "This sign-in is not known to the server, or it took too long. Go back to the app and try again.")
    }
    guard SealingKey.areEqual(Array(seal.state(of: ticket).utf8), Array(back.state.utf8)) else {
      throw SignInFailure(
        .invalidCredential, "The response belongs to another sign-in. Go back to the app and try again.",
        detail: "state does not match the ticket")
    }
    try use(ticket)
    return ticket
  }

  private func use(_ ticket: SignInTicket) throws(SignInFailure) {
    let now = now()
    let isFirst = returned.withLock { $0.use(ticket.id, until: ticket.expirySeconds, nowSeconds: now) }
    guard isFirst else {
      throw SignInFailure(
        .invalidCredential, "This sign-in is already complete. Go back to the app.",
        detail: "the ticket was used before")
    }
  }

  /// Exchanges the code of a return for the user's identity. Returns the name of the identity, which the app passes as
  /// the provider's ID token.
  /// - Throws: ``SignInFailure`` if the provider reported an error, or its token is not valid.
  package func finish(_ ticket: SignInTicket, _ back: Return) throws(SignInFailure) -> String {
    pending.add(try identity(ticket, back))
  }

  /// Exchanges the code of a return for the user's identity.
  /// - Throws: as ``finish(_:_:)``.
  func identity(_ ticket: SignInTicket, _ back: Return) throws(SignInFailure) -> PendingIdentity {
    let entry = try entry(ticket.providerID)
    if let error = back.error { throw Self.failure(ofProvider: error) }
    let endpoints = try entry.metadata.endpoints()
    // Otherwise a provider could receive the code of another one (RFC 9700, section 4.4).
    let isOwn = back.issuer.map { $0.utf8.elementsEqual(entry.provider.issuer.utf8) } ?? !endpoints.namesIssuer
    guard isOwn else {
      throw SignInFailure(
        .invalidCredential, "Another provider sent the response.", detail: "iss is not that of the provider")
    }
    guard let code = back.code, !code.isEmpty else {
      throw SignInFailure(.invalidCredential, "The provider's response contains no code.")
    }
    let tokens = try tokens(for: code, ticket, entry, endpoints)
    guard let text = tokens.text("id_token"), text.utf8.count <= ProviderLimits.tokenBytesMax else {
      throw SignInFailure(
        .invalidCredential, "The provider's response contains no ID token.", detail: "the response has no id_token")
    }
    let check = ProviderToken(
      provider: entry.provider, metadata: entry.metadata, nonce: seal.secret("nonce", of: ticket), nowSeconds: now())
    let accessToken = tokens.text("access_token").flatMap { $0.utf8.count <= ProviderLimits.tokenBytesMax ? $0 : nil }
    return PendingIdentity(
      providerID: entry.provider.id, claims: try check.claims(of: text), accessToken: accessToken,
      confirmedSeconds: now())
  }

  /// Posts the code to the token endpoint (RFC 6749, section 4.1.3) and returns the response.
  private func tokens(
    for code: String, _ ticket: SignInTicket, _ entry: Entry, _ endpoints: ProviderMetadata.Endpoints
  ) throws(SignInFailure) -> MapValue {
    let provider = entry.provider
    var request = ProviderRequest(endpoints.token)
    var form = [
      ("grant_type", "authorization_code"), ("code", code), ("redirect_uri", ticket.returnURL),
      ("code_verifier", seal.secret("verifier", of: ticket)),
    ]
    let secret: String?
    do throws(TokenError) { secret = try provider.secret(nowSeconds: now()) } catch {
      throw SignInFailure(.internalError, "The server cannot prove its identity to the provider.", detail: "\(error)")
    }
    if let secret, !endpoints.postsSecret, case .secret = provider.credential {
      // RFC 6749, section 2.3.1: both parts are encoded as in a form.
      let pair = Array("\(FormText.encode(provider.clientID)):\(FormText.encode(secret))".utf8)
      var text: [UInt8] = []
      pair.withUnsafeBytes { Base64.append($0, .standard, to: &text) }
      request.authorization = "Basic \(String(decoding: text, as: UTF8.self))"
    } else {
      form.append(("client_id", provider.clientID))
      if let secret { form.append(("client_secret", secret)) }
    }
    request.form = form.map { (name: $0.0, value: $0.1) }
    let response: ProviderResponse
    do {
      guard let fetch else { throw AccountError(.notImplemented) }
      response = try fetch(request)
    } catch {
      throw SignInFailure(
        .networkRequestFailed, "The server cannot reach the provider. Try again later.",
        detail: "\(endpoints.token): \(error)")
    }
    let body = response.body.count <= 4 * ProviderLimits.tokenBytesMax ? MapValue(json: response.body) : nil
    guard response.status == 200, let body else {
      // The text of the error may contain anything. Its code is one of RFC 6749, section 5.2.
      let code = String(
        decoding: (body?.text("error") ?? "no error code").utf8.filter { $0.isPlain }.prefix(64), as: UTF8.self)
      throw SignInFailure(
        .invalidCredential, "The provider did not accept the sign-in. Try again.",
        detail: "\(endpoints.token) responded with status \(response.status), \(code)")
    }
    return body
  }

  /// The failure for an error code of a provider (RFC 6749, section 4.1.2.1).
  private static func failure(ofProvider error: String) -> SignInFailure {
    let code = String(decoding: error.utf8.filter { $0.isPlain }.prefix(64), as: UTF8.self)
    switch code {
    case "access_denied", "user_cancelled_authorize", "user_cancelled_login":
      return SignInFailure(.userCancelled, "The sign-in was cancelled.")
    case "temporarily_unavailable", "server_error":
      return SignInFailure(
        .networkRequestFailed, "The provider is not available. Try again later.", detail: "the provider reports \(code)"
      )
    default:
      return SignInFailure(
        .invalidCredential, "The provider refused the sign-in.", detail: "the provider reports \(code)")
    }
  }
}

extension UInt8 {
  /// Whether the byte is a letter, a digit, a hyphen or an underscore.
  fileprivate var isPlain: Bool { self &- 0x30 < 10 || (self | 0x20) &- 0x61 < 26 || self == 0x2D || self == 0x5F }
}
