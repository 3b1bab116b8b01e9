package import KeyValue

/// A reason why a token is rejected or cannot be issued.
package enum TokenError: Error, Equatable, Sendable {
  /// The text is not a JSON Web Token, or is too long.
  case malformed
  /// The token is unsigned, and only signed tokens are accepted.
  case unsigned
  /// The token is signed with an algorithm other than RS256.
  case algorithm
  /// No known key has the token's key ID.
  case unknownKey
  /// The signature does not match the text.
  case badSignature
  /// The token has expired.
  case expired
  /// The time of issue or of the sign-in is in the future.
  case usedTooEarly
  /// The token is for another project.
  case wrongAudience
  /// The token has another issuer.
  case wrongIssuer
  /// The token has no subject, or one that is not a valid user ID.
  case wrongSubject
  /// The token was issued before its user's tokens were revoked, for example by a new password.
  case revoked
  /// The user is disabled.
  case userDisabled
  /// The user was deleted.
  case userDeleted
  /// A claim is missing or not valid. The payload names the claim and the problem.
  case badClaim(String)
  /// A key cannot be created or used. The payload contains the reason.
  case keyUnusable(String)
  case storage(StorageError)
}

extension TokenError: CustomStringConvertible {
  /// The reason, without any content of the token.
  package var description: String {
    switch self {
    case .malformed: "the token is not a JSON Web Token"
    case .unsigned: "the token is not signed"
    case .algorithm: "the token is not signed with RS256"
    case .unknownKey: "the token is signed with an unknown key"
    case .badSignature: "the token's signature is wrong"
    case .expired: "the token is expired"
    case .usedTooEarly: "the token is from the future; check the clocks"
    case .wrongAudience: "the token is for another project"
    case .wrongIssuer: "the token is from another issuer"
    case .wrongSubject: "the token names no user"
    case .revoked: "the token is revoked"
    case .userDisabled: "the token's user is disabled"
    case .userDeleted: "the token's user is deleted"
    case .badClaim(let what): "the token's \(what)"
    case .keyUnusable(let what): what
    case .storage(let error): error.description
    }
  }
}
