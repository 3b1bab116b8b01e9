package import WireFormat

extension JSONWriter {
  /// Writes the name of a member.
  package mutating func key(_ name: String) {
    var copy = name
    copy.withUTF8 { key(UnsafeRawBufferPointer($0)) }
  }

  /// Returns the text as a whole response body, with a line break at its end.
  package consuming func finish() -> [UInt8] {
    bytes.append(UInt8(ascii: "\n"))
    return bytes
  }

  /// Returns the text written so far and removes it. Writing continues afterwards.
  package mutating func take() -> [UInt8] {
    defer { bytes.removeAll() }
    return bytes
  }
}
