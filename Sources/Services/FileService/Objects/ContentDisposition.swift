package import Files

/// The header `Content-Disposition`, with which a browser decides how to show an object.
package enum ContentDisposition {
  /// The stored value. If it contains no file name, the last segment of the object's name is added as one.
  package static func text(of object: StoredObject) -> String {
    let stored = object.attributes.contentDisposition ?? "inline"
    if stored.utf8.count == 0 { return stored }
    if namesFile(stored) { return stored }
    let last = object.name.name.utf8.split(separator: UInt8(ascii: "/")).last ?? object.name.name.utf8[...]
    return "\(stored); filename*=utf-8''\(percentEncoded(last))"
  }

  /// Whether the value contains `filename`, in upper or lower case. Runs for every download.
  private static func namesFile(_ disposition: String) -> Bool {
    let word = Array("filename".utf8)
    guard disposition.utf8.count >= word.count else { return false }
    let bytes = disposition.utf8.map { $0 | 0x20 }
    return (0...(bytes.count - word.count)).contains { bytes[$0...].starts(with: word) }
  }

  /// Percent-encodes all characters except those that RFC 5987 allows.
  private static func percentEncoded(_ text: Substring.UTF8View) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    let plain = Array("!#$&+-.^_`|~".utf8)
    var encoded: [UInt8] = []
    for byte in text {
      let isAlphanumeric = byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26
      if isAlphanumeric || plain.contains(byte) {
        encoded.append(byte)
      } else {
        encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }
}
