package import DocumentModel

/// A decoder of the API's protobuf messages, with the same results as ``JSONMessageDecoder``.
///
/// One decoder serves many requests, one at a time, and keeps its buffers. It skips unknown fields, and known
/// fields with another wire type. If a field that is not repeated occurs several times, the last one is used, and
/// so is the last member of a oneof. The bytes are untrusted: malformed or deeply nested input throws
/// ``WireError``.
package final class ProtobufMessageDecoder {
  var encoder = CanonicalEncoder()
  var names = DocumentNames()
  /// The edition of the database that the values are for.
  private(set) var edition = Edition.standard

  /// The maximum depth of filters inside filters. Values have a limit of their own.
  static let nestingDepthMax = 50

  /// Creates a decoder.
  package init() {}

  /// Prepares for a request to a database of this edition.
  package func reset(_ edition: Edition) { self.edition = edition }

  // MARK: Scalars

  /// Returns the payload of a string field.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if it is not valid UTF-8.
  package static func text(_ field: ProtobufReader.Field) throws(WireError) -> UnsafeRawBufferPointer {
    guard UTF8Text.isValid(field.bytes) else { throw .malformedProtobuf("string field contains invalid UTF-8") }
    return field.bytes
  }

  /// Returns the payload of a string field as a `String`.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if it is not valid UTF-8.
  package static func string(_ field: ProtobufReader.Field) throws(WireError) -> String {
    String(decoding: try text(field), as: UTF8.self)
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

  // MARK: Masks and preconditions

  /// Decodes a `google.firestore.v1.DocumentMask` of a read, which may contain `__name__`.
  /// - Throws: ``WireError`` if the message is malformed or a path is invalid.
  package func documentMask(_ message: UnsafeRawBufferPointer) throws(WireError) -> FieldMask {
    FieldMask(try maskPaths(message))
  }

  /// Decodes a `google.firestore.v1.DocumentMask` of a write.
  /// - Throws: ``WireError/model(_:)`` with ``ModelError/reservedFieldName(_:)`` if a path contains a reserved
  ///   name, or another ``WireError`` if the message is malformed or a path is invalid.
  package func writableMask(_ message: UnsafeRawBufferPointer) throws(WireError) -> FieldMask {
    let paths = try maskPaths(message)
    for path in paths { try WriteMembers.checkWritable(path) }
    return FieldMask(paths)
  }

  private func maskPaths(_ message: UnsafeRawBufferPointer) throws(WireError) -> [FieldPath] {
    var paths: [FieldPath] = []
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == 1, field.wireType == .lengthDelimited { paths.append(try Self.fieldPath(field)) }
    }
    return paths
  }

  /// Decodes a string field that is a field path.
  static func fieldPath(_ field: ProtobufReader.Field) throws(WireError) -> FieldPath {
    let text = try string(field)
    do throws(ModelError) {
      return try FieldPath(text)
    } catch {
      throw .model(error)
    }
  }

  /// Decodes a `google.firestore.v1.Precondition`. Without a member it is ``Precondition/none``.
  /// - Throws: ``WireError`` if the message is malformed or a time is finer than microseconds.
  package func precondition(_ message: UnsafeRawBufferPointer) throws(WireError) -> Precondition {
    var precondition = Precondition.none
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .varint): precondition = .exists(field.bool)
      case (2, .lengthDelimited): precondition = .updateTime(try Self.alignedTimestamp(field.bytes))
      default: break
      }
    }
    return precondition
  }

  /// Decodes a `google.firestore.v1.TransactionOptions`.
  /// - Throws: ``WireError`` if the message is malformed.
  package func transactionOptions(_ message: UnsafeRawBufferPointer) throws(WireError) -> TransactionOptions {
    var options = TransactionOptions(mode: nil)
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (2, .lengthDelimited):
        var time: Timestamp?
        var inner = ProtobufReader(field.bytes)
        while let field = try inner.next() {
          if field.number == 2, field.wireType == .lengthDelimited { time = try Self.alignedTimestamp(field.bytes) }
        }
        options.mode = .readOnly(readTime: time)
      case (3, .lengthDelimited):
        var retried: [UInt8] = []
        var inner = ProtobufReader(field.bytes)
        while let field = try inner.next() {
          if field.number == 1, field.wireType == .lengthDelimited { retried = [UInt8](field.bytes) }
        }
        options.mode = .readWrite(retryTransaction: retried)
      default: break
      }
    }
    return options
  }
}
