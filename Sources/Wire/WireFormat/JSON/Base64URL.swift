/// The base64 of tokens (RFC 7515, section 2): the URL alphabet, no padding, and exactly one text for the same
/// bytes.
package enum Base64URL {
  /// Appends the text of `bytes`.
  package static func append(_ bytes: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    let start = out.count
    Base64.append(bytes, .url, to: &out)
    while out.count > start, out.last == UInt8(ascii: "=") { out.removeLast() }
  }

  /// Returns the text of `bytes`.
  package static func encode(_ bytes: [UInt8]) -> [UInt8] {
    var out: [UInt8] = []
    bytes.withUnsafeBytes { append($0, to: &out) }
    return out
  }

  /// Returns the bytes of a text. Returns `nil` for padding, for another alphabet, and if the unused bits are not
  /// zero, because a token must not have a second spelling.
  package static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
    for byte in text where byte == UInt8(ascii: "+") || byte == UInt8(ascii: "/") || byte == UInt8(ascii: "=") {
      return nil
    }
    var isValid = true
    let bytes = [UInt8](unsafeUninitializedCapacity: Base64.decodedCountMax(text.count)) { buffer, count in
      let written = Base64.decode(text, into: UnsafeMutableRawBufferPointer(buffer))
      isValid = written != nil
      count = written ?? 0
    }
    guard isValid, let last = text.last else { return isValid ? bytes : nil }
    // Spellings can differ only in the last character.
    let tail = encode(Array(bytes.suffix(bytes.count % 3 == 0 ? 3 : bytes.count % 3)))
    return tail.last == last ? bytes : nil
  }
}
