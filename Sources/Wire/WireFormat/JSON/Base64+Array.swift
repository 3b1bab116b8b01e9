extension Base64 {
  /// Returns the bytes of a text in the standard or the URL alphabet, padded or not, or `nil` if it is not base64.
  package static func decode(_ text: String) -> [UInt8]? {
    var copy = text
    return copy.withUTF8 { text in
      let limit = decodedCountMax(text.count)
      var isValid = true
      let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
        let written = decode(UnsafeRawBufferPointer(text), into: UnsafeMutableRawBufferPointer(buffer))
        isValid = written != nil
        count = written ?? 0
      }
      return isValid ? bytes : nil
    }
  }

  /// Returns bytes as padded text in the standard alphabet.
  package static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    bytes.withUnsafeBytes { append($0, to: &text) }
    return String(decoding: text, as: UTF8.self)
  }
}
