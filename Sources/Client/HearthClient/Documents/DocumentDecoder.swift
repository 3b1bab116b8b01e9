import Foundation

/// Decodes `Decodable` types from values of documents; the counterpart of ``DocumentEncoder``.
///
/// A number can be decoded as any type that represents it exactly, and an integer always as `Double`.
struct DocumentDecoder {
  /// The document, for ``DocumentID`` properties.
  let reference: DocumentReference?

  /// Decodes a type.
  /// - Throws: `DecodingError`, whose coding path begins with the path of the document.
  func decode<T: Decodable>(_ type: T.Type, from value: Value) throws -> T {
    if type == [String: Value].self, case .map(let fields) = value, let fields = fields as? T { return fields }
    return try decode(type, value, reference.map { [NameKey(stringValue: $0.path)] } ?? [])
  }

  fileprivate func decode<T: Decodable>(_ type: T.Type, _ value: Value, _ path: [any CodingKey]) throws -> T {
    let special: Any?
    switch type {
    case is Value.Type: special = value
    case is Date.Type:
      if case .timestamp(let timestamp) = value { special = timestamp.date } else { throw mismatch(type, value, path) }
    case is Timestamp.Type:
      if case .timestamp(let timestamp) = value { special = timestamp } else { throw mismatch(type, value, path) }
    case is Data.Type:
      if case .bytes(let data) = value { special = data } else { throw mismatch(type, value, path) }
    case is URL.Type:
      guard case .string(let text) = value, let url = URL(string: text) else { throw mismatch(type, value, path) }
      special = url
    case is GeoPoint.Type:
      if case .geoPoint(let point) = value { special = point } else { throw mismatch(type, value, path) }
    case is VectorValue.Type:
      if case .vector(let vector) = value { special = vector } else { throw mismatch(type, value, path) }
    case is DocumentReference.Type:
      if case .reference(let reference) = value { special = reference } else { throw mismatch(type, value, path) }
    case is ServerTimestamp.Type:
      special = ServerTimestamp(wrappedValue: try decode(Date?.self, value, path))
    default: special = nil
    }
    if let special, let found = special as? T { return found }
    return try T(from: NodeDecoder(value: value, codingPath: path, decoder: self))
  }

  fileprivate func mismatch(_ type: Any.Type, _ value: Value, _ path: [any CodingKey]) -> DecodingError {
    .typeMismatch(type, .init(codingPath: path, debugDescription: "Expected \(type), found \(value.kind)."))
  }
}

extension Value {
  /// The type of the value, for error messages.
  fileprivate var kind: String {
    switch self {
    case .null: "null"
    case .boolean: "a boolean"
    case .integer: "an integer"
    case .double: "a double"
    case .timestamp: "a timestamp"
    case .string: "a string"
    case .bytes: "bytes"
    case .reference: "a reference"
    case .geoPoint: "a geo point"
    case .vector: "a vector"
    case .array: "an array"
    case .map: "a map"
    }
  }
}

/// A name or an index in a coding path.
private struct NameKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(stringValue: String) { (self.stringValue, intValue) = (stringValue, Int(stringValue)) }
  init(intValue: Int) { (stringValue, self.intValue) = (String(intValue), intValue) }
}

private struct NodeDecoder: Decoder {
  let value: Value
  let codingPath: [any CodingKey]
  let decoder: DocumentDecoder
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .map(let fields) = value else { throw decoder.mismatch([String: Value].self, value, codingPath) }
    return KeyedDecodingContainer(KeyedNodeDecoder(fields: fields, codingPath: codingPath, decoder: decoder))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard case .array(let elements) = value else { throw decoder.mismatch([Value].self, value, codingPath) }
    return UnkeyedNodeDecoder(elements: elements, codingPath: codingPath, decoder: decoder)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer {
    SingleNodeDecoder(value: value, codingPath: codingPath, decoder: decoder)
  }
}

private struct SingleNodeDecoder: SingleValueDecodingContainer {
  let value: Value
  let codingPath: [any CodingKey]
  let decoder: DocumentDecoder

  func decodeNil() -> Bool { value == .null }

  func decode(_ type: Bool.Type) throws -> Bool {
    if case .boolean(let flag) = value { return flag }
    throw decoder.mismatch(type, value, codingPath)
  }

