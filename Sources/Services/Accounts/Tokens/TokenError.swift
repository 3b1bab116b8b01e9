package import KeyValue

/// Why a token, or what is to be one, is not accepted.
package enum TokenError: Error, Equatable, Sendable {
  /// It is no JSON Web Token, or longer than one may be.
  case malformed
  /// It is not signed, where only signed ones count.
  case unsigned
  /// It is signed in another way than RS256.
  case algorithm
  /// No key that is known has its key id.
  case unknownKey
  /// The signature is not that of its text.
  case badSignature
  /// Its time is over.
  case expired
  /// It was issued, or somebody signed in, in the future.
  case usedTooEarly
  /// It is for another project.
  case wrongAudience
  /// It comes from somebody else.
  case wrongIssuer
  /// It names nobody, or somebody no id can name.
  case wrongSubject
  /// It is older than what its user did to end it: a new password, say.
  case revoked
  /// Its user may not sign in.
  case userDisabled
  /// Its user was deleted.
  case userDeleted
  /// A claim is missing, or not what it should be. The payload says which and how.
  case badClaim(String)
  /// A key cannot be made or used; the payload says which.
  case keyUnusable(String)
  /// The store failed.
  case storage(StorageError)
}

extension TokenError: CustomStringConvertible {
  /// What is wrong, without anything of the token in it.
  package var description: String {
    switch self {
    case .malformed: "the token is no JSON Web Token"
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
