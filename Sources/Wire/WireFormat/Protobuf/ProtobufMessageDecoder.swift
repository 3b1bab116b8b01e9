package import DocumentModel

/// A decoder of the API's protobuf messages, with the same results as ``JSONMessageDecoder``.
///
/// One decoder serves many requests, one at a time, and keeps its buffers. It skips unknown fields, and known
/// fields with another wire type. If a field that is not repeated occurs several times, the last one is used, and
/// so is the last member of a oneof. The bytes are untrusted: malformed or deeply nested input throws
/// ``WireError``.
package final class ProtobufMessageDecoder: MessageDecoder {
  /// The bytes of a message.
  package typealias Encoded = UnsafeRawBufferPointer

  var encoder = CanonicalEncoder()
  var names = DocumentNames()
  /// The edition of the database that the values are for.
  private(set) var edition = Edition.standard

  /// The maximum depth of filters inside filters. Values have a limit of their own.
  static let nestingDepthMax = 50

  /// Creates a decoder.
  package init() {}

  /// Prepares for a request to a database of this edition.
  package func reset(_ edition: Edition, in database: DatabaseID? = nil) {
    self.edition = edition
    self.database = database
  }

  /// The database of the request, to which its documents must belong. `nil` outside requests.
  package var database: DatabaseID? {
    get { names.database }
    set { names.database = newValue }
  }

  // MARK: Scalars

  /// Returns the payload of a string field.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if it is not valid UTF-8.
  package static func text(_ field: ProtobufReader.Field) throws(WireError) -> UnsafeRawBufferPointer {
    guard UTF8Text.isValid(field.bytes) else { throw .malformedProtobuf("string field contains invalid UTF-8") }
    return field.bytes
  }

  /// Returns the last string field with a number, or an empty string if the message has none.
  ///
  /// The edition of the database determines how a request is decoded. Requests contain the database in field 1, but
  /// clients need not send that field first.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the message is malformed or the string is not valid UTF-8.
  package static func text(
    _ number: Int, of message: UnsafeRawBufferPointer
  ) throws(WireError) -> UnsafeRawBufferPointer {
    var found = UnsafeRawBufferPointer(start: nil, count: 0)
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == number, field.wireType == .lengthDelimited { found = try text(field) }
    }
    return found
  }

  /// Returns the last message field with a number, or an empty message if it is missing.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the message is malformed.
  package static func message(
    _ number: Int, of message: UnsafeRawBufferPointer
  ) throws(WireError) -> UnsafeRawBufferPointer {
    var found = UnsafeRawBufferPointer(start: nil, count: 0)
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == number, field.wireType == .lengthDelimited { found = field.bytes }
    }
    return found
  }

  /// Decodes a Timestamp message that must have whole microseconds, as in preconditions and read times.
  /// - Throws: ``WireError/model(_:)`` with ``ModelError/timestampNotAligned`` if it is finer, or another
  ///   ``WireError`` if the message is malformed or out of range.
  package static func alignedTimestamp(_ message: UnsafeRawBufferPointer) throws(WireError) -> Timestamp {
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == 2, field.wireType == .varint, !field.int32.isMultiple(of: 1000) {
        throw .model(.timestampNotAligned)
      }
    }
    return try EncodedValue.timestamp(message)
  }

  // MARK: Documents and values

  /// Decodes a `google.firestore.v1.Document`. Its times are ignored, as in the service.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule for values.
  package func document(_ message: UnsafeRawBufferPointer) throws(WireError) -> DecodedDocument {
    var name: [UInt8] = []
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == 1, field.wireType == .lengthDelimited { name = [UInt8](try Self.text(field)) }
    }
    encoder.reset(.stored, edition)
    try encoder.appendFields(fromClient: message)
    return DecodedDocument(
      name: name, fields: EncodedFields(canonical: encoder.bytes.withUnsafeBytes { [UInt8]($0) }))
  }

  /// Parses the full name of a document. Cost: low if the name has the same database as the previous one.
  /// - Throws: ``WireError/model(_:)`` with the documented text if the name is invalid.
  package func documentName(_ name: UnsafeRawBufferPointer) throws(WireError) -> (DatabaseID, DocumentKey) {
    try names.parse(name)
  }

  /// Decodes a `google.firestore.v1.Value` to a tree.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule that applies to `purpose`.
  package func value(
    _ message: UnsafeRawBufferPointer, _ purpose: CanonicalEncoder.Purpose
  ) throws(WireError) -> Value {
    encoder.reset(purpose, edition)
    try encoder.appendValue(fromClient: message)
    return try ValueCodec.decoded(encoder.bytes)
  }

  /// Decodes the elements of a `google.firestore.v1.ArrayValue` to trees.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule that applies to `purpose`.
  package func arrayValue(
    _ message: UnsafeRawBufferPointer, _ purpose: CanonicalEncoder.Purpose
  ) throws(WireError) -> [Value] {
    encoder.reset(purpose, edition)
    try encoder.appendArray(fromClient: message)
    guard case .array(let elements) = try ValueCodec.decoded(encoder.bytes) else { return [] }
    return elements
  }
}
