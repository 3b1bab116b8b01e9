package import DocumentModel

/// The error for bytes that cannot be decoded as a message of the API, from a client or from the store.
///
/// It is the only error type of this module. On the wire every case is an INVALID_ARGUMENT. ``description`` is the
/// text that clients receive (firestore-api.md, section 13); it quotes at most ``quotedBytesMax`` bytes of the
/// input.
package enum WireError: Error, Equatable, Sendable {
  /// The protobuf bytes are truncated, contain an invalid length or tag, or are nested too deeply. The text says
  /// what.
  case malformedProtobuf(String)
  /// The body is not valid JSON or does not have the expected structure. The text follows "Invalid JSON payload
  /// received.".
  case invalidJSON(String)
  /// An object has a member that its message does not have.
  case unknownField(name: String, path: String)
  /// A scalar does not fit its field. `type` is the name that clients see, such as `TYPE_INT64`.
  case invalidValue(path: String, type: String, text: String)
  /// Two members of a oneof are set.
  case oneofAlreadySet(path: String, oneof: String, member: String)
  /// A bytes field is not valid base64.
  case base64(path: String, text: String)
  /// The bytes are well formed but violate a rule of the data model.
  case model(ModelError)

  /// The maximum length of quoted input in a text, in bytes.
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
