import Accounts

extension AccountsService {
  /// Logs a sign-in at another provider that did not succeed.
  package func noteFailure(_ failure: SignInFailure, providerID: String?, address: String?) {
    audit(.signInFailed, by: AccountsCaller(.user, address: address), method: providerID.map(Self.loggable)) { event in
      event.reason = failure.detail ?? failure.text
    }
  }

  /// Returns the ID of a provider for the log. It is the client's text, and logs must stay readable.
  static func loggable(_ providerID: String) -> String {
    String(
      decoding: providerID.utf8.prefix(128).map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
  }
}

/// A sign-in at another provider that did not succeed. The page of the sign-in shows it, or the app receives it.
package struct SignInFailure: Error, Sendable {
  /// The error code of the web SDK, such as `auth/user-cancelled`.
  package var code: String
  /// The reason, for the user.
  package var text: String
  /// The reason, for the log. It contains no token, code or secret.
  package var detail: String?

  /// Creates a failure. `text` is for the user, and `detail` for the log.
  package init(_ code: Code, _ text: String, detail: String? = nil) {
    self.code = code.rawValue
    self.text = text
    self.detail = detail
  }

  /// The error codes of the web SDK that sign-in pages use.
  package enum Code: String, Sendable {
    case argumentError = "auth/argument-error"
    case internalError = "auth/internal-error"
    case invalidCredential = "auth/invalid-credential"
    case networkRequestFailed = "auth/network-request-failed"
    case operationNotAllowed = "auth/operation-not-allowed"
    case timeout = "auth/timeout"
    case tooManyRequests = "auth/too-many-requests"
    case unauthorizedDomain = "auth/unauthorized-domain"
    case userCancelled = "auth/user-cancelled"
  }
}
