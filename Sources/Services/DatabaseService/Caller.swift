import DocumentStore
package import RulesEngine

/// The identity on whose behalf a request is made.
package enum Caller: Sendable {
  /// An administrator. Security rules do not apply.
  case admin
  /// A user, subject to security rules; `nil` if unauthenticated.
  case user(RulesAuth?)
}

extension Caller {
  /// Checks that the token with which a stream was opened is still valid: that it has not expired and has not been
  /// revoked.
  /// - Throws: `UNAUTHENTICATED` if it is not valid.
  func checkToken(_ clock: Clock) throws(Status) {
    guard case .user(let auth?) = self else { return }
    if let expiry = auth.expiry, expiry <= clock.now() {
      throw Status(.unauthenticated, "The token of this stream has expired. Open another one with a fresh token.")
    }
    if let revocationReason = auth.revocationCheck?.revocationReason {
      throw Status(.unauthenticated, "The token of this stream is no longer valid: \(revocationReason).")
    }
  }
}
