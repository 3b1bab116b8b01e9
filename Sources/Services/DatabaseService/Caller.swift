import DocumentStore
package import RulesEngine

/// Who calls.
package enum Caller: Sendable {
  /// An administrator, whom no rules concern.
  case admin
  /// Somebody whom the rules judge: signed in, or not (`nil`).
  case user(RulesAuth?)
}

extension Caller {
  /// Checks that the token that a stream was opened with still counts: that it is not over, and that nothing has ended it
  /// early.
  /// - Throws: `UNAUTHENTICATED`.
  func checkToken(_ clock: Clock) throws(Status) {
    guard case .user(let auth?) = self else { return }
    if let expiry = auth.expiry, expiry <= clock.now() {
      throw Status(.unauthenticated, "The token of this stream has expired. Open another one with a fresh token.")
    }
    if let revocationReason = auth.revocationCheck?.revocationReason {
      throw Status(.unauthenticated, "The token of this stream counts no more: \(revocationReason).")
    }
  }
}
