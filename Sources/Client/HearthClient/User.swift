public import Foundation

/// Somebody who is signed in, as the server vouches for in the ID token.
public struct User: Sendable, Hashable {
  /// The id, which stays also when a guest becomes a member.
  public let uid: String
  /// The e-mail address.
  public let email: String?
  /// Whether this is a guest, without any way to sign in again.
  public let isAnonymous: Bool
  /// All that the ID token says, custom claims among it, as rules see it in `request.auth.token`.
  public let claims: [String: Value]
}

/// What keeps somebody signed in. Store it where secrets are kept, and give it to ``Authentication/restore(_:)`` later.
public struct Session: Sendable, Hashable, Codable {
  /// Says who asks, to the server and to others who trust it.
  public var idToken: String
  /// Gets new ID tokens until the password changes, or the account is disabled.
  public var refreshToken: String
  /// When the ID token is none any more.
  public var expiresAt: Date

  /// Makes a session of what another sign-in gave.
  public init(idToken: String, refreshToken: String, expiresAt: Date) {
    self.idToken = idToken
    self.refreshToken = refreshToken
    self.expiresAt = expiresAt
  }

  /// Who is signed in; `nil` where the token cannot be read.
  public var user: User? {
    let parts = idToken.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3 else { return nil }
    var text = String(parts[1]).replacing("-", with: "+").replacing("_", with: "/")
    text += String(repeating: "=", count: (4 - text.count % 4) % 4)
    guard let data = Data(base64Encoded: text), let json = try? JSON(parsing: data),
      case .map(let claims) = Value(claim: json), case .string(let uid)? = claims["sub"]
    else { return nil }
    var email: String?
    if case .string(let text)? = claims["email"] { email = text }
    return User(
      uid: uid, email: email, isAnonymous: json["firebase"]?["sign_in_provider"]?.text == "anonymous", claims: claims)
  }
}

extension Value {
  /// Plain JSON as a value: a number is an integer where it is written as one.
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
