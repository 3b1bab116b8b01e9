import DatabaseService
import DocumentModel
import GatewayCore
import WireFormat

// Parameters of Firestore's methods (firestore-api.md, section 1.2).
extension QueryParameters {
  /// A bytes parameter in either base64 alphabet, or `nil` if it is missing.
  ///
  /// - Throws: ``WireError`` if the value is not base64.
  func bytes(_ name: StaticString) throws -> [UInt8]? {
    guard let text = value(name) else { return nil }
    guard let bytes = Base64.decode(text) else { throw WireError.base64(path: name.description, text: text) }
    return bytes
  }

  /// A page token, which is empty if the parameter is missing or empty.
  ///
  /// - Throws: ``ModelError`` if the value is not base64.
  func pageToken(_ name: StaticString) throws -> [UInt8] {
    guard let bytes = Base64.decode(value(name) ?? "") else { throw ModelError.invalidPageToken }
    return bytes
  }

  /// A time in RFC 3339, or `nil` if it is missing.
  ///
  /// - Throws: `INVALID_ARGUMENT` if the value is malformed, ``ModelError`` if it is not in whole microseconds.
  func timestamp(_ name: StaticString) throws -> Timestamp? {
    guard let text = value(name) else { return nil }
    var rest = 0
    guard let time = Timestamp(rfc3339: text.utf8, nanosRemainder: &rest) else {
      throw Self.invalid(name, "type.googleapis.com/google.protobuf.Timestamp", text)
    }
    guard rest == 0 else { throw ModelError.timestampNotAligned }
    return time
  }

  /// A field mask, or `nil` if the parameter is missing.
  func mask(_ name: StaticString) throws -> FieldMask? {
    let paths = values(name)
    guard !paths.isEmpty else { return nil }
    return FieldMask(try paths.map { try FieldPath($0) })
  }

  /// The precondition `currentDocument.…`.
  func precondition() throws -> Precondition {
    let exists = try boolean("currentDocument.exists")
    let updateTime = try timestamp("currentDocument.updateTime")
    switch (exists, updateTime) {
    case (nil, nil): return .none
    case (let exists?, nil): return .exists(exists)
    case (nil, let time?): return .updateTime(time)
    case (_?, _?):
      throw Status(
        .invalidArgument,
        "Invalid value at 'current_document' (oneof), oneof field 'condition_type' is already set. "
          + "Cannot set 'updateTime'")
    }
  }

  /// The state to read: in `transaction`, at `readTime`, or the latest.
  func consistency() throws -> ConsistencySelector {
    let transaction = try bytes("transaction")
    let readTime = try timestamp("readTime")
    switch (transaction, readTime) {
    case (nil, nil): return .latest
    case (let id?, nil): return .transaction(TransactionID(bytes: id))
    case (nil, let time?): return .readTime(time)
    case (_?, _?):
      throw Status(
        .invalidArgument,
        "Invalid value (oneof), oneof field 'consistency_selector' is already set. Cannot set 'readTime'")
    }
  }
}
