import Foundation

/// The error of a failed request.
///
///     do {
///       try await hearth.document("users/ann").update(["visits": .increment(1)])
///     } catch let error as HearthClientError where error.code == .notFound {
///       …
///     }
public struct HearthClientError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of errors: those of Firestore, and ``network`` if the server could not be reached.
  public enum Code: String, Sendable, CaseIterable {
    /// The client cancelled the request.
    case cancelled = "CANCELLED"
    /// The server failed for an unknown reason, or its response is malformed.
    case unknown = "UNKNOWN"
    /// The request is invalid and will never succeed.
    case invalidArgument = "INVALID_ARGUMENT"
    /// The server took too long.
    case deadlineExceeded = "DEADLINE_EXCEEDED"
    /// The document, file or database does not exist.
    case notFound = "NOT_FOUND"
    /// The document already exists.
    case alreadyExists = "ALREADY_EXISTS"
    /// The security rules deny the request to this caller.
    case permissionDenied = "PERMISSION_DENIED"
    /// The request exceeds a limit of the server or a quota of the caller.
    case resourceExhausted = "RESOURCE_EXHAUSTED"
    /// The state of the data does not allow the request, for example because a precondition failed.
    case failedPrecondition = "FAILED_PRECONDITION"
    /// The transaction conflicted with another one.
    case aborted = "ABORTED"
    /// The request asks for data beyond what the server keeps.
    case outOfRange = "OUT_OF_RANGE"
    /// The server does not support the request.
    case unimplemented = "UNIMPLEMENTED"
    /// The server has an internal error.
    case internalError = "INTERNAL"
    /// The server cannot process requests now.
    case unavailable = "UNAVAILABLE"
    /// Stored data is damaged.
    case dataLoss = "DATA_LOSS"
    /// The server does not accept the token, or no user is signed in.
    case unauthenticated = "UNAUTHENTICATED"
    /// The server was not reached or the connection broke. The request may or may not have taken effect.
    case network = "NETWORK"
  }

  /// The kind of failure.
  public var code: Code
  /// A description of the error.
  public var message: String

  /// An error with a code and a message.
  public init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// Whether the same request may succeed later. After a ``Code/network`` error, a write may have taken effect.
  public var isRetryable: Bool {
    switch code {
    case .aborted, .deadlineExceeded, .internalError, .network, .resourceExhausted, .unavailable: true
    default: false
    }
  }

  /// The code and the message.
  public var description: String { "\(code.rawValue): \(message)" }
}

extension HearthClientError {
  /// The error of a response: the error in its body, otherwise the meaning of its status.
  init(status: Int, body: Data) {
    var error: JSON? = try? JSON(parsing: body)
    if case .array(let elements)? = error { error = elements.first }
    error = error?["error"]
    let text = error?["message"]?.text ?? String(decoding: body.prefix(200), as: UTF8.self)
    self.init(error?["status"]?.text.flatMap(Code.init) ?? Self.code(ofStatus: status), text)
  }

  /// The error of a status message with a gRPC code number.
  init(grpcStatus status: JSON) {
    let number = status["code"]?.integer ?? 2
    let codes: [Code] = [
      .unknown, .cancelled, .unknown, .invalidArgument, .deadlineExceeded, .notFound, .alreadyExists, .permissionDenied,
      .resourceExhausted, .failedPrecondition, .aborted, .outOfRange, .unimplemented, .internalError, .unavailable,
      .dataLoss, .unauthenticated,
    ]
    self.init(codes.indices.contains(number) ? codes[number] : .unknown, status["message"]?.text ?? "")
  }

  /// Returns the error for a malformed response. `problem` describes what is wrong with it.
  static func unreadable(_ problem: String) -> HearthClientError {
    HearthClientError(.unknown, "Unexpected response from the server: \(problem).")
  }

  private static func code(ofStatus status: Int) -> Code {
    switch status {
    case 401: .unauthenticated
    case 403: .permissionDenied
    case 404: .notFound
    case 408: .deadlineExceeded
    case 409: .aborted
    case 412: .failedPrecondition
    case 429: .resourceExhausted
    case 501: .unimplemented
    case 502, 503: .unavailable
    case 504: .deadlineExceeded
    case 400..<500: .invalidArgument
    default: .internalError
    }
  }
}
