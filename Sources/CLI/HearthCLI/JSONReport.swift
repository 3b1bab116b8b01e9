import WireFormat

/// Builds the JSON that verbs print with `--json` and the bodies of their requests.
extension JSONWriter {
  /// Returns a JSON object and a line feed; `append` writes the members.
  static func report(_ append: (inout JSONWriter) -> Void) -> [UInt8] {
    var json = JSONWriter(.pretty)
    json.beginObject()
    append(&json)
    json.endObject()
    return json.bytes + [UInt8(ascii: "\n")]
  }

  /// Adds a text as a member, unless it is `nil`.
  mutating func add(_ name: StaticString, _ text: String?) {
    guard let text else { return }
    key(name)
    string(text)
  }

  /// Adds a number as a member.
  mutating func add(_ name: StaticString, _ count: Int) {
    key(name)
    number(count)
  }

  /// Adds a flag as a member.
  mutating func add(_ name: StaticString, _ flag: Bool) {
    key(name)
    bool(flag)
  }

  /// Adds an array as a member, with one object for each element; `append` writes its members.
  mutating func add<Elements: Sequence>(
    _ name: StaticString, _ elements: Elements, _ append: (Elements.Element, inout JSONWriter) -> Void
  ) {
    key(name)
    beginArray()
    for element in elements {
      beginObject()
      append(element, &self)
      endObject()
    }
    endArray()
  }
}
