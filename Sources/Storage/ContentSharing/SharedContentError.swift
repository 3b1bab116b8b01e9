/// A failure of shared content. The texts are for operators.
package enum SharedContentError: Error, Equatable, Sendable {
  /// The place does not answer, or answers with a temporary failure.
  case unavailable(String)
  /// The place refuses the request, for example because of wrong credentials. Trying again does not help.
  case refused(String)
  /// The place has no room.
  case full(String)
  /// The content is larger than the place accepts. The payload is the limit in bytes.
  case tooLarge(bytesMax: Int)
  /// A copy is incomplete or does not match its digest.
  case damaged(String)
  /// The place is not the one in which the content of these files lies.
  case otherPlace(String)
  /// The local file cannot be read or written. `code` is the `errno`.
  case local(operation: String, path: String, code: Int32)
}

extension SharedContentError: CustomStringConvertible {
  /// A text for operators.
  package var description: String {
    switch self {
    case .unavailable(let text), .refused(let text), .full(let text), .damaged(let text), .otherPlace(let text): text
    case .tooLarge(let bytesMax): "the shared content accepts files of at most \(bytesMax) bytes"
    case .local(let operation, let path, let code): "\(operation) \(path) failed (errno \(code))"
    }
  }
}
