package import DocumentModel
package import WireFormat

// Claims, and the rows of the account store, are JSON objects: maps without the value types that JSON lacks.

extension MapValue {
  /// Creates a map from the members of a JSON object. If a name occurs twice, the last member wins. Whole numbers
  /// become integers, however they are written.
  package init(claims members: JSONValue.Members) {
    var members = members
    var fields: [(String, Value)] = []
    while let (name, value) = members.next() { fields.append((name.text, Value(claim: value))) }
    self.init(fields)
  }

  /// Parses a JSON object. Returns `nil` if the text is not a JSON object.
  package init?(json text: UnsafeRawBufferPointer) {
    let map = try? JSONDocument(bytesMax: 1 << 20).withParsed(text) { (root) throws(WireError) -> MapValue? in
      guard case .object(let members) = root.kind else { return nil }
      return MapValue(claims: members)
    }
    guard let map else { return nil }
    self = map
  }

  /// Parses a JSON object. Returns `nil` if the text is not a JSON object.
  package init?(json text: [UInt8]) {
    guard let map = text.withUnsafeBytes({ MapValue(json: $0) }) else { return nil }
    self = map
  }

  /// The map as JSON text without whitespace.
  package var json: [UInt8] {
    var writer = JSONWriter(.compact)
    writer.append(claims: self)
    return writer.bytes
  }

  /// Returns the string of a member, or `nil` if it does not exist.
  package func text(_ name: String) -> String? {
    if case .string(let text) = self[name] { text } else { nil }
  }

  /// Returns the integer of a member, or `nil` if it does not exist.
  package func integer(_ name: String) -> Int64? {
    if case .integer(let number) = self[name] { number } else { nil }
  }

  /// Returns the map of a member, or `nil` if it does not exist.
  package func map(_ name: String) -> MapValue? {
    if case .map(let map) = self[name] { map } else { nil }
  }
}

extension Value {
  fileprivate init(claim: JSONValue) {
    switch claim.kind {
    case .null: self = .null
    case .boolean(let value): self = .boolean(value)
    case .integer(let value): self = .integer(value)
    case .unsigned(let value): self = .double(Double(value))
    case .double(let value): self = Int64(exactly: value).map(Value.integer) ?? .double(value)
    case .string(let text): self = .string(String(decoding: text, as: UTF8.self))
    case .object(let members): self = .map(MapValue(claims: members))
    case .array(var elements):
      var values: [Value] = []
      while let element = elements.next() { values.append(Value(claim: element)) }
      self = .array(values)
    }
  }
}

extension JSONWriter {
  /// Appends the claims as a JSON object.
  package mutating func append(claims: MapValue) {
    beginObject()
    for (name, value) in claims.entries {
      var name = name
      name.withUTF8 { key(UnsafeRawBufferPointer($0)) }
      append(claim: value)
    }
    endObject()
  }

  private mutating func append(claim: Value) {
    switch claim {
    case .boolean(let value): bool(value)
    case .integer(let value): number(Int(value))
    case .double(let value): double(value)
    case .string(let text): string(text)
    case .map(let map): append(claims: map)
    case .array(let elements):
      beginArray()
      for element in elements { append(claim: element) }
      endArray()
    // Claims contain no value types that JSON lacks.
    default: null()
    }
  }
}
