package import DocumentModel

/// A message that the server sends. The type declares its fields once, for both encodings:
///
///     func append(to out: inout some MessageWriter) throws(WireError) {
///       out.timestamp(1, "updateTime", updateTime)
///     }
///
/// That function implements both requirements. They are separate so that the compiler specializes the function for
/// each encoding.
package protocol EncodableMessage {
  /// Appends the members of the message in JSON, without braces.
  ///
  /// - Throws: ``WireError`` if stored bytes are damaged. The text is then incomplete.
  func append(to out: inout JSONWriter) throws(WireError)
  /// Appends the fields of the message in protobuf.
  ///
  /// - Throws: ``WireError`` if stored bytes are damaged. The message is then incomplete.
  func append(to out: inout ProtobufMessageWriter) throws(WireError)
}

extension EncodableMessage {
  /// Appends the message as a JSON object.
  ///
  /// - Throws: ``WireError`` if stored bytes are damaged. Then nothing is appended.
  package func appendJSON(_ style: JSONWriter.Style, to out: inout [UInt8]) throws(WireError) {
    var json = JSONWriter(style)
    try json.appending(to: &out) { (json) throws(WireError) in
      json.beginObject()
      try append(to: &json)
      json.endObject()
    }
  }

  /// Appends the message in protobuf.
  ///
  /// - Throws: ``WireError`` if stored bytes are damaged. Then nothing is appended.
  package func appendProtobuf(to out: inout [UInt8]) throws(WireError) {
    var writer = ProtobufMessageWriter()
    try writer.appending(to: &out) { (writer) throws(WireError) in try append(to: &writer) }
  }
}

/// A writer of the fields of a message in one encoding. Fields have a number for protobuf and a name for JSON.
///
/// The caller omits fields with default values. Lists omit themselves if they are empty.
package protocol MessageWriter {
  /// The bytes so far. The caller can take them, or set a buffer that has capacity.
  var bytes: [UInt8] { get set }

  /// Begins a field. Its value comes next.
  mutating func field(_ number: Int, _ name: StaticString)
  /// Begins a repeated field. Its values come next, then ``endList()``.
  mutating func beginList(_ number: Int, _ name: StaticString)
  mutating func endList()

  // The values of fields and elements of lists.
  mutating func string(_ value: String)
  mutating func bytes(_ value: [UInt8])
  mutating func bool(_ value: Bool)
  /// Writes an int32.
  mutating func number(_ value: Int)
  mutating func int64(_ value: Int64)
  mutating func timestamp(_ value: Timestamp)
  /// Writes a `google.protobuf.Duration` of whole microseconds.
  mutating func duration(microseconds: Int64)
  /// Writes the full name of a document. `root` is the name of the documents root.
  mutating func documentName(_ root: [UInt8], _ key: DocumentKey)
  /// Writes a string given as UTF-8.
  mutating func text(_ value: UnsafeRawBufferPointer)
  /// Writes the fields of a document, a `map<string, Value>`. They are not empty.
  mutating func fields(_ fields: EncodedMap) throws(WireError)
  /// Writes a `google.protobuf.Any` that contains a `google.protobuf.StringValue`.
  mutating func anyString(_ value: String)
  mutating func value(_ value: Value) throws(WireError)
  /// Writes a `map<string, Value>`.
  mutating func map(_ entries: [(String, Value)]) throws(WireError)
  /// Writes a `google.protobuf.Struct`.
  mutating func structure(_ members: [StructMember])
  /// Writes a message whose fields `body` writes.
  mutating func message<E: Error>(_ body: (inout Self) throws(E) -> Void) throws(E)
  /// Writes a message.
  mutating func message(_ message: some EncodableMessage) throws(WireError)
}

