import DocumentStore
package import RulesEngine

/// The identity on whose behalf a request is made.
package enum Caller: Sendable {
  /// An administrator. Security rules do not apply. The check reports whether the key of the administrator's token was
  /// revoked; `nil` if the token belongs to no key.
  case administrator(revocationCheck: (any TokenRevocationCheck)?)
  /// A user, subject to security rules; `nil` if unauthenticated.
  case user(RulesAuth?)

  /// An administrator without a key: the owner of an emulator, or this process.
  package static let admin = Caller.administrator(revocationCheck: nil)
}

extension Caller {
  /// Whether the caller is an administrator.
  package var isAdmin: Bool { if case .administrator = self { true } else { false } }

  /// The reason why the caller's token is no longer valid although it has not expired, or `nil` if it is valid. Cost:
  /// that of ``RulesEngine/TokenRevocationCheck/revocationReason``.
  package var revocationReason: String? {
    switch self {
    case .administrator(let check): check?.revocationReason
    case .user(let auth): auth?.revocationCheck?.revocationReason
    }
  }

  /// Checks that the token with which a stream was opened is still valid: that it has not been revoked, and if it is a
  /// user's, that it has not expired. The streams of administrators outlive their short tokens, but not their keys.
  /// - Throws: `UNAUTHENTICATED` if it is not valid.
  func checkToken(_ clock: Clock) throws(Status) {
    if case .user(let auth?) = self, let expiry = auth.expiry, expiry <= clock.now() {
      throw Status(.unauthenticated, "The token of this stream has expired. Open another one with a fresh token.")
    }
    if let revocationReason {
      throw Status(.unauthenticated, "The token of this stream is no longer valid: \(revocationReason).")
    }
  }
}
