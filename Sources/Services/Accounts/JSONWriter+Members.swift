package import WireFormat

/// Members of objects, each with its name.
extension JSONWriter {
  /// Writes a text member, even if the text is empty.
  package mutating func text(_ name: StaticString, _ text: String) {
    key(name)
    string(text)
  }

  /// Writes a text member, or nothing if the text is missing or empty.
  package mutating func member(_ name: StaticString, _ text: String?) {
    guard let text, !text.isEmpty else { return }
    self.text(name, text)
  }

  /// Writes a Boolean member, even if it is `false`.
  package mutating func boolean(_ name: StaticString, _ value: Bool) {
    key(name)
    bool(value)
  }

  /// Writes a Boolean member if `value` is `true`, and nothing otherwise.
  package mutating func flag(_ name: StaticString, _ value: Bool) {
    if value { boolean(name, true) }
  }

  /// Writes a member with a number.
  package mutating func number(_ name: StaticString, _ value: Int) {
    key(name)
    number(value)
  }

  /// Writes a member with an int64 as a string of digits, or nothing if it is missing.
  package mutating func int64(_ name: StaticString, _ value: Int64?) {
    guard let value else { return }
    key(name)
    int64(value)
  }

  /// Writes an array member.
  package mutating func array<Element>(
    _ name: StaticString, _ elements: some Sequence<Element>, _ append: (Element, inout JSONWriter) -> Void
  ) {
    key(name)
    beginArray()
    for element in elements { append(element, &self) }
    endArray()
  }

  /// Writes an object member.
  package mutating func object(_ name: StaticString, _ append: (inout JSONWriter) -> Void) {
    key(name)
    object(append)
  }

  /// Writes an object.
  package mutating func object(_ append: (inout JSONWriter) -> Void) {
    beginObject()
    append(&self)
    endObject()
  }
}
