package import DocumentModel

/// The conversion between values and `google.firestore.v1.Value` messages.
package enum ValueCodec {
  /// The maximum nesting that is decoded. It is far above the limit for documents and far below what the stack
  /// allows.
  static let decodingDepthMax = 100

  /// Appends the content of a Value message in canonical form.
  ///
  /// It checks none of the rules of firestore-api.md, section 7.5. For an untrusted tree, encode it and pass the
  /// bytes to ``EncodedFields/canonical(fromClient:)``. Cost: linear, no allocation except the growth of `out`.
  package static func append(_ value: Value, to out: inout [UInt8]) {
    switch value {
    case .null: ProtobufWriter.int64(EncodedValue.Member.null, 0, to: &out)
    case .boolean(let flag): ProtobufWriter.bool(EncodedValue.Member.boolean, flag, to: &out)
    case .integer(let number): ProtobufWriter.int64(EncodedValue.Member.integer, number, to: &out)
    case .double(let number):
      ProtobufWriter.double(EncodedValue.Member.double, number.isNaN ? .nan : number, to: &out)
    case .timestamp(let moment): ProtobufWriter.timestamp(EncodedValue.Member.timestamp, moment, to: &out)
    case .string(let text): ProtobufWriter.string(EncodedValue.Member.string, text, to: &out)
    case .bytes(let bytes): ProtobufWriter.bytes(EncodedValue.Member.bytes, bytes, to: &out)
    case .reference(let name): ProtobufWriter.string(EncodedValue.Member.reference, name, to: &out)
    case .geoPoint(let point): ProtobufWriter.geoPoint(EncodedValue.Member.geoPoint, point, to: &out)
    case .array(let elements):
      let start = ProtobufWriter.beginMessage(EncodedValue.Member.array, to: &out)
      for element in elements {
        let elementStart = ProtobufWriter.beginMessage(1, to: &out)
        append(element, to: &out)
        ProtobufWriter.endMessage(elementStart, in: &out)
      }
      ProtobufWriter.endMessage(start, in: &out)
    case .map(let map):
      let start = ProtobufWriter.beginMessage(EncodedValue.Member.map, to: &out)
      append(map, tag: EncodedMap.mapValueTag, to: &out)
      ProtobufWriter.endMessage(start, in: &out)
    }
  }

  /// Appends the entries of a map, each preceded by `tag`.
  static func append(_ map: MapValue, tag: UInt8, to out: inout [UInt8]) {
    for (key, value) in map.entries {
      out.append(tag)
      out.append(0)
      let start = out.count
      ProtobufWriter.string(1, key, to: &out)
      let valueStart = ProtobufWriter.beginMessage(2, to: &out)
      append(value, to: &out)
      ProtobufWriter.endMessage(valueStart, in: &out)
      ProtobufWriter.endMessage(start, in: &out)
    }
  }

  /// Decodes a canonical Value message to a tree.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not canonical or are nested too deeply.
  package static func decode(_ value: EncodedValue) throws(WireError) -> Value {
    try decode(value, depth: 0)
  }

  /// Decodes canonical map entries to a tree.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are not canonical or are nested too deeply.
  package static func decode(_ map: EncodedMap) throws(WireError) -> MapValue {
    try decode(map, depth: 0)
  }

  /// Decodes a Value message from a client and checks every rule that applies to `purpose`.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule for values.
  package static func decode(
    fromClient bytes: UnsafeRawBufferPointer, _ purpose: CanonicalEncoder.Purpose
  ) throws(WireError) -> Value {
    var encoder = CanonicalEncoder(purpose)
    try encoder.appendValue(fromClient: bytes)
    return try decoded(encoder.bytes)
  }

  /// Decodes the canonical Value message in `bytes`.
  static func decoded(_ bytes: [UInt8]) throws(WireError) -> Value {
    try bytes.withRawBytes { (buffer) throws(WireError) in try decode(EncodedValue(buffer)) }
  }

  private static func decode(_ value: EncodedValue, depth: Int) throws(WireError) -> Value {
    switch try value.content {
    case .null: return .null
    case .boolean(let flag): return .boolean(flag)
    case .integer(let number): return .integer(number)
    case .double(let number): return .double(number)
    case .timestamp(let moment): return .timestamp(moment)
    case .string(let text): return .string(String(decoding: text, as: UTF8.self))
    case .bytes(let bytes): return .bytes([UInt8](bytes))
    case .reference(let name): return .reference(String(decoding: name, as: UTF8.self))
    case .geoPoint(let point): return .geoPoint(point)
    case .array(let array):
      guard depth < decodingDepthMax else { throw .malformedProtobuf("value is nested too deeply") }
      var elements: [Value] = []
      var iterator = array.makeIterator()
      while let element = try iterator.next() { elements.append(try decode(element, depth: depth + 1)) }
      return .array(elements)
    case .map(let map):
      return .map(try decode(map, depth: depth + 1))
    }
  }

  private static func decode(_ map: EncodedMap, depth: Int) throws(WireError) -> MapValue {
    guard depth < decodingDepthMax else { throw .malformedProtobuf("value is nested too deeply") }
    var result = MapValue()
    var iterator = map.makeIterator()
    while let entry = try iterator.next() {
      result[String(decoding: entry.key, as: UTF8.self)] = try decode(entry.value, depth: depth)
    }
    return result
  }
}

extension EncodedFields {
  /// Encodes a map as the fields of a document without checking it, like ``ValueCodec/append(_:to:)``.
  package init(_ map: MapValue) {
    var bytes: [UInt8] = []
    ValueCodec.append(map, tag: EncodedMap.documentTag, to: &bytes)
    self.init(canonical: bytes)
  }

  /// Encodes and checks a Document message from a client, or only the `fields` entries of one.
  ///
  /// Members of the message other than `fields` are skipped.
  /// - Throws: ``WireError`` if the message is malformed or violates a rule for values.
  package static func canonical(
    fromClient bytes: UnsafeRawBufferPointer, in edition: Edition = .standard
  ) throws(WireError) -> EncodedFields {
    var encoder = CanonicalEncoder(.stored, edition)
    try encoder.appendFields(fromClient: bytes)
    return EncodedFields(canonical: encoder.bytes)
  }

  /// Calls `body` with a view of the fields, which is valid during the call.
  /// - Throws: The error that `body` throws.
  package func withMap<R, E: Error>(_ body: (EncodedMap) throws(E) -> R) throws(E) -> R {
    try bytes.withRawBytes { (buffer) throws(E) in try body(EncodedMap(documentFields: buffer)) }
  }

  /// Decodes the fields to a tree.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the bytes are damaged.
  package func decoded() throws(WireError) -> MapValue {
    try withMap { (map) throws(WireError) in try ValueCodec.decode(map) }
  }
}

extension Array where Element == UInt8 {
  /// Calls `body` with the bytes.
  /// - Throws: The error that `body` throws, with its type.
  @inlinable
  package func withRawBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
    try withUnsafeBufferPointer { (buffer) throws(E) in try body(UnsafeRawBufferPointer(buffer)) }
  }
}