  func decode(_ type: String.Type) throws -> String {
    if case .string(let text) = value { return text }
    throw decoder.mismatch(type, value, codingPath)
  }

  func decode(_ type: Double.Type) throws -> Double {
    switch value {
    case .double(let number): return number
    case .integer(let number): return Double(number)
    default: throw decoder.mismatch(type, value, codingPath)
    }
  }

  func decode(_ type: Float.Type) throws -> Float { Float(try decode(Double.self)) }
  func decode(_ type: Int.Type) throws -> Int { try integer() }
  func decode(_ type: Int8.Type) throws -> Int8 { try integer() }
  func decode(_ type: Int16.Type) throws -> Int16 { try integer() }
  func decode(_ type: Int32.Type) throws -> Int32 { try integer() }
  func decode(_ type: Int64.Type) throws -> Int64 { try integer() }
  func decode(_ type: UInt.Type) throws -> UInt { try integer() }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try integer() }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try integer() }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try integer() }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try integer() }
  func decode<T: Decodable>(_ type: T.Type) throws -> T { try decoder.decode(type, value, codingPath) }

  private func integer<T: FixedWidthInteger>() throws -> T {
    switch value {
    case .integer(let number): if let exact = T(exactly: number) { return exact }
    case .double(let number): if let exact = T(exactly: number) { return exact }
    default: break
    }
    throw decoder.mismatch(T.self, value, codingPath)
  }
}

private struct KeyedNodeDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let fields: [String: Value]
  let codingPath: [any CodingKey]
  let decoder: DocumentDecoder

  var allKeys: [Key] { fields.keys.compactMap(Key.init(stringValue:)) }
  func contains(_ key: Key) -> Bool { fields[key.stringValue] != nil }
  func decodeNil(forKey key: Key) throws -> Bool { try value(key) == .null }

  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
    if type == DocumentID.self, let id = DocumentID(wrappedValue: decoder.reference?.id) as? T { return id }
    if type == ServerTimestamp.self, !contains(key), let none = ServerTimestamp(wrappedValue: nil) as? T { return none }
    return try decoder.decode(type, value(key), codingPath + [key])
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> { try nested(key).container(keyedBy: type) }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try nested(key).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder {
    NodeDecoder(value: fields["super"] ?? .null, codingPath: codingPath, decoder: decoder)
  }

  func superDecoder(forKey key: Key) throws -> any Decoder { try nested(key) }

  private func nested(_ key: Key) throws -> NodeDecoder {
    NodeDecoder(value: try value(key), codingPath: codingPath + [key], decoder: decoder)
  }

  private func value(_ key: Key) throws -> Value {
    if let value = fields[key.stringValue] { return value }
    throw DecodingError.keyNotFound(
      key, .init(codingPath: codingPath, debugDescription: "The field \"\(key.stringValue)\" does not exist."))
  }
}

private struct UnkeyedNodeDecoder: UnkeyedDecodingContainer {
  let elements: [Value]
  let codingPath: [any CodingKey]
  let decoder: DocumentDecoder
  var currentIndex = 0

  init(elements: [Value], codingPath: [any CodingKey], decoder: DocumentDecoder) {
    (self.elements, self.codingPath, self.decoder) = (elements, codingPath, decoder)
  }

  var count: Int? { elements.count }
  var isAtEnd: Bool { currentIndex >= elements.count }

  mutating func decodeNil() throws -> Bool {
    guard !isAtEnd, elements[currentIndex] == .null else { return false }
    currentIndex += 1
    return true
  }

  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
    let element = try next(type)
    return try decoder.decode(type, element.value, element.codingPath)
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) throws -> KeyedDecodingContainer<Nested> { try next([String: Value].self).container(keyedBy: type) }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try next([Value].self).unkeyedContainer()
  }

  mutating func superDecoder() throws -> any Decoder { try next(Value.self) }

  private mutating func next(_ type: Any.Type) throws -> NodeDecoder {
    let path = codingPath + [NameKey(intValue: currentIndex)]
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        type, .init(codingPath: path, debugDescription: "The array ends before this element."))
    }
    defer { currentIndex += 1 }
    return NodeDecoder(value: elements[currentIndex], codingPath: path, decoder: decoder)
  }
}