extension MessageWriter {
  /// Takes `out`, calls `body` to append to it, and gives it back, without a copy. If `body` throws, `out` is as
  /// before.
  ///
  /// - Throws: The error that `body` throws.
  package mutating func appending<E: Error>(
    to out: inout [UInt8], _ body: (inout Self) throws(E) -> Void
  ) throws(E) {
    let start = out.count
    swap(&bytes, &out)
    defer { swap(&bytes, &out) }
    do throws(E) {
      try body(&self)
    } catch {
      bytes.removeLast(bytes.count - start)
      throw error
    }
  }

  /// Writes a repeated field; `write` writes one element.
  mutating func list<Item, E: Error>(
    _ number: Int, _ name: StaticString, _ items: [Item], _ write: (Item, inout Self) throws(E) -> Void
  ) throws(E) {
    guard !items.isEmpty else { return }
    beginList(number, name)
    for item in items { try write(item, &self) }
    endList()
  }

  /// Writes a token, which is base64 in both encodings, unless it is empty.
  mutating func pageToken(_ number: Int, _ name: StaticString, _ token: [UInt8]) {
    guard !token.isEmpty else { return }
    field(number, name)
    string(Base64.encode(token))
  }

  mutating func bytes(_ number: Int, _ name: StaticString, _ value: [UInt8]) {
    field(number, name)
    bytes(value)
  }

  mutating func int64(_ number: Int, _ name: StaticString, _ value: Int64) {
    field(number, name)
    int64(value)
  }

  mutating func timestamp(_ number: Int, _ name: StaticString, _ value: Timestamp) {
    field(number, name)
    timestamp(value)
  }

  mutating func message(_ number: Int, _ name: StaticString, _ message: some EncodableMessage) throws(WireError) {
    field(number, name)
    try self.message(message)
  }

  mutating func message<E: Error>(
    _ number: Int, _ name: StaticString, _ body: (inout Self) throws(E) -> Void
  ) throws(E) {
    field(number, name)
    try message(body)
  }
}

extension JSONWriter: MessageWriter {
  package mutating func field(_ number: Int, _ name: StaticString) { key(name) }

  package mutating func beginList(_ number: Int, _ name: StaticString) {
    key(name)
    beginArray()
  }

  package mutating func endList() { endArray() }

  package mutating func bytes(_ value: [UInt8]) { value.withUnsafeBytes { base64($0) } }

  package mutating func duration(microseconds: Int64) {
    let fraction = "\(microseconds % 1_000_000)"
    string("\(microseconds / 1_000_000).\(String(repeating: "0", count: 6 - fraction.utf8.count))\(fraction)s")
  }

  package mutating func documentName(_ root: [UInt8], _ document: DocumentKey) {
    root.withUnsafeBytes { root in document.path.bytes.withUnsafeBytes { string(root, slash: $0) } }
  }

  package mutating func text(_ value: UnsafeRawBufferPointer) { string(value) }

  package mutating func fields(_ fields: EncodedMap) throws(WireError) {
    try DocumentJSON.append(fields: fields, to: &self)
  }

  package mutating func anyString(_ value: String) {
    beginObject()
    key("@type")
    string("type.googleapis.com/google.protobuf.StringValue")
    key("value")
    string(value)
    endObject()
  }

  package mutating func value(_ value: Value) throws(WireError) { try DocumentJSON.append(value, to: &self) }

  package mutating func map(_ entries: [(String, Value)]) throws(WireError) {
    beginObject()
    for (name, value) in entries {
      name.withRawUTF8 { key($0) }
      try self.value(value)
    }
    endObject()
  }

  package mutating func structure(_ members: [StructMember]) {
    beginObject()
    for (name, value) in members {
      key(name)
      switch value {
      case .text(let text): string(text)
      case .object(let inner): structure(inner)
      }
    }
    endObject()
  }

  package mutating func message<E: Error>(_ body: (inout Self) throws(E) -> Void) throws(E) {
    beginObject()
    try body(&self)
    endObject()
  }

  package mutating func message(_ message: some EncodableMessage) throws(WireError) {
    beginObject()
    try message.append(to: &self)
    endObject()
  }
}

