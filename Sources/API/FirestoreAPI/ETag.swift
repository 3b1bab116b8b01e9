import WireFormat

/// Entity tags of database states, with which an unchanged response becomes a 304 (RFC 9110, section 8.8.3).
///
/// The tags are weak, because a response may be compressed or indented. A state is a version in one incarnation of
/// the database.
enum ETag {
  /// Returns the tag of a version.
  static func make(incarnation: UInt64, version: Int64) -> String {
    String(unsafeUninitializedCapacity: 5 + 2 * Base32.digitsMax) { bytes in
      var count = 0
      func put(_ character: Unicode.Scalar) {
        bytes[count] = UInt8(ascii: character)
        count += 1
      }
      put("W")
      put("/")
      put("\"")
      count += Base32.write(incarnation, to: bytes[count...])
      put("-")
      count += Base32.write(UInt64(bitPattern: version), to: bytes[count...])
      put("\"")
      return count
    }
  }

  /// Whether an `If-None-Match` header contains the tag, compared weakly. `*` matches every tag.
  static func matches(_ header: UnsafeRawBufferPointer, _ tag: String) -> Bool {
    for candidate in header.split(separator: UInt8(ascii: ",")) {
      let bytes = candidate.drop { $0 == UInt8(ascii: " ") }
      let trimmed = bytes.prefix(bytes.lastIndex { $0 != UInt8(ascii: " ") }.map { $0 + 1 - bytes.startIndex } ?? 0)
      if trimmed.elementsEqual("*".utf8) || opaque(trimmed).elementsEqual(opaque(tag.utf8[...])) { return true }
    }
    return false
  }

  private static func opaque<Bytes: BidirectionalCollection<UInt8>>(_ tag: Bytes) -> Bytes.SubSequence {
    tag.starts(with: "W/".utf8) ? tag.dropFirst(2) : tag[...]
  }
}
