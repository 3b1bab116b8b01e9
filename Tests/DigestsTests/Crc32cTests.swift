import Digests
import Testing

@Suite struct Crc32cTests {
  /// From RFC 3720, appendix B.4, and the reference implementation.
  static let sums: [([UInt8], UInt32)] = [
    ([], 0),
    (Array("123456789".utf8), 0xE306_9283),
    (Array(repeating: 0, count: 32), 0x8A91_36AA),
    (Array(repeating: 0xFF, count: 32), 0x62A8_AB43),
    (Array(0..<32), 0x46DD_794E),
  ]

  @Test(arguments: sums)
  func crc32cMatchesTheStandard(bytes: [UInt8], sum: UInt32) {
    bytes.withUnsafeBytes { bytes in
      #expect(Crc32c.extend(0, bytes) == sum)
      #expect(Crc32c.extendByTables(0, bytes) == sum)
    }
  }

  @Test func crc32cExtendsAtAnyOffset() {
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 3) }
    bytes.withUnsafeBytes { bytes in
      let whole = Crc32c.extend(0, bytes)
      for cut in [0, 1, 7, 8, 9, 500, 999, 1000] {
        let first = Crc32c.extend(0, UnsafeRawBufferPointer(rebasing: bytes[..<cut]))
        #expect(Crc32c.extend(first, UnsafeRawBufferPointer(rebasing: bytes[cut...])) == whole)
        #expect(Crc32c.extendByTables(first, UnsafeRawBufferPointer(rebasing: bytes[cut...])) == whole)
      }
    }
  }
}
