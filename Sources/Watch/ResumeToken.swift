/// Where a listener stood: a version of a database. Clients keep it as opaque bytes.
///
/// It fits every target of the database, since the change log holds the changes of all. Layout, big-endian: a format
/// byte, the database's incarnation (8), the version (8), a check of what stands before it (4).
package struct ResumeToken: Hashable, Sendable {
  /// The life of the database that the version belongs to.
  package let incarnation: UInt64
  /// The version that was told.
  package let version: Int64

  private static let format: UInt8 = 1
  private static let byteCount = 21

  /// Names a version.
  package init(incarnation: UInt64, version: Int64) {
    self.incarnation = incarnation
    self.version = version
  }

  /// Reads a token, or returns `nil` where the bytes are none of ours.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount, bytes[0] == Self.format else { return nil }
    func number(_ range: Range<Int>) -> UInt64 { bytes[range].reduce(0) { $0 << 8 | UInt64($1) } }
    guard number(17..<21) == UInt64(Self.check(bytes[..<17])) else { return nil }
    incarnation = number(1..<9)
    version = Int64(bitPattern: number(9..<17))
  }

  /// The token as clients get it.
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

  /// FNV-1a: finds what was cut or mistyped. A token grants nothing, so nobody gains by forging one.
  private static func check(_ bytes: ArraySlice<UInt8>) -> UInt32 {
    bytes.reduce(0x811C_9DC5) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
  }
}
