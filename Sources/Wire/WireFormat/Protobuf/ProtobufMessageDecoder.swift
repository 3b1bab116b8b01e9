package import DocumentModel

/// Decodes messages of the API from protobuf bytes, to the same values as ``JSONMessageDecoder``.
///
/// One decoder serves many requests, one at a time; it keeps its buffers. Unknown fields are skipped, and so are known
/// ones of another wire type. Of a field that may come once the last one stands, and of a oneof the last member. The
/// bytes may be hostile: what is malformed or nests too deep throws ``WireError``.
package final class ProtobufMessageDecoder {
  var encoder = CanonicalEncoder()
  var names = DocumentNames()
  /// The edition of the database that the values are for.
  private(set) var edition = Edition.standard

  /// How deep messages that hold themselves may nest. Filters do; values have a bound of their own.
  static let nestingDepthMax = 50

  /// Creates a decoder.
  package init() {}

  /// Makes it ready for a request to a database of that edition.
  package func reset(_ edition: Edition) { self.edition = edition }

  // MARK: Scalars

  /// The payload of a string field.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` when it is no UTF-8.
  package static func text(_ field: ProtobufReader.Field) throws(WireError) -> UnsafeRawBufferPointer {
    guard UTF8Text.isValid(field.bytes) else { throw .malformedProtobuf("string field contains invalid UTF-8") }
    return field.bytes
  }

  /// The payload of a string field, as a string.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` when it is no UTF-8.
  package static func string(_ field: ProtobufReader.Field) throws(WireError) -> String {
    String(decoding: try text(field), as: UTF8.self)
  }

  /// A Timestamp message that must not be finer than microseconds: preconditions and read times.
  /// - Throws: ``WireError/model(_:)`` with ``ModelError/timestampNotAligned``, among others.
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

  /// A `google.firestore.v1.Document`. Its times are ignored, as the service does.
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

  /// Parses the full name of a document. Cost: little when it lies in the same database as the one before.
  /// - Throws: ``WireError/model(_:)`` with the documented text.
  package func documentName(_ name: UnsafeRawBufferPointer) throws(WireError) -> (DatabaseID, DocumentKey) {
    try names.parse(name)
  }

  /// A `google.firestore.v1.Value` as a tree.
  /// - Throws: ``WireError``, also for a value that breaks a rule that `purpose` asks for.
  package func value(
    _ message: UnsafeRawBufferPointer, _ purpose: CanonicalEncoder.Purpose
  ) throws(WireError) -> Value {
    encoder.reset(purpose, edition)
    try encoder.appendValue(fromClient: message)
    return try ValueCodec.decoded(encoder.bytes)
  }

  // MARK: Masks and preconditions

  /// A `google.firestore.v1.DocumentMask` of a read; `__name__` may be among its paths.
  package func documentMask(_ message: UnsafeRawBufferPointer) throws(WireError) -> FieldMask {
    FieldMask(try maskPaths(message))
  }

  /// A `google.firestore.v1.DocumentMask` of a write.
  /// - Throws: ``WireError/model(_:)`` with ``ModelError/reservedFieldName(_:)``, among others.
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

  /// A string field that holds a field path.
  static func fieldPath(_ field: ProtobufReader.Field) throws(WireError) -> FieldPath {
    let text = try string(field)
    do throws(ModelError) {
      return try FieldPath(text)
    } catch {
      throw .model(error)
    }
  }

  /// A `google.firestore.v1.Precondition`; without a member it is no condition.
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

  /// A `google.firestore.v1.TransactionOptions`.
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
