import Accounts
import DocumentModel
import WireFormat

/// A sign-in at another provider that has begun. The browser keeps it in a cookie while the user is at the provider, so
/// strangers' sign-ins need no memory of the server.
///
/// The random ID determines all secrets of the sign-in: `state`, `nonce` and the PKCE verifier are its codes for three
/// purposes. The seal proves that this server made the ticket.
package struct SignInTicket: Sendable, Equatable {
  /// A random text.
  package var id: String
  package var providerID: String
  /// The URL to which the provider returns the user.
  package var returnURL: String
  /// The time until which the provider must return the user, in seconds since 1970.
  package var expirySeconds: Int64
  /// The app that waits for the result, or `nil` for an app that opened the provider's page itself.
  package var app: WaitingApp?
}

/// The page of an app that waits for the result of a sign-in, as the web SDK describes it to the sign-in page.
package struct WaitingApp: Sendable, Equatable {
  package var apiKey: String
  package var appName: String
  /// The kind of the result, such as `signInViaPopup`.
  package var authType: String
  package var eventID: String?
  /// The URL of the page that opened the sign-in.
  package var pageURL: String

  package init(apiKey: String, appName: String, authType: String, eventID: String?, pageURL: String) {
    self.apiKey = apiKey
    self.appName = appName
    self.authType = authType
    self.eventID = eventID
    self.pageURL = pageURL
  }

  /// The kinds of results of the web SDK.
  package static let authTypes = ["signIn", "link", "reauth"].flatMap { ["\($0)ViaPopup", "\($0)ViaRedirect"] }

  /// Whether a pop-up shows the sign-in page. Otherwise the sign-in page replaces the page of the app.
  package var isPopup: Bool { authType.hasSuffix("Popup") }
}

/// The seals of tickets.
struct TicketSeal: Sendable {
  private let key = SealingKey()

  /// Returns a secret of a ticket: 43 characters.
  func secret(_ purpose: StaticString, of ticket: SignInTicket) -> String {
    String(decoding: Base64URL.encode(key.code(ticket.id.utf8, for: purpose)), as: UTF8.self)
  }

  /// Returns the `state` of a ticket.
  func state(of ticket: SignInTicket) -> String { secret("state", of: ticket) }

  /// Returns a ticket as text that only this server can make.
  func seal(_ ticket: SignInTicket) -> String {
    var fields: [(String, Value)] = [
      ("id", .string(ticket.id)), ("provider", .string(ticket.providerID)), ("return", .string(ticket.returnURL)),
      ("exp", .integer(ticket.expirySeconds)),
    ]
    if let app = ticket.app {
      fields += [
        ("key", .string(app.apiKey)), ("app", .string(app.appName)), ("type", .string(app.authType)),
        ("page", .string(app.pageURL)),
      ]
      if let event = app.eventID { fields.append(("event", .string(event))) }
    }
    let json = MapValue(fields).json
    return [json, key.code(json, for: "ticket")].map { String(decoding: Base64URL.encode($0), as: UTF8.self) }
      .joined(separator: ".")
  }

  /// Returns the ticket of a text, or `nil` if this server did not make it since it started, or it is too old.
  func open(_ text: String, nowSeconds: Int64) -> SignInTicket? {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { part in
      Array(part.utf8).withUnsafeBytes { Base64URL.decode($0) }
    }
    guard parts.count == 2, let json = parts[0], let code = parts[1],
      SealingKey.areEqual(key.code(json, for: "ticket"), code), let fields = MapValue(json: json),
      let id = fields.text("id"), let provider = fields.text("provider"), let returnURL = fields.text("return"),
      let expiry = fields.integer("exp"), expiry > nowSeconds
    else { return nil }
    var ticket = SignInTicket(id: id, providerID: provider, returnURL: returnURL, expirySeconds: expiry)
    if let apiKey = fields.text("key"), let name = fields.text("app"), let type = fields.text("type"),
      let page = fields.text("page")
    {
      ticket.app = WaitingApp(
        apiKey: apiKey, appName: name, authType: type, eventID: fields.text("event"), pageURL: page)
    }
    return ticket
  }
}
