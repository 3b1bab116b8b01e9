import Foundation

/// Encodes `Encodable` types as values of documents.
///
/// Integer types become integers, `Double` and `Float` doubles, `Date` a timestamp, `Data` bytes, and `URL` a
/// string. A `nil` property is left out; a `nil` element becomes null. ``DocumentID`` properties are not fields.
struct DocumentEncoder {
  /// The encoded value.
  struct Result {
    var value: Value
    /// The fields to which the server assigns its time.
    var serverTimestamps: [FieldPath] = []

    /// Returns the fields of a document.
    /// - Throws: `EncodingError` if the value is not a map.
    func fields() throws -> [String: Value] {
      if case .map(let fields) = value { return fields }
      throw EncodingError.invalidValue(
        value,
        .init(
          codingPath: [],
          debugDescription: "A document must be encoded as a map of fields; use a type with properties."))
    }
  }

  /// Encodes a value.
  /// - Throws: `EncodingError`, or the error of the type's own encoding.
  func encode(_ value: some Encodable) throws -> Result {
    if let fields = value as? [String: Value] { return Result(value: .map(fields)) }
    let node = EncodedNode()
    try node.encode(value, [])
    var result = Result(value: .null)
    result.value = try node.value(at: [], timestamps: &result.serverTimestamps) ?? .null
    return result
  }
}

/// A value during encoding.
private final class EncodedNode {
  enum Content {
    case nothing
    case value(Value)
    case serverTimestamp
    case array
    case map
  }

  var content = Content.nothing
  private var elements: [EncodedNode] = []
  private var members: [String: EncodedNode] = [:]

  func encode<T: Encodable>(_ value: T, _ path: [any CodingKey]) throws {
    switch value {
    case let value as Value: content = .value(value)
    case let value as Date: content = .value(.timestamp(Timestamp(value)))
    case let value as Timestamp: content = .value(.timestamp(value))
    case let value as Data: content = .value(.bytes(value))
    case let value as URL: content = .value(.string(value.absoluteString))
    case let value as GeoPoint: content = .value(.geoPoint(value))
    case let value as VectorValue: content = .value(.vector(value))
    case let value as DocumentReference: content = .value(.reference(value))
    case let value as ServerTimestamp:
      content = value.wrappedValue.map { .value(.timestamp(Timestamp($0))) } ?? .serverTimestamp
    default:
      try value.encode(to: NodeEncoder(node: self, codingPath: path))
      // A type without properties requests no container.
      if case .nothing = content { content = .map }
    }
  }

  /// Returns the node for a member of a map.
  func member(_ name: String) -> EncodedNode {
    if let node = members[name] { return node }
    let node = EncodedNode()
    members[name] = node
    return node
  }

  /// Returns a node for the next element of an array.
  func element() -> EncodedNode {
    let node = EncodedNode()
    elements.append(node)
    return node
  }

  var count: Int { elements.count }

  /// Returns the value, or `nil` for a server timestamp, whose path it appends to `timestamps`.
  func value(at path: [String], timestamps: inout [FieldPath]) throws -> Value? {
    switch content {
    case .nothing: return .null
    case .value(let value): return value
    case .serverTimestamp:
      timestamps.append(FieldPath(segments: path))
      return nil
    case .array:
      var within: [FieldPath] = []
      let values = try elements.map { try $0.value(at: path, timestamps: &within) ?? .null }
      guard within.isEmpty else {
        throw EncodingError.invalidValue(
          path,
          .init(codingPath: [], debugDescription: "A server timestamp cannot be inside an array: \(path)."))
      }
      return .array(values)
    case .map:
      var fields: [String: Value] = [:]
      for (name, node) in members { fields[name] = try node.value(at: path + [name], timestamps: &timestamps) }
      return .map(fields)
    }
  }
}

private struct NodeEncoder: Encoder {
  let node: EncodedNode
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    node.content = .map
    return KeyedEncodingContainer(KeyedNodeEncoder(node: node, codingPath: codingPath))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    node.content = .array
    return UnkeyedNodeEncoder(node: node, codingPath: codingPath)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer {
    SingleNodeEncoder(node: node, codingPath: codingPath)
  }
}

private struct SingleNodeEncoder: SingleValueEncodingContainer {
  let node: EncodedNode
  let codingPath: [any CodingKey]

  func encodeNil() { node.content = .value(.null) }
  func encode(_ value: Bool) { node.content = .value(.boolean(value)) }
  func encode(_ value: String) { node.content = .value(.string(value)) }
  func encode(_ value: Double) { node.content = .value(.double(value)) }
  func encode(_ value: Float) { node.content = .value(.double(Double(value))) }
  func encode(_ value: Int) throws { try encode(integer: value) }
  func encode(_ value: Int8) throws { try encode(integer: value) }
  func encode(_ value: Int16) throws { try encode(integer: value) }
  func encode(_ value: Int32) throws { try encode(integer: value) }
  func encode(_ value: Int64) throws { try encode(integer: value) }
  func encode(_ value: UInt) throws { try encode(integer: value) }
  func encode(_ value: UInt8) throws { try encode(integer: value) }
  func encode(_ value: UInt16) throws { try encode(integer: value) }
  func encode(_ value: UInt32) throws { try encode(integer: value) }
  func encode(_ value: UInt64) throws { try encode(integer: value) }
  func encode<T: Encodable>(_ value: T) throws { try node.encode(value, codingPath) }

  private func encode(integer value: some BinaryInteger) throws {
    guard let number = Int(exactly: value) else {
      throw EncodingError.invalidValue(
        value, .init(codingPath: codingPath, debugDescription: "\(value) does not fit in a 64-bit integer."))
    }
    node.content = .value(.integer(number))
  }
}

private struct KeyedNodeEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let node: EncodedNode
  let codingPath: [any CodingKey]

  func encodeNil(forKey key: Key) { node.member(key.stringValue).content = .value(.null) }

  func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    // The ID is in the document's name.
    if value is DocumentID { return }
    try node.member(key.stringValue).encode(value, codingPath + [key])
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> { encoder(key).container(keyedBy: type) }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { encoder(key).unkeyedContainer() }

  func superEncoder() -> any Encoder { NodeEncoder(node: node.member("super"), codingPath: codingPath) }
  func superEncoder(forKey key: Key) -> any Encoder { encoder(key) }

  private func encoder(_ key: Key) -> NodeEncoder {
    NodeEncoder(node: node.member(key.stringValue), codingPath: codingPath + [key])
  }
}

private struct UnkeyedNodeEncoder: UnkeyedEncodingContainer {
  let node: EncodedNode
  let codingPath: [any CodingKey]
  var count: Int { node.count }

  func encodeNil() { node.element().content = .value(.null) }
  func encode<T: Encodable>(_ value: T) throws { try node.element().encode(value, codingPath) }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
    encoder.container(keyedBy: type)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.unkeyedContainer() }
  func superEncoder() -> any Encoder { encoder }

  private var encoder: NodeEncoder { NodeEncoder(node: node.element(), codingPath: codingPath) }
}
