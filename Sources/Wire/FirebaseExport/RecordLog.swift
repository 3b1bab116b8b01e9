import Digests

/// The framing of LevelDB's log, which export files use. Source: `doc/log_format.md` of LevelDB, and output of the
/// official emulator.
///
/// A file is a sequence of blocks of 32 KiB; the last one may be shorter. A block contains chunks. A chunk is a masked
/// CRC-32C of the type and the data (4 bytes, little-endian), the length of the data (2 bytes), the type (1 byte), and
/// the data. A record is one chunk of type 1, or chunks of type 2, any number of type 3, and 4. If fewer than 7 bytes
/// remain in a block, they are zero. Managed exports also fill the last block of each file with zeros, and contain
/// empty files.
enum RecordLog {
  static let blockBytes = 32 << 10
  static let headerBytes = 7

  /// The part of a record that a chunk contains.
  enum ChunkType: UInt8 {
    case full = 1
    case first = 2
    case middle = 3
    case last = 4
  }

  /// Returns the checksum of a chunk as the file contains it. `typeAndData` is the byte of the type and the data.
  static func checksum(_ typeAndData: UnsafeRawBufferPointer) -> UInt32 { mask(Crc32c.extend(0, typeAndData)) }

  /// Returns the checksum of a chunk as the file contains it.
  static func checksum(_ type: ChunkType, _ data: UnsafeRawBufferPointer) -> UInt32 {
    let sum = withUnsafeBytes(of: type.rawValue) { Crc32c.extend(0, $0) }
    return mask(Crc32c.extend(sum, data))
  }

  private static func mask(_ sum: UInt32) -> UInt32 { (sum >> 15 | sum << 17) &+ 0xa282_ead8 }
}
