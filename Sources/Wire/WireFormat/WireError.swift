package import DocumentModel

/// Why bytes from a client, or stored bytes, could not be read as a message of the API.
///
/// The one error type of this layer. Every case is INVALID_ARGUMENT on the wire; ``description`` is the text that
/// clients see (firestore-api.md, section 13). Texts quote at most ``quotedBytesMax`` bytes of the input.
package enum WireError: Error, Equatable, Sendable {
  /// The protobuf bytes are cut short, have an impossible length or tag, or nest too deep. Says what was being read.
  case malformedProtobuf(String)
  /// The body is no JSON, or not of the expected shape; the text goes behind "Invalid JSON payload received.".
  case invalidJSON(String)
  /// An object has a member that its message does not have.
  case unknownField(name: String, path: String)
  /// A scalar does not fit its field. `type` is the wire's name for the type, such as `TYPE_INT64`.
  case invalidValue(path: String, type: String, text: String)
  /// Two members of one oneof are set.
  case oneofAlreadySet(path: String, oneof: String, member: String)
  /// A bytes field is no base64.
  case base64(path: String, text: String)
  /// The bytes are well formed but break a rule of the data model.
  case model(ModelError)

  /// The longest piece of the input that a text repeats, in bytes.
  package static let quotedBytesMax = 200
}

extension WireError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .malformedProtobuf(let reading):
      "Request message is malformed: \(reading)."
    case .invalidJSON(let reason):
      "Invalid JSON payload received. \(reason)"
    case .unknownField(let name, let path):
      path.isEmpty
        ? "Invalid JSON payload received. Unknown name \"\(name)\": Cannot find field."
        : "Invalid JSON payload received. Unknown name \"\(name)\" at '\(path)': Cannot find field."
    case .invalidValue(let path, let type, let text):
      "Invalid value at '\(path)' (\(type)), \(text)"
    case .oneofAlreadySet(let path, let oneof, let member):
      "Invalid value at '\(path)' (oneof), oneof field '\(oneof)' is already set. Cannot set '\(member)'"
    case .base64(let path, let text):
      "Invalid value at '\(path)' (TYPE_BYTES), Base64 decoding failed for \"\(text)\""
    case .model(let error):
      error.description
    }
  }
}
