import WireFormat

/// JSON strings in texts that are not written by a ``JSONWriter``.
enum JSONStringText {
  /// Appends a text in quotes, with only the escapes that JSON requires.
  static func append(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    var json = JSONWriter(.compact)
    swap(&json.bytes, &out)
    json.string(text)
    swap(&json.bytes, &out)
  }

  /// Appends a text in quotes.
  static func append(_ text: String, to out: inout [UInt8]) {
    var copy = text
    copy.withUTF8 { append(UnsafeRawBufferPointer($0), to: &out) }
  }
}