/// A writer that appends the fields of a protobuf message to a byte array.
package struct ProtobufMessageWriter: MessageWriter {
  package var bytes: [UInt8] = []
  /// The number of the current field.
  private var number = 0

  /// Creates a writer for an empty message.
  package init() {}

  package mutating func field(_ number: Int, _ name: StaticString) { self.number = number }
  package mutating func beginList(_ number: Int, _ name: StaticString) { self.number = number }
  package mutating func endList() {}

  package mutating func string(_ value: String) { ProtobufWriter.string(number, value, to: &bytes) }
  package mutating func bytes(_ value: [UInt8]) { ProtobufWriter.bytes(number, value, to: &bytes) }
  package mutating func bool(_ value: Bool) { ProtobufWriter.bool(number, value, to: &bytes) }
  package mutating func number(_ value: Int) { int64(Int64(value)) }
  package mutating func int64(_ value: Int64) { ProtobufWriter.int64(number, value, to: &bytes) }
  package mutating func timestamp(_ value: Timestamp) { ProtobufWriter.timestamp(number, value, to: &bytes) }

  package mutating func duration(microseconds: Int64) {
    message { out in
      out.int64(1, "seconds", microseconds / 1_000_000)
      out.int64(2, "nanos", microseconds % 1_000_000 * 1000)
    }
  }

  package mutating func documentName(_ root: [UInt8], _ key: DocumentKey) {
    ProtobufWriter.tag(number, .lengthDelimited, to: &bytes)
    ProtobufWriter.varint(UInt64(root.count + 1 + key.path.bytes.count), to: &bytes)
    bytes.append(contentsOf: root)
    bytes.append(UInt8(ascii: "/"))
    bytes.append(contentsOf: key.path.bytes)
  }

  package mutating func text(_ value: UnsafeRawBufferPointer) { ProtobufWriter.bytes(number, value, to: &bytes) }

  package mutating func fields(_ fields: EncodedMap) throws(WireError) {
    let tag = UInt8(number << 3) | ProtobufReader.WireType.lengthDelimited.rawValue
    guard fields.entryTag != tag else { return bytes.append(raw: fields.bytes) }
    var iterator = fields.makeIterator()
    var start = iterator.position
    while try iterator.next() != nil {
      bytes.append(tag)
      bytes.append(raw: UnsafeRawBufferPointer(rebasing: fields.bytes[(start + 1)..<iterator.position]))
      start = iterator.position
    }
  }

  package mutating func anyString(_ value: String) {
    message { out in
      out.field(1, "typeUrl")
      out.string("type.googleapis.com/google.protobuf.StringValue")
      out.message(2, "value") { out in
        out.field(1, "value")
        out.string(value)
      }
    }
  }

  package mutating func value(_ value: Value) {
    ProtobufWriter.message(number, to: &bytes) { ValueCodec.append(value, to: &$0) }
  }

  package mutating func map(_ entries: [(String, Value)]) {
    for (key, value) in entries {
      message { entry in
        entry.field(1, "key")
        entry.string(key)
        entry.field(2, "value")
        entry.value(value)
      }
    }
  }

  package mutating func structure(_ members: [StructMember]) {
    message { out in
      for (key, value) in members {
        out.message(1, "fields") { entry in
          entry.field(1, "key")
          entry.string(key.description)
          entry.message(2, "value") { out in
            switch value {
            case .text(let text):
              out.field(3, "stringValue")
              out.string(text)
            case .object(let inner):
              out.field(5, "structValue")
              out.structure(inner)
            }
          }
        }
      }
    }
  }

  package mutating func message<E: Error>(_ body: (inout Self) throws(E) -> Void) throws(E) {
    let number = number
    let start = ProtobufWriter.beginMessage(number, to: &bytes)
    try body(&self)
    ProtobufWriter.endMessage(start, in: &bytes)
    self.number = number
  }

  package mutating func message(_ message: some EncodableMessage) throws(WireError) {
    try self.message { (out) throws(WireError) in try message.append(to: &out) }
  }
}
