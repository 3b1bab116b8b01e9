package import DocumentModel

extension ProtobufMessageDecoder {
  /// Decodes a message. `message` contains what is known before the first field.
  ///
  /// - Throws: ``WireError`` with the documented text if the bytes are malformed or the message invalid.
  package func decode<M: DecodableMessage>(
    _ bytes: UnsafeRawBufferPointer, _ message: M
  ) throws(WireError) -> M.Decoded {
    var message = message
    var reader = ProtobufReader(bytes)
    while let next = try reader.next() {
      var field = ProtobufField(next, self)
      try message.decode(&field)
    }
    return try message.decoded()
  }
}

/// A field of a protobuf message.
package struct ProtobufField: MessageField {
  private let field: ProtobufReader.Field
  private let decoder: ProtobufMessageDecoder

  init(_ field: ProtobufReader.Field, _ decoder: ProtobufMessageDecoder) {
    self.field = field
    self.decoder = decoder
  }

  package func matches(_ number: Int, _ name: StaticString, _ type: ProtobufReader.WireType) -> Bool {
    field.number == number && field.wireType == type
  }

  package func ignore(_ name: StaticString) {}
  package func ignoreAll() {}
  package func claim(_ oneof: StaticString, isSet: Bool) throws(WireError) {}

  package func checkNesting(_ depth: Int) throws(WireError) {
    guard depth < ProtobufMessageDecoder.nestingDepthMax else {
      throw .malformedProtobuf("filter is nested too deeply")
    }
  }

  package func text() throws(WireError) -> UnsafeRawBufferPointer { try ProtobufMessageDecoder.text(field) }
  package func bytes() throws(WireError) -> [UInt8] { [UInt8](field.bytes) }
  package func bool() throws(WireError) -> Bool { field.bool }
  package func int32() throws(WireError) -> Int32 { field.int32 }
  package func int64() throws(WireError) -> Int64 { field.int64 }
  package func double() throws(WireError) -> Double { field.double }
  package func null() throws(WireError) {}
  package func enumeration(_ type: StaticString, _ names: [StaticString]) throws(WireError) -> Int { Int(field.int32) }
  package func int32Value() throws(WireError) -> Int32 { Int32(truncatingIfNeeded: try int64Value()) }

  package func int64Value() throws(WireError) -> Int64 {
    var number: Int64 = 0
    var reader = ProtobufReader(field.bytes)
    while let field = try reader.next() {
      if field.number == 1, field.wireType == .varint { number = field.int64 }
    }
    return number
  }

  package func doubleValue() throws(WireError) -> Double {
    var number = 0.0
    var reader = ProtobufReader(field.bytes)
    while let field = try reader.next() {
      if field.number == 1, field.wireType == .fixed64 { number = field.double }
    }
    return number
  }

  package func timestamp() throws(WireError) -> Timestamp { try EncodedValue.timestamp(field.bytes) }

  package func alignedTimestamp() throws(WireError) -> Timestamp {
    try ProtobufMessageDecoder.alignedTimestamp(field.bytes)
  }

  package func message<M: DecodableMessage>(_ message: M) throws(WireError) -> M.Decoded {
    try decoder.decode(field.bytes, message)
  }

  package func document() throws(WireError) -> DecodedDocument { try decoder.document(field.bytes) }

  package func value(_ purpose: CanonicalEncoder.Purpose) throws(WireError) -> Value {
    try decoder.value(field.bytes, purpose)
  }

  package func arrayValue(_ purpose: CanonicalEncoder.Purpose) throws(WireError) -> [Value] {
    try decoder.arrayValue(field.bytes, purpose)
  }

  package func documentName(
    _ name: UnsafeRawBufferPointer
  ) throws(WireError) -> (database: DatabaseID, key: DocumentKey) {
    try decoder.documentName(name)
  }

  package var database: DatabaseID? { decoder.names.database }

  package var addsElements: Bool { true }

  package func forEach(_ body: (ProtobufField) throws(WireError) -> Void) throws(WireError) { try body(self) }

  package func forEachEntry(_ body: (String, ProtobufField) throws(WireError) -> Void) throws(WireError) {
    var key = ""
    var value = ProtobufReader.Field(number: 2, wireType: .lengthDelimited, bits: 0, bytes: Self.empty)
    var entry = ProtobufReader(field.bytes)
    while let part = try entry.next() {
      switch (part.number, part.wireType) {
      case (1, .lengthDelimited): key = String(decoding: try ProtobufMessageDecoder.text(part), as: UTF8.self)
      case (2, .lengthDelimited): value = part
      default: break
      }
    }
    try body(key, ProtobufField(value, decoder))
  }

  private static var empty: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: nil, count: 0) }
}
