import Accounts
import DocumentModel
package import GatewayCore
package import IdentityService
package import Transport
import WireFormat

/// Serves the pages that the web SDK opens for `signInWithPopup` and `signInWithRedirect`: the sign-in page, and the
/// hidden frame that gives its result to the SDK.
///
/// In emulator mode the sign-in page lets a developer choose an account. In production it leads to the page of the
/// provider, which returns the user to the same URL. The SDK opens the paths below `/emulator` if the app has called
/// `connectAuthEmulator`, and those below `/__` otherwise.
package final class SignInPages: API {
  package let authenticator: Authenticator
  private let service: AccountsService
  private let usesTLS: Bool

  /// The path to which providers return users.
  private static let returnPath = "/__/auth/handler"

  /// Creates the pages for the accounts of a service.
  /// - Parameter usesTLS: whether browsers reach the server by `https` without a proxy.
  package init(_ service: AccountsService, _ authenticator: Authenticator, usesTLS: Bool) {
    self.service = service
    self.authenticator = authenticator
    self.usesTLS = usesTLS
  }

  /// The requests that the pages handle.
  package static var routes: [Route<SignInPages>] {
    [
      Route(.get, [returnPath, "/emulator/auth/handler"], kind: .accounts, access: .everyone) {
        pages, request, routed in
        try pages.open(request, routed.responder)
      },
      Route(.post, [returnPath], kind: .accounts, access: .everyone) { pages, request, routed in
        try pages.receiveForm(request, routed.responder)
      },
      Route(.get, ["/__/auth/iframe", "/emulator/auth/iframe"], kind: .accounts, access: .everyone) {
        pages, request, routed in
        try pages.openFrame(request, routed.responder)
      },
      Route(.get, ["/__/auth/gapi.js"], kind: .accounts, access: .everyone) { _, _, routed in
        Self.sendLoader(routed.responder)
      },
    ]
  }

  /// Responds with an error page.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    if case RouteError.wrongMethod = error { return responder.sendText(404, "Not Found\n") }
    let failure =
      error as? SignInFailure
      ?? SignInFailure(.argumentError, "The address of this page is not complete. Go back to the app and try again.")
    Self.send(.failure(failure), status: 400, responder)
  }

  // MARK: The sign-in page

  /// Opens the sign-in page for an app, or continues a sign-in for which a provider returns the user.
  private func open(_ request: borrowing HTTPRequest, _ responder: Responder) throws {
    let parameters = try QueryParameters(request.target.pathAndQuery.query)
    let own = try ownURL(request)
    if let state = try single("state", parameters), parameters.value("apiKey") == nil {
      return try finish(state, parameters, request, own, responder)
    }
    let app = try waitingApp(parameters, own: own)
    guard let providerID = try single("providerId", parameters), !providerID.isEmpty else {
      throw SignInFailure(.argumentError, "The app does not name a provider.")
    }
    guard service.accounts.mode == .production else { return try choose(app, providerID, request, responder) }
    try begin(app, providerID, parameters, own, request.clientAddress, responder)
  }

  /// Returns the app that the query describes.
  private func waitingApp(_ parameters: QueryParameters, own: String) throws -> WaitingApp {
    guard let apiKey = try single("apiKey", parameters), let name = try single("appName", parameters),
      let type = try single("authType", parameters), WaitingApp.authTypes.contains(type)
    else { throw SignInFailure(.argumentError, "This page is for apps that sign users in. It has no use on its own.") }
    let url = parameters.value("redirectUrl") ?? ""
    guard service.maySignIn(page: url, own: own) else {
      throw SignInFailure(
        .unauthorizedDomain,
        "The page \(url.prefix(200)) may not sign users in here. Add its domain to the authorized "
          + "domains of the server.")
    }
    return WaitingApp(
      apiKey: apiKey, appName: name, authType: type, eventID: try single("eventId", parameters), pageURL: url)
  }

  /// Responds with the page on which a developer chooses an account.
  private func choose(
    _ app: WaitingApp, _ providerID: String, _ request: borrowing HTTPRequest, _ responder: Responder
  ) throws {
    // The page lists accounts, so only pages of this machine may show it.
    guard !request.isFromForeignPage(hostName: authenticator.hostName) else {
      throw SignInFailure(
        .unauthorizedDomain, "Open the emulator under localhost, a numeric address, or the name in --host.")
    }
    try submit(.short, responder) { service in
      .page(.chooser(app, providerID: providerID, accounts: try service.providerAccounts(providerID)))
    }
  }

  // MARK: Providers

  /// Sends the browser to the page of a provider.
  private func begin(
    _ app: WaitingApp, _ providerID: String, _ parameters: QueryParameters, _ own: String, _ address: String?,
    _ responder: Responder
  ) throws {
    let scopes = (parameters.value("scopes") ?? "").split { $0 == "," || $0 == " " }.prefix(50).map(String.init)
    let custom = Self.customParameters(parameters.value("customParameters") ?? "")
    let returnURL = own + Self.returnPath
    let isSecure = own.hasPrefix("https://")
    try submit(.provider, responder) { service in
      do throws(SignInFailure) {
        let flow = service.providerSignIn
        let start = try flow.begin(providerID, returnURL: returnURL, app: app, scopes: scopes, parameters: custom)
        let name = flow.cookieName(of: start.ticket)
        return .redirect(
          start.url, cookie: Cookie(name, start.sealed, seconds: ProviderLimits.ticketSeconds, isSecure: isSecure))
      } catch {
        service.noteFailure(error, providerID: providerID, address: address)
        return .result(.result(app, pageURL: returnURL, .failure(error)), cookie: nil)
      }
    }
  }

  /// Returns the parameters for the provider's page that an app passes as a JSON object of texts.
  private static func customParameters(_ text: String) -> [(name: String, value: String)] {
    let members = (try? JSONTree(parsing: Array(text.utf8)))?.members ?? []
    return members.prefix(20).compactMap { member in
      guard let value = member.value.text, member.name.utf8.count + value.utf8.count <= ProviderLimits.parameterBytesMax
      else { return nil }
      return (member.name, value)
    }
  }

  /// Finishes a sign-in with the code that a provider returns, and gives its result to the app.
  private func finish(
    _ state: String, _ parameters: QueryParameters, _ request: borrowing HTTPRequest, _ own: String,
    _ responder: Responder
  ) throws {
    let back = ProviderSignIn.Return(
      state: state, code: try single("code", parameters, bytesMax: ProviderLimits.tokenBytesMax),
      error: try single("error", parameters), issuer: try single("iss", parameters))
    let isSecure = own.hasPrefix("https://")
    let name = ProviderSignIn.cookieName(state: state)
    let address = request.clientAddress
    let ticket: SignInTicket
    do throws(SignInFailure) {
      ticket = try service.providerSignIn.ticket(Cookie.value(name, isSecure: isSecure, request), for: back)
    } catch {
      service.noteFailure(error, providerID: nil, address: address)
      throw error
    }
    guard let app = ticket.app else { throw SignInFailure(.argumentError, "This sign-in belongs to another page.") }
    let expired = Cookie(name, "", seconds: 0, isSecure: isSecure)
    try submit(.provider, responder) { service in
      do throws(SignInFailure) {
        let identity = try service.finishReturn(back, from: address) { () throws(SignInFailure) in
          try service.providerSignIn.finish(ticket, back)
        }
        return .result(
          .result(app, pageURL: ticket.returnURL, .success((ticket.providerID, identity))), cookie: expired)
      } catch {
        service.noteFailure(error, providerID: ticket.providerID, address: address)
        return .result(.result(app, pageURL: ticket.returnURL, .failure(error)), cookie: expired)
      }
    }
  }

  /// Receives the form of a provider that does not return users by a URL (OAuth 2.0 Form Post Response Mode). Browsers
  /// send no cookie with a form of another site, so the response redirects the browser to the URL.
  private func receiveForm(_ request: borrowing HTTPRequest, _ responder: Responder) throws {
    guard request.body.count <= 2 * ProviderLimits.tokenBytesMax, service.accounts.mode == .production else {
      throw SignInFailure(.argumentError, "This form is not part of a sign-in.")
    }
    let form = try QueryParameters(request.body)
    let fields = try ["state", "code", "error", "iss"].compactMap { name -> (name: String, value: String)? in
      let values = form.all.filter { $0.name == name }
      guard values.count <= 1 else { throw SignInFailure(.argumentError, "The form contains a field twice.") }
      return values.first.map { (name, $0.value) }
    }
    responder.exchange.respond(
      status: 303,
      headers: { headers in
        headers.add("Location", "\(Self.returnPath)?\(FormText.text(fields))")
        headers.add("Cache-Control", "no-store")
        headers.add("Referrer-Policy", "no-referrer")
      }, body: { _ in })
  }

  // MARK: The frame

  /// Responds with the hidden frame. Only pages of authorized domains may contain it, because it receives the result.
  private func openFrame(_ request: borrowing HTTPRequest, _ responder: Responder) throws {
    let parameters = try QueryParameters(request.target.pathAndQuery.query)
    guard let apiKey = try single("apiKey", parameters), let name = try single("appName", parameters) else {
      throw SignInFailure(.argumentError, "This page is a part of apps that sign users in. It has no use on its own.")
    }
    let usesOwnLoader = parameters.value("loader") == "own"
    let nonce = RandomBytes.text(16)
    var html = Array(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Sign-in</title></head>\n".utf8)
    html += Array("<body>\n".utf8)
    html += SignInPage.dataBlock { json in
      json.text("apiKey", apiKey)
      json.text("appName", name)
      json.boolean("usesOwnLoader", usesOwnLoader)
    }
    html += Array("<script nonce=\"\(nonce)\">\n\(PageScripts.frame)\n</script>\n</body>\n</html>\n".utf8)
    let scripts = usesOwnLoader ? "'nonce-\(nonce)'" : "'nonce-\(nonce)' https://apis.google.com"
    let policy =
      "default-src 'none'; script-src \(scripts); base-uri 'none'; form-action 'none'; "
      + "frame-ancestors \(frameAncestors)"
    Self.send(html, status: 200, policy: policy, cookie: nil, responder)
  }

  /// The pages that may contain the frame, for the policy of the browser.
  private var frameAncestors: String {
    guard service.accounts.mode == .production else { return "*" }
    let local = ["localhost", "*.localhost", "127.0.0.1"].flatMap { ["http://\($0):*", "https://\($0):*"] }
    let plain = service.options.publicURL.map { $0.hasPrefix("http://") } ?? !usesTLS
    let others = service.authorizedDomains.filter { $0 != "localhost" }.flatMap { domain in
      (plain ? ["https", "http"] : ["https"]).flatMap { scheme in
        // An address has no subdomains.
        domain.hasPrefix("[") || domain.utf8.allSatisfy { $0 == UInt8(ascii: ".") || (0x30...0x39).contains($0) }
          ? ["\(scheme)://\(domain):*"] : ["\(scheme)://\(domain):*", "\(scheme)://*.\(domain):*"]
      }
    }
    return (["'self'"] + local + others).joined(separator: " ")
  }

  /// Responds with the loader for the pages of apps.
  private static func sendLoader(_ responder: Responder) {
    responder.exchange.respond(
      status: 200,
      headers: { headers in
        headers.add("Content-Type", "text/javascript; charset=utf-8")
        headers.add("X-Content-Type-Options", "nosniff")
        headers.add("Cache-Control", "public, max-age=3600")
        headers.add("Cross-Origin-Resource-Policy", "cross-origin")
      }, body: { $0.append(contentsOf: PageScripts.loader.utf8) })
  }

  // MARK: Requests

  /// Returns the URL of this server as the browser sees it.
  private func ownURL(_ request: borrowing HTTPRequest) throws -> String {
    let host = request.header("host").map { String(decoding: $0, as: UTF8.self) } ?? ""
    let isForwardedTLS = request.header("x-forwarded-proto")?.starts(with: "https".utf8) ?? false
    guard let url = service.ownURL(host: host, isSecure: usesTLS || isForwardedTLS) else {
      throw SignInFailure(
        .unauthorizedDomain,
        "This server does not know the name in the address of this page. Start it with --public-url, "
          + "or add the name to its authorized domains.")
    }
    return url
  }

  /// Returns a parameter that a URL may contain once.
  private func single(
    _ name: StaticString, _ parameters: QueryParameters, bytesMax: Int = ProviderLimits.parameterBytesMax
  ) throws -> String? {
    let values = parameters.values(name)
    guard values.count <= 1, (values.first?.utf8.count ?? 0) <= bytesMax else {
      throw SignInFailure(.argumentError, "The address of this page contains \(name) twice, or it is too long.")
    }
    return values.first
  }

  // MARK: Responses

  /// The response to a request that waits.
  private enum Outcome: Sendable {
    case page(SignInPage)
    case result(SignInPage, cookie: Cookie?)
    case redirect(String, cookie: Cookie)
  }

  private static let busy = SignInFailure(.tooManyRequests, "The server is busy with other sign-ins. Try again soon.")

  /// Runs work on one of the service's queues, and responds with its outcome.
  private func submit(
    _ workload: AccountsService.Workload, _ responder: Responder,
    _ work: @escaping @Sendable (AccountsService) throws -> Outcome
  ) throws {
    let service = service
    let isTaken = service.submit(workload) {
      let outcome = Result { try work(service) }
      responder.onLoop { Self.send(outcome, responder) }
    }
    guard isTaken else { throw Self.busy }
  }

  private static func send(_ outcome: Result<Outcome, any Error>, _ responder: Responder) {
    switch outcome {
    case .success(.page(let page)): send(page.html, status: 200, policy: page.policy, cookie: nil, responder)
    case .success(.result(let page, let cookie)):
      send(page.html, status: 200, policy: page.policy, cookie: cookie, responder)
    case .success(.redirect(let url, let cookie)):
      responder.exchange.respond(
        status: 303,
        headers: { headers in
          headers.add("Location", url)
          headers.add("Set-Cookie", cookie.header)
          headers.add("Cache-Control", "no-store")
          headers.add("Referrer-Policy", "no-referrer")
        }, body: { _ in })
    case .failure(let error):
      responder.exchange.logFailure("\(error)")
      send(.failure(SignInFailure(.internalError, "The server cannot read its accounts.")), status: 500, responder)
    }
  }

  private static func send(_ page: SignInPage, status: Int, _ responder: Responder) {
    send(page.html, status: status, policy: page.policy, cookie: nil, responder)
  }

  /// Responds with a page. It has no CORS headers: a script of another page must not read it.
  private static func send(
    _ html: [UInt8], status: Int, policy: String, cookie: Cookie?, _ responder: Responder
  ) {
    responder.exchange.respond(
      status: status,
      headers: { headers in
        headers.add("Content-Type", "text/html; charset=utf-8")
        headers.add("Content-Security-Policy", policy)
        headers.add("X-Content-Type-Options", "nosniff")
        headers.add("Referrer-Policy", "no-referrer")
        headers.add("Cache-Control", "no-store")
        if let cookie { headers.add("Set-Cookie", cookie.header) }
      },
      // A page with a name of an identity must not be compressed together with text that a stranger chose.
      compressible: false,
      body: { $0.append(contentsOf: html) })
  }
}
