public import Foundation

/// A signed-in user, as the ID token describes them.
public struct User: Sendable, Hashable {
  /// The user ID. It stays the same if an anonymous user becomes a permanent one.
  public let uid: String
  /// The email address, or `nil` if the account has none.
  public let email: String?
  /// Whether the user is anonymous (a guest), and so cannot sign in again after signing out.
  public let isAnonymous: Bool
  /// The IDs of the providers whose identities are linked, such as `google.com`, sorted.
  public let identityProviders: [String]
  /// All claims of the ID token, including custom ones, as rules read them in `request.auth.token`.
  public let claims: [String: Value]
}

/// The tokens that keep a user signed in. Store them securely, and pass them to ``Authentication/restore(_:)`` later.
public struct Session: Sendable, Hashable, Codable {
  /// Proves the user's identity to the server, and to other services that trust it.
  public var idToken: String
  /// Gets new ID tokens until the password changes or the account is disabled.
  public var refreshToken: String
  /// The expiry of the ID token.
  public var expiresAt: Date

  /// A session from the tokens of another sign-in.
  public init(idToken: String, refreshToken: String, expiresAt: Date) {
    self.idToken = idToken
    self.refreshToken = refreshToken
    self.expiresAt = expiresAt
  }

  /// The user of the session, or `nil` if the ID token cannot be decoded.
  public var user: User? {
    let parts = idToken.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    var text = String(parts[1].map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 })
    text += String(repeating: "=", count: (4 - text.count % 4) % 4)
    guard let data = Data(base64Encoded: text), let json = try? JSON(parsing: data),
      case .map(let claims) = Value(claim: json), case .string(let uid)? = claims["sub"]
    else { return nil }
    var email: String?
    if case .string(let text)? = claims["email"] { email = text }
    let firebase = json["firebase"]
    let identities = firebase?["identities"]?.members.map(\.name) ?? []
    return User(
      uid: uid, email: email, isAnonymous: firebase?["sign_in_provider"]?.text == "anonymous",
      identityProviders: identities.filter { $0 != "email" && $0 != "phone" }.sorted(), claims: claims)
  }
}

extension Value {
  /// The value of a JSON claim. A number is an integer if it is written as one.
  fileprivate init(claim json: JSON) {
    switch json {
    case .null: self = .null
    case .boolean(let flag): self = .boolean(flag)
    case .number(let text): self = Int(text).map { .integer($0) } ?? .double(Double(text) ?? .nan)
    case .string(let text): self = .string(text)
    case .array(let elements): self = .array(elements.map { Value(claim: $0) })
    case .object(let members):
      self = .map(Dictionary(members.map { ($0.name, Value(claim: $0.value)) }) { _, later in later })
    }
  }
}
