package import Accounts
import DatabaseService
import DocumentModel
package import GatewayCore
package import Transport
import WireFormat

/// Serves the public keys that verify tokens, and manages the service keys of programs that act as administrators.
///
/// - `GET` of the paths of auth-api.md, section 7, with or without their host names: certificates and key sets for
///   ID tokens and session cookies, and the discovery document of OpenID.
/// - `POST /token`: an access token for the assertion of a service key (RFC 7523).
/// - `GET`, `POST /hearth/v1/keys`, `DELETE /hearth/v1/keys/{name}`: the service keys.
/// - `POST /hearth/v1/keys:rotate`: creates new signing keys. Send `{"immediately": true}` if a key was leaked.
/// - `GET /hearth/v1/server`: the project, the mode and the URLs of the server.
/// - `POST /hearth/v1/tokens`: `{"uid": …, "claims": {…}}` → an ID token for tests.
///
/// The paths under `/hearth/` are for administrators.
package final class KeysHandler: API {
  package let authenticator: Authenticator
  private let accounts: AccountStore
  private let addresses: ServerAddresses
  /// The query with which the URL of the public keys names the project, or an empty text.
  private let projectQuery: String

  /// Creates a handler for the keys of accounts. `project` is the project of a server that serves several.
  package init(
    _ accounts: AccountStore, _ authenticator: Authenticator,
    addresses: ServerAddresses = ServerAddresses(publicURL: nil), project: String? = nil
  ) {
    self.accounts = accounts
    self.addresses = addresses
    projectQuery = project.map { "?project=\($0)" } ?? ""
    self.authenticator = authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<KeysHandler>] {
    [
      published("/robot/v1/metadata/x509/securetoken@system.gserviceaccount.com") {
        try $0.sendKeys(of: .idToken, $1) { $0.certificates(.idToken) }
      },
      published("/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com") {
        try $0.sendKeys(of: .idToken, $1) { $0.jsonWebKeySet(.idToken) }
      },
      published("/identitytoolkit/v3/relyingparty/publicKeys") {
        try $0.sendKeys(of: .sessionCookie, $1) { $0.certificates(.sessionCookie) }
      },
      published("/v1/sessionCookiePublicKeys") {
        try $0.sendKeys(of: .sessionCookie, $1) { $0.jsonWebKeySet(.sessionCookie) }
      },
      Route(
        [.get, .head],
        ["", "/{project}", "/{host}/{project}"].map { $0 + "/.well-known/openid-configuration" }, kind: .keys,
        access: .everyone
      ) { $0.sendDiscovery($1, $2.responder) },
      Route(.all, ["/token", "/oauth2.googleapis.com/token"], kind: .keys, access: .everyone) {
        $0.exchangeAssertion($1, $2.responder)
      },
      control(.get, "/keys") { handler, _, call in
        Self.sendNoStore(ServiceKeys.list(handler.accounts.serviceKeys.all), call.responder)
      },
      control(.post, "/keys") { try $0.createKey($1, $2) },
      control(.delete, "/keys/{name...}") { try $0.revokeKey($1, $2) },
      control(.post, "/keys:rotate") { try $0.rotateKeys($1, $2) },
      control(.post, "/tokens") { try $0.issueToken($1, $2) },
      control(.get, "/server") { handler, _, call in Self.sendNoStore(handler.description.json, call.responder) },
    ]
  }

  /// A list of public keys. Clients may add the host name of the service that usually has it.
  private static func published(
    _ path: String, _ send: @escaping @Sendable (KeysHandler, Responder) throws -> Void
  ) -> Route<KeysHandler> {
    Route([.get, .head], [path, "/{host}\(path)"], kind: .keys, access: .everyone) { handler, _, call in
      try send(handler, call.responder)
    }
  }

  private static func control(
    _ method: HTTPMethods, _ path: String, _ handle: @escaping Route<KeysHandler>.Handle
  ) -> Route<KeysHandler> {
    Route(method, ["/hearth/v1\(path)"], kind: .keys, access: .administrator, handle: handle)
  }

  /// Responds with an error.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    guard case RouteError.wrongMethod = error else { return responder.sendError(Status(error, database: nil)) }
    if request.target.dropping("/hearth/") != nil { return responder.sendText(404, "Not Found\n") }
    responder.sendText(405, "Method Not Allowed\n")
  }

  private func sendKeys(
    of purpose: SigningKeys.Purpose, _ responder: Responder, _ text: @escaping @Sendable (SigningKeys) -> [UInt8]
  ) throws {
    let keys = accounts.signingKeys
    // Verifiers cache the response, so create the first key before the first list is sent.
    guard !accounts.mode.acceptsUnsignedTokens, keys.published(purpose).isEmpty else {
      return Self.send(text(keys), responder)
    }
    responder.work {
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

  private func sendDiscovery(_ request: borrowing HTTPRequest, _ responder: Responder) {
    let origin = Self.origins(of: request).first ?? ""
    let path = "/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com"
    let document = MapValue([
      ("issuer", .string(accounts.project.issuer)), ("jwks_uri", .string(origin + path + projectQuery)),
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

  /// The project, the mode and the URLs of the server. A URL that is not known is missing.
  private var description: MapValue {
    var map = MapValue([
      ("project", .string(accounts.project.id)),
      ("mode", .string(accounts.mode.acceptsUnsignedTokens ? "emulator" : "production")),
    ])
    map["url"] = addresses.listeningURL.map(Value.string)
    map["publicUrl"] = addresses.publicURL.map(Value.string)
    map["keyUrl"] = addresses.keyURL.map(Value.string)
    return map
  }

  private func createKey(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let body = try Self.object(request.body)
    let (name, url) = (body.text("name") ?? "", body.text("url"))
    // The host of the admin socket leads nowhere.
    let own = addresses.publicURL ?? (request.isFromAdminSocket ? addresses.keyURL : Self.origins(of: request).first)
    guard let url = url ?? own else {
      throw Status(
        .invalidArgument,
        "The server does not know its public URL. Send {\"name\": …, \"url\": …}, or start it with --public-url.")
    }
    guard Self.isServerURL(url) else {
      throw Status(.invalidArgument, "\"url\" must be the URL of the server, such as https://db.example.com.")
    }
    let (accounts, client) = (accounts, request.clientAddress)
    Self.work(call.responder) { () throws(TokenError) in
      let file = try accounts.serviceKeys.create(name: name, url: url)
      accounts.audit(.keyCreated, from: client) { $0.key = name }
      return file
    }
  }

  /// The longest URL of a key, in bytes.
  private static let urlBytesMax = 2048

  /// Whether a text is an HTTP URL. Programs connect to it, and pages can show it as a link.
  private static func isServerURL(_ text: String) -> Bool {
    guard text.utf8.count <= urlBytesMax, let end = text.firstRange(of: "://") else { return false }
    return ["http", "https"].contains(text[..<end.lowerBound]) && end.upperBound < text.endIndex
      && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"\"'<>\\`".utf8.contains($0) }
  }

  private func revokeKey(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let name = String(decoding: call.part(0, of: request), as: UTF8.self)
    let (accounts, client) = (accounts, request.clientAddress)
    Self.work(call.responder) { () throws(TokenError) in
      guard try accounts.serviceKeys.revoke(name) else { return nil }
      accounts.audit(.keyRevoked, from: client) { $0.key = name }
      return MapValue().json
    }
  }

  private func rotateKeys(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let immediately = request.body.isEmpty ? false : try Self.object(request.body)["immediately"] == .boolean(true)
    let (accounts, client) = (accounts, request.clientAddress)
    Self.work(call.responder) { () throws(TokenError) in
      var ids: [Value] = []
      for purpose in SigningKeys.Purpose.allCases {
        ids.append(.string(try accounts.signingKeys.rotate(purpose, immediately: immediately).id))
      }
      accounts.audit(.keysRotated, from: client) { $0.reason = immediately ? "immediately" : nil }
      return MapValue([("keys", .array(ids))]).json
    }
  }

  private func issueToken(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let body = try Self.object(request.body)
    guard let user = SignedInUser(test: body, nowSeconds: accounts.nowSeconds) else {
      throw Status(.invalidArgument, "The body must be {\"uid\": …, \"claims\": {…}}.")
    }
    if let name = ReservedClaims.first(in: user.customClaims) {
      throw Status(.invalidArgument, "\"claims\" must not contain \"\(name)\", which the server sets.")
    }
    let (accounts, client) = (accounts, request.clientAddress)
    Self.work(call.responder) { () throws(TokenError) in
      let token = try accounts.mintIDToken(for: user)
      accounts.audit(.tokenIssued, from: client) { $0.uid = user.uid }
      return MapValue([("idToken", .string(token)), ("expiresIn", .string("\(AccountStore.idTokenSeconds)"))]).json
    }
  }

  /// Computes a response on another thread: creating a key takes a tenth of a second, and a write waits for a disk
  /// sync. Responds with 404 if the result is `nil`.
  private static func work(_ responder: Responder, _ body: @escaping @Sendable () throws(TokenError) -> [UInt8]?) {
    responder.work {
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

extension AccountStore {
  /// Logs an event that an administrator caused.
  fileprivate func audit(_ kind: AccountEvent.Kind, from client: String?, _ detail: (inout AccountEvent) -> Void) {
    var event = AccountEvent(kind, by: .admin, from: client)
    detail(&event)
    audit(event)
  }
}
