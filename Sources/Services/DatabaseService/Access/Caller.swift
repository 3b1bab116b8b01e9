package import Callers
import DocumentStore
import RulesEngine

/// The identity on whose behalf a request is made.
package typealias Caller = Callers.Caller

extension Caller {
  /// A caller without credentials.
  package static let unauthenticated = Caller.user(nil)

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

  /// The ID of the service key that makes the caller an administrator, or `nil` if none does.
  package var keyID: String? { if case .administrator(let check) = self { check?.keyID } else { nil } }

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
