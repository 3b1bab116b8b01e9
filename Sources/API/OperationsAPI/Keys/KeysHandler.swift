package import GatewayCore
package import Accounts
import DatabaseService
import Dispatch
import DocumentModel
package import Transport
import WireFormat

/// Serves the public keys that verify tokens, and manages the service keys of programs that act as administrators.
///
/// - `GET` of the paths of auth-api.md, section 7, with or without their host names: certificates and key sets for
///   ID tokens and session cookies, and the discovery document of OpenID.
/// - `POST /token`: an access token for the assertion of a service key (RFC 7523).
/// - `GET`, `POST /hearth/v1/keys`, `DELETE /hearth/v1/keys/{name}`: the service keys.
/// - `POST /hearth/v1/keys:rotate`: creates new signing keys. Send `{"immediately": true}` if a key was leaked.
/// - `POST /hearth/v1/tokens`: `{"uid": …, "claims": {…}}` → an ID token for tests.
///
/// The paths under `/hearth/` are for administrators.
package final class KeysHandler: Sendable {
  /// The request that a path names.
  package enum Call: Equatable {
    case certificates(SigningKeys.Purpose)
    case keySet(SigningKeys.Purpose)
    case discovery
    case token
    case serviceKeys
    case serviceKey(String)
    case rotate
    case idToken
  }

  private let accounts: AccountStore
  private let authenticator: Authenticator

  package init(_ accounts: AccountStore, _ authenticator: Authenticator) {
    self.accounts = accounts
    self.authenticator = authenticator
  }

  // MARK: Paths

  /// Returns the request that a path names, or `nil` if the path belongs to another API. Then it costs a few
  /// comparisons.
  package func call(_ path: UnsafeRawBufferPointer) -> Call? {
    if let rest = path.dropping("/hearth/v1/") { return Self.controlCall(rest) }
    if path.elementsEqual("/token".utf8) || path.elementsEqual("/oauth2.googleapis.com/token".utf8) { return .token }
    for (suffix, call) in Self.published where Self.ends(path, with: suffix) { return call }
    return nil
  }

  private static let published: [(StaticString, Call)] = [
    ("/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com", .certificates(.idToken)),
    ("/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com", .keySet(.idToken)),
    ("/identitytoolkit/v3/relyingparty/publicKeys", .certificates(.sessionCookie)),
    ("/v1/sessionCookiePublicKeys", .keySet(.sessionCookie)),
    ("/.well-known/openid-configuration", .discovery),
  ]

  /// Whether a path ends with a suffix. Before it there may be one host name, and for the discovery document a
  /// project.
  private static func ends(_ path: UnsafeRawBufferPointer, with suffix: StaticString) -> Bool {
    let count = path.count - suffix.utf8CodeUnitCount
    guard (0...300).contains(count),
      path[count...].elementsEqual(UnsafeRawBufferPointer(start: suffix.utf8Start, count: suffix.utf8CodeUnitCount))
    else { return false }
    return path[..<count].count { $0 == UInt8(ascii: "/") } <= 2
  }

  private static func controlCall(_ rest: UnsafeRawBufferPointer) -> Call? {
    if rest.elementsEqual("keys".utf8) { return .serviceKeys }
    if rest.elementsEqual("keys:rotate".utf8) { return .rotate }
    if rest.elementsEqual("tokens".utf8) { return .idToken }
    return rest.dropping("keys/").map { .serviceKey(String(decoding: $0, as: UTF8.self)) }
  }

  // MARK: Requests

  /// Handles a request.
  package func handle(_ call: Call, _ request: borrowing HTTPRequest, _ responder: Responder) {
    do {
      switch call {
      case .certificates(let purpose): try sendKeys(of: purpose, request, responder) { $0.certificates(purpose) }
      case .keySet(let purpose): try sendKeys(of: purpose, request, responder) { $0.jsonWebKeySet(purpose) }
      case .discovery: try sendDiscovery(request, responder)
      case .token: exchangeAssertion(request, responder)
      case .serviceKeys, .serviceKey, .rotate, .idToken:
        guard try authenticator.caller(of: request).isAdmin else {
          throw Status(.permissionDenied, "Missing or insufficient permissions.")
        }
        try control(call, request, responder)
      }
    } catch { responder.sendError(Status(error, database: nil)) }
  }

  private func sendKeys(
    of purpose: SigningKeys.Purpose, _ request: borrowing HTTPRequest, _ responder: Responder,
    _ text: @escaping @Sendable (SigningKeys) -> [UInt8]
  ) throws {
    guard request.method == .get || request.method == .head else {
      return responder.sendText(405, "Method Not Allowed\n")
    }
    let keys = accounts.signingKeys
    // Verifiers cache the response, so create the first key before the first list is sent.
    guard accounts.mode == .production, keys.published(purpose).isEmpty else { return Self.send(text(keys), responder) }
    DispatchQueue.global(qos: .userInitiated).async {
      let outcome = Result { () throws(TokenError) in try keys.current(purpose) }
      responder.onLoop {
        switch outcome {
        case .success: Self.send(text(keys), responder)
        case .failure(let error): responder.sendError(Status(fault: error.description))
        }
      }
    }
  }

  private static func send(_ text: [UInt8], _ responder: Responder) {
    responder.sendJSON(text, cacheControl: "public, max-age=\(SigningKeys.publishedSeconds)")
  }

  private func sendDiscovery(_ request: borrowing HTTPRequest, _ responder: Responder) throws {
    guard request.method == .get || request.method == .head else {
      return responder.sendText(405, "Method Not Allowed\n")
    }
    let origin = Self.origins(of: request).first ?? ""
    let path = "/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com"
    let document = MapValue([
      ("issuer", .string(accounts.project.issuer)), ("jwks_uri", .string(origin + path)),
      ("response_types_supported", .array([.string("id_token")])),
      ("subject_types_supported", .array([.string("public")])),
      ("id_token_signing_alg_values_supported", .array([.string("RS256")])),
    ])
    Self.send(document.json, responder)
  }

  /// The origins that the client may use for the server, by the host it names.
  private static func origins(of request: borrowing HTTPRequest) -> [String] {
    guard let host = request.header("host") ?? request.header(":authority") else { return [] }
    let name = String(decoding: host, as: UTF8.self)
    return ["http://\(name)", "https://\(name)"]
  }

  private func exchangeAssertion(_ request: borrowing HTTPRequest, _ responder: Responder) {
    func refuse(_ error: String, _ description: String) {
      let body = MapValue([("error", .string(error)), ("error_description", .string(description))])
      responder.sendJSON(body.json, status: 400, cacheControl: "no-store")
    }
    guard request.method == .post, let form = try? QueryParameters(request.body) else {
      return refuse("invalid_request", "The request must be a POST with a form.")
    }
    guard form.value("grantType") == "urn:ietf:params:oauth:grant-type:jwt-bearer" else {
      return refuse("unsupported_grant_type", "grant_type must be urn:ietf:params:oauth:grant-type:jwt-bearer.")
    }
    let assertion = Array((form.value("assertion") ?? "").utf8)
    do throws(TokenError) {
      let token = try accounts.serviceKeys.accessToken(for: assertion, at: Self.origins(of: request))
      let body = MapValue([
        ("access_token", .string(token)), ("token_type", .string("Bearer")),
        ("expires_in", .integer(ServiceKeys.accessTokenSeconds)),
      ])
      responder.sendJSON(body.json, cacheControl: "no-store")
    } catch {
      refuse("invalid_grant", "The assertion is not valid: \(error.description).")
    }
  }

  // MARK: Administration

  private func control(_ call: Call, _ request: borrowing HTTPRequest, _ responder: Responder) throws {
    let accounts = accounts
    let client = request.clientAddress
    @Sendable func audit(_ kind: AccountEvent.Kind, _ detail: (inout AccountEvent) -> Void) {
      var event = AccountEvent(kind, by: .admin, from: client)
      detail(&event)
      accounts.audit(event)
    }
    switch (call, request.method) {
    case (.serviceKeys, .get):
      Self.sendNoStore(ServiceKeys.list(accounts.serviceKeys.all), responder)
    case (.serviceKeys, .post):
      let body = try Self.object(request.body)
      let (name, url) = (body.text("name") ?? "", body.text("url"))
      guard let url = url ?? Self.origins(of: request).first else {
        throw Status(.invalidArgument, "The body must be {\"name\": …, \"url\": …}.")
      }
      Self.work(responder) { () throws(TokenError) in
        let file = try accounts.serviceKeys.create(name: name, url: url)
        audit(.keyCreated) { $0.key = name }
        return file
      }
    case (.serviceKey(let name), .delete):
      Self.work(responder) { () throws(TokenError) in
        guard try accounts.serviceKeys.revoke(name) else { return nil }
        audit(.keyRevoked) { $0.key = name }
        return MapValue().json
      }
    case (.rotate, .post):
      let immediately = request.body.isEmpty ? false : try Self.object(request.body)["immediately"] == .boolean(true)
      Self.work(responder) { () throws(TokenError) in
        var ids: [Value] = []
        for purpose in SigningKeys.Purpose.allCases {
          ids.append(.string(try accounts.signingKeys.rotate(purpose, immediately: immediately).id))
        }
        audit(.keysRotated) { $0.reason = immediately ? "immediately" : nil }
        return MapValue([("keys", .array(ids))]).json
      }
    case (.idToken, .post):
      let body = try Self.object(request.body)
      guard let user = SignedInUser(test: body, nowSeconds: accounts.nowSeconds) else {
        throw Status(.invalidArgument, "The body must be {\"uid\": …, \"claims\": {…}}.")
      }
      Self.work(responder) { () throws(TokenError) in
        let token = try accounts.mintIDToken(for: user)
        audit(.tokenIssued) { $0.uid = user.uid }
        return MapValue([("idToken", .string(token)), ("expiresIn", .string("\(AccountStore.idTokenSeconds)"))]).json
      }
    default: responder.sendText(404, "Not Found\n")
    }
  }

  /// Computes a response on another thread: creating a key takes a tenth of a second, and a write waits for a disk
  /// sync. Responds with 404 if the result is `nil`.
  private static func work(_ responder: Responder, _ body: @escaping @Sendable () throws(TokenError) -> [UInt8]?) {
    DispatchQueue.global(qos: .userInitiated).async {
      let outcome = Result { () throws(TokenError) in try body() }
      responder.onLoop {
        switch outcome {
        case .success(let text?): sendNoStore(text, responder)
        case .success(nil): responder.sendError(Status(.notFound, "No key has this name."))
        case .failure(.storage(let error)): responder.sendError(Status(error, database: nil))
        case .failure(let error): responder.sendError(Status(.invalidArgument, error.description))
        }
      }
    }
  }

  private static func sendNoStore(_ text: [UInt8], _ responder: Responder) {
    responder.sendJSON(text, cacheControl: "no-store")
  }

  private static func object(_ body: UnsafeRawBufferPointer) throws(Status) -> MapValue {
    guard let map = MapValue(json: body) else { throw Status(.invalidArgument, "The body must be a JSON object.") }
    return map
  }
}
