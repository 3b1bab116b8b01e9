/// The position of a listener: a version of a database. Clients keep it as opaque bytes.
///
/// A token fits every target of the database, because the change log covers all collections. Layout, big-endian: a
/// format byte, the database's incarnation (8 bytes), the version (8 bytes), a checksum of the bytes before it (4
/// bytes).
package struct ResumeToken: Hashable, Sendable {
  /// The incarnation of the database in which the version is valid.
  package let incarnation: UInt64
  /// The last version that the client was notified of.
  package let version: Int64

  private static let format: UInt8 = 1
  private static let byteCount = 21

  package init(incarnation: UInt64, version: Int64) {
    self.incarnation = incarnation
    self.version = version
  }

  /// Decodes a token. Returns `nil` if the bytes are not a valid token.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount, bytes[0] == Self.format else { return nil }
    func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    guard number(17..<21) == UInt64(Self.check(bytes[..<17])) else { return nil }
    incarnation = number(1..<9)
    version = Int64(bitPattern: number(9..<17))
  }

  /// The encoded token.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.byteCount)
    bytes.append(Self.format)
    func append(_ number: UInt64, _ count: Int) {
      for shift in stride(from: (count - 1) * 8, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
      }
    }
    append(incarnation, 8)
    append(UInt64(bitPattern: version), 8)
    append(UInt64(Self.check(bytes[...])), 4)
    return bytes
  }

  /// An FNV-1a checksum, to detect truncated or mistyped tokens. A token grants no access, so forging one is
  /// useless.
  private static func check(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    bytes.reduce(0x811C_9DC5) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
  }
}
