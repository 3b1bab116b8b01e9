import Foundation

/// Why a call failed.
///
///     do {
///       try await hearth.document("users/ann").update(["visits": .increment(1)])
///     } catch let error as HearthClientError where error.code == .notFound {
///       …
///     }
public struct HearthClientError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of failure: those of Firestore, and one for a server that was not reached.
  public enum Code: String, Sendable, CaseIterable {
    /// Whoever asked went away.
    case cancelled = "CANCELLED"
    /// The server failed in a way it has no name for.
    case unknown = "UNKNOWN"
    /// The call can never succeed as it is.
    case invalidArgument = "INVALID_ARGUMENT"
    /// The server took too long.
    case deadlineExceeded = "DEADLINE_EXCEEDED"
    /// There is no such document, file or database.
    case notFound = "NOT_FOUND"
    /// There is such a document already.
    case alreadyExists = "ALREADY_EXISTS"
    /// The rules refuse it to whoever is signed in.
    case permissionDenied = "PERMISSION_DENIED"
    /// A limit is reached, of the server or of what one caller may ask.
    case resourceExhausted = "RESOURCE_EXHAUSTED"
    /// The state of the data does not allow it: a precondition did not hold.
    case failedPrecondition = "FAILED_PRECONDITION"
    /// A transaction met another one.
    case aborted = "ABORTED"
    /// What is asked for lies beyond what the server keeps.
    case outOfRange = "OUT_OF_RANGE"
    /// The server does not offer it.
    case unimplemented = "UNIMPLEMENTED"
    /// The server has a fault.
    case internalError = "INTERNAL"
    /// The server cannot answer now.
    case unavailable = "UNAVAILABLE"
    /// Stored data is damaged.
    case dataLoss = "DATA_LOSS"
    /// The token is none that the server takes.
    case unauthenticated = "UNAUTHENTICATED"
    /// The server was not reached, or the connection broke: whether the call took effect is not known.
    case network = "NETWORK"
  }

  /// The kind of failure.
  public var code: Code
  /// What is wrong, for people.
  public var message: String

  /// Makes an error.
  public init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// Whether the same call may succeed a little later. A write that was sent before a ``Code/network`` error may have
  /// happened all the same.
  public var isRetryable: Bool {
    switch code {
    case .aborted, .deadlineExceeded, .internalError, .network, .resourceExhausted, .unavailable: true
    default: false
    }
  }

  /// The word that calls of sign-in fail with, such as `EMAIL_EXISTS` or `INVALID_LOGIN_CREDENTIALS`; `nil` where the
  /// message does not begin with one.
  public var reason: String? {
    let word = message.prefix { $0 == "_" || ("A"..."Z").contains($0) || $0.isNumber }
    let rest = message[word.endIndex...]
    return word.count > 2 && (rest.isEmpty || rest.hasPrefix(" : ")) ? String(word) : nil
  }

  /// Code and message.
  public var description: String { "\(code.rawValue): \(message)" }
}

extension HearthClientError {
  /// The error of an answer: what its body says, or what its status means.
  init(status: Int, body: Data) {
    var error: JSON? = try? JSON(parsing: body)
    if case .array(let elements)? = error { error = elements.first }
    error = error?["error"]
    let text = error?["message"]?.text ?? String(decoding: body.prefix(200), as: UTF8.self)
    self.init(error?["status"]?.text.flatMap(Code.init) ?? Self.code(ofStatus: status), text)
  }

  /// The error of a status that comes within an answer, with a number as gRPC counts.
  init(grpcStatus status: JSON) {
    let number = status["code"]?.integer ?? 2
    let codes: [Code] = [
      .unknown, .cancelled, .unknown, .invalidArgument, .deadlineExceeded, .notFound, .alreadyExists, .permissionDenied,
      .resourceExhausted, .failedPrecondition, .aborted, .outOfRange, .unimplemented, .internalError, .unavailable,
      .dataLoss, .unauthenticated,
    ]
    self.init(codes.indices.contains(number) ? codes[number] : .unknown, status["message"]?.text ?? "")
  }

  /// An answer that is not what the API says.
  static func unreadable(_ what: String) -> HearthClientError {
    HearthClientError(.unknown, "The server's answer is not understood: \(what).")
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
