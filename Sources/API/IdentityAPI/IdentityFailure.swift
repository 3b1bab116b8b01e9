import Accounts
import Basics
import DatabaseService
import GatewayCore
import WireFormat

/// The response of the Identity Toolkit API for an error (auth-api.md, section 5).
struct IdentityFailure {
  let httpStatus: Int
  /// Whether the server caused the error, so that its log needs the details.
  let isFault: Bool
  private let message: String
  private let reason: StaticString
  private let status: StaticString?
  private let needsLogin: Bool

  init(_ error: any Error) {
    var needsLogin = false
    switch error {
    case let error as QuotaError:
      (httpStatus, reason, status) = (429, "quotaExceeded", "RESOURCE_EXHAUSTED")
      message = AccountError(.quotaExceeded, error.message).message
    case let error as AccountError:
      switch error.code {
      case .permissionDenied:
        (httpStatus, reason, status) = (403, "forbidden", "PERMISSION_DENIED")
        message = error.detail ?? "The caller does not have permission."
      case .unauthenticated:
        (httpStatus, reason, status) = (401, error.detail == nil ? "required" : "authError", "UNAUTHENTICATED")
        message =
          error.detail
          ?? "Request is missing required authentication credential. Expected OAuth 2 access token, login cookie or "
          + "other valid authentication credential."
        needsLogin = error.detail == nil
      case .notFound:
        (httpStatus, reason, status) = (404, "notFound", "NOT_FOUND")
        message = error.detail ?? "Not Found"
      case .notImplemented:
        (httpStatus, reason, status) = (501, "unimplemented", "NOT_IMPLEMENTED")
        message = error.detail ?? "Not implemented."
      case .internalError:
        (httpStatus, reason, status) = (500, "internalError", "INTERNAL")
        message = error.message
      case .invalidArgument:
        (httpStatus, reason, status) = (400, "invalid", "INVALID_ARGUMENT")
        message = error.detail ?? error.message
      default:
        (httpStatus, reason, status) = (400, "invalid", nil)
        message = error.message
      }
    case let error as WireError:
      (httpStatus, reason, status) = (400, "parseError", "INVALID_ARGUMENT")
      message = error.description
    case let error as Status where error.code == .invalidArgument:
      (httpStatus, reason, status) = (400, "invalid", "INVALID_ARGUMENT")
      message = error.message
    default:
      // A storage error contains server paths. A status has a text for clients.
      let failure = (error as? TokenError).map { Status($0) } ?? Status(error, database: nil)
      if failure.code == .resourceExhausted {
        // The disk or the data file is full. Clients read the code before the colon.
        (httpStatus, reason, status) = (429, "quotaExceeded", "RESOURCE_EXHAUSTED")
        message = AccountError(.quotaExceeded, failure.message).message
      } else if failure.code == .unavailable {
        // Another node of the cluster owns the accounts, and nothing happened here.
        (httpStatus, reason, status) = (503, "backendError", "UNAVAILABLE")
        message = "The service is currently unavailable. Try again."
      } else {
        (httpStatus, reason, status) = (500, "internalError", "INTERNAL")
        message = "INTERNAL_ERROR"
      }
    }
    self.needsLogin = needsLogin
    isFault = !(error is QuotaError) && (httpStatus == 500 || httpStatus == 429)
  }

  /// The response body.
  var json: [UInt8] {
    var json = JSONWriter(.pretty)
    json.object { json in
      json.object("error") { json in
        json.number("code", httpStatus)
        json.text("message", message)
        json.array("errors", [needsLogin ? "Login Required." : message]) { message, json in
          json.object { json in
            json.text("message", message)
            json.text("domain", "global")
            json.text("reason", reason.description)
            guard needsLogin else { return }
            json.text("location", "Authorization")
            json.text("locationType", "header")
          }
        }
        if let status { json.text("status", status.description) }
      }
    }
    return json.bytes
  }
}
