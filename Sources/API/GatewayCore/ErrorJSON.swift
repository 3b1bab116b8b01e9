package import DatabaseService
package import Transport
package import WireFormat

/// The JSON form of errors, and the HTTP statuses of their codes (firestore-api.md, section 1.4).
package enum ErrorJSON {
  /// Returns `{"error": {"code", "message", "status"}}`.
  package static func encode(_ status: Status, httpStatus: Int) -> [UInt8] {
    var json = JSONWriter(.pretty)
    append(status, httpStatus: httpStatus, to: &json)
    return json.finish()
  }

  /// Appends the object of ``encode(_:httpStatus:)``.
  package static func append(_ status: Status, httpStatus: Int, to json: inout JSONWriter) {
    json.beginObject()
    json.key("error")
    appendDetails(status, httpStatus: httpStatus, to: &json)
    json.endObject()
  }

  /// Appends the value of the member `error`.
  package static func appendDetails(_ status: Status, httpStatus: Int, to json: inout JSONWriter) {
    json.beginObject()
    json.key("code")
    json.number(httpStatus)
    json.key("message")
    json.string(status.message)
    json.key("status")
    json.string(name(status.code))
    json.endObject()
  }

  /// Returns the body of an error that the transport reports, in the form of the API's errors.
  package static func body(httpStatus: Int, message: String) -> [UInt8] {
    let code: Status.Code =
      switch httpStatus {
      case 413, 431, 429: .resourceExhausted
      case 408: .deadlineExceeded
      case 503: .unavailable
      case 501: .unimplemented
      case 500...: .internal
      default: .invalidArgument
      }
    return encode(Status(code, message), httpStatus: httpStatus)
  }

  /// The HTTP status of a code.
  package static func httpStatus(_ code: Status.Code) -> Int {
    switch code {
    case .cancelled: 499
    case .unknown, .internal, .dataLoss: 500
    case .invalidArgument, .failedPrecondition, .outOfRange: 400
    case .deadlineExceeded: 504
    case .notFound: 404
    case .alreadyExists, .aborted: 409
    case .permissionDenied: 403
    case .resourceExhausted: 429
    case .unimplemented: 501
    case .unavailable: 503
    case .unauthenticated: 401
    }
  }

  private static func name(_ code: Status.Code) -> String {
    switch code {
    case .cancelled: "CANCELLED"
    case .unknown: "UNKNOWN"
    case .invalidArgument: "INVALID_ARGUMENT"
    case .deadlineExceeded: "DEADLINE_EXCEEDED"
    case .notFound: "NOT_FOUND"
    case .alreadyExists: "ALREADY_EXISTS"
    case .permissionDenied: "PERMISSION_DENIED"
    case .resourceExhausted: "RESOURCE_EXHAUSTED"
    case .failedPrecondition: "FAILED_PRECONDITION"
    case .aborted: "ABORTED"
    case .outOfRange: "OUT_OF_RANGE"
    case .unimplemented: "UNIMPLEMENTED"
    case .internal: "INTERNAL"
    case .unavailable: "UNAVAILABLE"
    case .dataLoss: "DATA_LOSS"
    case .unauthenticated: "UNAUTHENTICATED"
    }
  }
}

extension Exchange {
  /// Logs a status if the server is at fault.
  package func logFailure(of status: Status) {
    guard let fault = status.fault else { return }
    logFailure(fault, status: ErrorJSON.httpStatus(status.code))
  }
}
