package import DocumentModel

extension JSONMessageDecoder {
  /// Decodes a message. `message` contains what is known before the first field.
  ///
  /// - Throws: ``WireError`` with the documented text if the value is malformed or the message invalid.
  package func decode<M: DecodableMessage>(_ value: JSONValue, _ message: M) throws(WireError) -> M.Decoded {
    var message = message
    var members = try allMembers(of: value, M.typeName)
    while let (name, value) = members.next() {
      if value.isNull, M.nullMember.map(name.spells) != true { continue }
      var field = JSONField(name, value, self)
      try message.decode(&field)
      guard field.isKnown else { throw unknown(name) }
    }
    return try message.decoded()
  }
}

/// A member of a JSON object that is a message.
package struct JSONField: MessageField {
  private let name: JSONName
  private let value: JSONValue
  private let decoder: JSONMessageDecoder
  /// The name in snake_case, once it is known.
  private var field: StaticString = ""

  init(_ name: JSONName, _ value: JSONValue, _ decoder: JSONMessageDecoder) {
    self.name = name
    self.value = value
    self.decoder = decoder
  }

  /// Whether the message has the field.
  var isKnown: Bool { field.utf8CodeUnitCount > 0 }

  package mutating func matches(_ number: Int, _ name: StaticString, _ type: ProtobufReader.WireType) -> Bool {
    guard self.name.spells(name) else { return false }
    field = name
    return true
  }

  package mutating func ignore(_ name: StaticString) {
    if self.name.spells(name) { field = name }
  }

  package mutating func ignoreAll() { field = "ignored" }

  package func claim(_ oneof: StaticString, isSet: Bool) throws(WireError) {
    if isSet { throw decoder.alreadySet(oneof, name) }
  }

  package func checkNesting(_ depth: Int) throws(WireError) {}

  package func text() throws(WireError) -> UnsafeRawBufferPointer { try decoder.string(value, field) }
  package func bytes() throws(WireError) -> [UInt8] { try decoder.bytes(value, field) }
  package func bool() throws(WireError) -> Bool { try decoder.bool(value, field) }
  package func int32() throws(WireError) -> Int32 { try decoder.int32(value, field) }
  package func int64() throws(WireError) -> Int64 { try decoder.int64(value, field) }

  package func double() throws(WireError) -> Double { try decoder.double(value, field) }

  package func null() throws(WireError) {
    if value.isNull { return }
    _ = try enumeration("type.googleapis.com/google.protobuf.NullValue", ["NULL_VALUE"])
  }

  package func enumeration(_ type: StaticString, _ names: [StaticString]) throws(WireError) -> Int {
    try decoder.enumeration(value, field, type, names)
  }

  package func int32Value() throws(WireError) -> Int32 {
    try wrapped("google.protobuf.Int32Value") { (value, field) throws(WireError) in try decoder.int32(value, field) }
  }

  /// A plain number or string of digits. Clients do not send an object here.
  package func int64Value() throws(WireError) -> Int64 { try int64() }

  package func doubleValue() throws(WireError) -> Double {
    try wrapped("google.protobuf.DoubleValue") { (value, field) throws(WireError) in try decoder.double(value, field) }
  }

  package func timestamp() throws(WireError) -> Timestamp { try decoder.timestamp(value, field) }

  package func alignedTimestamp() throws(WireError) -> Timestamp { try decoder.alignedTimestamp(value, field) }

  /// Decodes a wrapped number: the number itself, or an object with the member `value`.
  private func wrapped<Number: Numeric>(
    _ type: StaticString, _ decode: (JSONValue, StaticString) throws(WireError) -> Number
  ) throws(WireError) -> Number {
    guard case .object = value.kind else { return try decode(value, field) }
    var number = Number.zero
    decoder.enter(field)
    var members = try decoder.members(of: value, type)
    while let (name, value) = members.next() {
      guard "value" ~= name else { throw decoder.unknown(name) }
      number = try decode(value, "value")
    }
    decoder.leave()
    return number
  }

  package func message<M: DecodableMessage>(_ message: M) throws(WireError) -> M.Decoded {
    try inside { () throws(WireError) in try decoder.decode(value, message) }
  }

  package func document() throws(WireError) -> DecodedDocument {
    try inside { () throws(WireError) in try decoder.document(value) }
  }

  package func value(_ purpose: CanonicalEncoder.Purpose) throws(WireError) -> Value {
    try inside { () throws(WireError) in try decoder.value(value, purpose) }
  }

  package func arrayValue(_ purpose: CanonicalEncoder.Purpose) throws(WireError) -> [Value] {
    try inside { () throws(WireError) in try decoder.arrayValue(value, purpose) }
  }

  package func documentName(
    _ name: UnsafeRawBufferPointer
  ) throws(WireError) -> (database: DatabaseID, key: DocumentKey) {
    try decoder.documentName(name)
  }

  package var database: DatabaseID? { decoder.names.database }

  package var addsElements: Bool { false }

  package func forEach(_ body: (JSONField) throws(WireError) -> Void) throws(WireError) {
    decoder.enter(field)
    defer { decoder.leave() }
    var elements = try decoder.elements(of: value)
    var index = 0
    while let element = elements.next() {
      decoder.element(index)
      index += 1
      try body(JSONField(name, element, decoder))
    }
  }

  package func forEachEntry(_ body: (String, JSONField) throws(WireError) -> Void) throws(WireError) {
    decoder.enter(field)
    defer { decoder.leave() }
    guard case .object(var entries) = value.kind else {
      throw .invalidValue(path: decoder.path.text(), type: "map", text: "an object is expected")
    }
    var index = 0
    while let (key, content) = entries.next() {
      decoder.path.entry(index)
      index += 1
      try body(String(decoding: key.bytes, as: UTF8.self), JSONField(key, content, decoder))
    }
  }

  /// Calls `body` inside the field. An element of a list has no name of its own.
  private func inside<R>(_ body: () throws(WireError) -> R) throws(WireError) -> R {
    guard isKnown else { return try body() }
    decoder.enter(field)
    // The text of an error already contains the path.
    defer { decoder.leave() }
    return try body()
  }
}

extension JSONName {
  /// Whether the name is `name`, which is in snake_case, or the same in lowerCamelCase.
  func spells(_ name: StaticString) -> Bool {
    if bytes.count == name.utf8CodeUnitCount { return name ~= self }
    guard bytes.count < name.utf8CodeUnitCount else { return false }
    var offset = 0
    var isWordStart = false
    for index in 0..<name.utf8CodeUnitCount {
      let byte = name.utf8Start[index]
      if byte == UInt8(ascii: "_") {
        isWordStart = true
        continue
      }
      guard offset < bytes.count, bytes[offset] == (isWordStart ? byte - 0x20 : byte) else { return false }
      isWordStart = false
      offset += 1
    }
    return offset == bytes.count
  }
}
