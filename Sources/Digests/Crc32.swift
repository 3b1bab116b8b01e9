import CZlib

/// CRC-32 with the polynomial of gzip and PNG, computed by zlib.
package enum Crc32 {
  /// Extends a CRC-32 over more bytes. Pass 0 to start.
  package static func extend(_ sum: UInt32, _ bytes: UnsafeRawBufferPointer) -> UInt32 {
    // zlib restarts at 0 if the address is null.
    guard let start = bytes.baseAddress, !bytes.isEmpty else { return sum }
    return UInt32(truncatingIfNeeded: crc32_z(UInt(sum), start.assumingMemoryBound(to: UInt8.self), bytes.count))
  }
}
