import CZlib

/// CRC-32C, also called Castagnoli. Uses the processor's instruction if there is one, otherwise tables.
package enum Crc32c {
  private static let hasInstruction = czlib_has_crc32c() != 0

  /// Eight tables of 256 entries: table `n` contains the effect of a byte that `n` other bytes follow.
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var sum = UInt32(byte)
      for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0x82F6_3B78 : sum >> 1 }
      tables[byte] = sum
    }
    for table in 1..<8 {
      for byte in 0..<256 {
        let sum = tables[(table - 1) * 256 + byte]
        tables[table * 256 + byte] = sum >> 8 ^ tables[Int(sum & 0xFF)]
      }
    }
    return tables
  }()

  /// Extends a CRC-32C over more bytes. Pass 0 to start.
  package static func extend(_ sum: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
    guard let start = bytes.baseAddress, !bytes.isEmpty else { return sum }
    guard hasInstruction else { return extendByTables(sum, bytes) }
    return czlib_crc32c(sum, start.assumingMemoryBound(to: UInt8.self), UInt(bytes.count))
  }

  /// Extends a CRC-32C with the tables, on any processor.
  package static func extendByTables(_ sum: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
    tables.withUnsafeBufferPointer { tables in
      var sum = ~sum
      var offset = 0
      while offset + 8 <= bytes.count {
        let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) ^ UInt64(sum)
        sum = 0
        for place in 0..<8 {
          sum ^= tables[(7 - place) * 256 + Int(word >> (8 * UInt64(place)) & 0xFF)]
        }
        offset += 8
      }
      while offset < bytes.count {
        sum = sum >> 8 ^ tables[Int(UInt8(truncatingIfNeeded: sum) ^ bytes[offset])]
        offset += 1
      }
      return ~sum
    }
  }
}
