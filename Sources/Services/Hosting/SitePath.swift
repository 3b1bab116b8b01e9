import Basics

/// The path of a request to a site, decoded. It starts with a slash, has no empty segments, and no segment is `.` or
/// `..`.
package struct SitePath: Hashable, Sendable {
  /// The path as UTF-8.
  package let bytes: [UInt8]

  /// Decodes the path of a request target. Several slashes become one.
  ///
  /// Returns `nil` if no file can have the path: it is too long or too deep, its percent-encoding is malformed, it is not
  /// UTF-8, or contains a control character or the segments `.` or `..`.
  package init?(decoding target: UnsafeRawBufferPointer) {
    guard target.first == UInt8(ascii: "/"), target.count <= 3 * HostingLimits.pathBytesMax else { return nil }
    var out: [UInt8] = []
    out.reserveCapacity(target.count)
    var index = 0
    while index < target.count {
      var byte = target[index]
      index += 1
      if byte == UInt8(ascii: "%") {
        guard index + 1 < target.count, let high = Hexadecimal.digit(target[index]),
          let low = Hexadecimal.digit(target[index + 1])
        else { return nil }
        byte = high << 4 | low
        index += 2
      }
      guard byte >= 0x20, byte != 0x7F else { return nil }
      if byte == UInt8(ascii: "/"), out.last == byte { continue }
      out.append(byte)
    }
    self.init(checking: out)
  }

  /// Checks a decoded path.
  private init?(checking bytes: [UInt8]) {
    guard bytes.count <= HostingLimits.pathBytesMax, String(validating: bytes, as: UTF8.self) != nil else { return nil }
    let segments = bytes.split(separator: UInt8(ascii: "/"))
    guard segments.count <= HostingLimits.segmentsMax else { return nil }
    for segment in segments {
      let dots = segment.allSatisfy { $0 == UInt8(ascii: ".") }
      if dots, segment.count <= 2 { return nil }
    }
    self.bytes = bytes
  }

  /// Reads a path of the configuration, such as the destination of a rewrite. A missing slash at its start is added.
  /// Returns `nil` under the same conditions as for a request, but nothing is decoded.
  package init?(_ text: String) {
    var bytes: [UInt8] = [UInt8(ascii: "/")]
    for byte in text.utf8 {
      guard byte >= 0x20, byte != 0x7F else { return nil }
      if byte != UInt8(ascii: "/") || bytes.last != byte { bytes.append(byte) }
    }
    self.init(checking: bytes)
  }

  /// The path without its slash at the start, for the file system.
  var relative: String { String(decoding: bytes.dropFirst(), as: UTF8.self) }

  var hasTrailingSlash: Bool { bytes.last == UInt8(ascii: "/") }
  var isRoot: Bool { bytes.count == 1 }

  func hasSuffix(_ suffix: StaticString) -> Bool {
    suffix.withUTF8Buffer { bytes.count >= $0.count && bytes.suffix($0.count).elementsEqual($0) }
  }

  /// Returns the path without its last bytes, or `/` if nothing is left.
  func dropping(_ count: Int) -> SitePath {
    let rest = Array(bytes.dropLast(count))
    return SitePath(valid: rest.isEmpty ? [UInt8(ascii: "/")] : rest)
  }

  func appending(_ suffix: StaticString) -> SitePath {
    SitePath(valid: suffix.withUTF8Buffer { bytes + $0 })
  }

  /// Returns the path below a folder, which has no slash at its end.
  func below(_ folder: [UInt8]) -> SitePath { SitePath(valid: folder + bytes) }

  private init(valid bytes: [UInt8]) { self.bytes = bytes }

  /// The path as a URL contains it.
  var encoded: String { Self.encoded(bytes[...]) }

  /// Returns bytes as the path of a URL contains them. A backslash is escaped too, because browsers read it as a slash.
  static func encoded(_ bytes: some Sequence<UInt8>) -> String {
    var out: [UInt8] = []
    for byte in bytes {
      if isPlain(byte) { out.append(byte) } else { appendEscaped(byte, to: &out) }
    }
    return String(decoding: out, as: UTF8.self)
  }

  static func appendEscaped(_ byte: UInt8, to out: inout [UInt8]) {
    let digits: StaticString = "0123456789ABCDEF"
    out += [UInt8(ascii: "%"), digits.utf8Start[Int(byte >> 4)], digits.utf8Start[Int(byte & 15)]]
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || "/-._~!$&'()*+,;=:@".utf8.contains(byte)
  }
}
