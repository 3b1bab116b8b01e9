import CXXHash
import KeyValue

/// A place in the log of one store: after which commit, and after which history.
///
/// Its 24 bytes in a data file, three little-endian numbers in the order of the properties, and 8 bytes of the log's
/// secret must not change.
package struct LogPosition: Equatable, Sendable {
  /// The number of the last commit. The first commit of a store has number 1.
  package var sequence: UInt64 = 0
  /// The number of the opening of the store in which that commit was appended. It increases with each opening.
  package var epoch: UInt64 = 0
  /// A hash of that commit and all before it.
  package var chain: UInt64 = 0

  /// Whether a log can have this position. A greater number is damage, and the next one would overflow.
  var isPossible: Bool { max(sequence, epoch) < 1 << 62 }

  package init(sequence: UInt64 = 0, epoch: UInt64 = 0, chain: UInt64 = 0) {
    self.sequence = sequence
    self.epoch = epoch
    self.chain = chain
  }
}

extension LogPosition {
  /// Returns the position after an entry of a log that several nodes share. Its chain is made as that of a ``FileLog``, with
  /// another secret for each kind of entry.
  package func following(
    _ body: UnsafeRawBufferPointer, kind: UInt8, epoch: UInt64, secret: UInt64
  ) -> LogPosition {
    LogRecordHead(of: body, after: self, epoch: epoch, secret: secret &+ UInt64(kind)).position
  }
}

/// The head of a record: 48 bytes before the batch, which is padded with zeros to a multiple of 8.
///
///     0   length of the batch (4), magic number (4)
///     8   sequence    16  epoch
///     24  hash of the batch
///     32  chain: a hash of the chain before, sequence, epoch and the hash of the batch
///     40  hash of the 40 bytes above
///
/// All numbers are little-endian; all hashes are XXH3 with the secret of the log as their seed. The secret is a random
/// number that no client sees, so bytes of a document cannot look like a record. The form must not change.
struct LogRecordHead: Equatable {
  var batchBytes: Int
  var sequence: UInt64
  var epoch: UInt64
  var batchHash: UInt64
  var chain: UInt64

  static let bytes = 48
  static let magic: UInt32 = 0x4752_4C48

  /// The bytes of a record on the disk.
  static func recordBytes(batchBytes: Int) -> Int { bytes + (batchBytes + 7) & ~7 }

  /// Makes the head of the record that follows `previous`.
  init(of batch: UnsafeRawBufferPointer, after previous: LogPosition, epoch: UInt64, secret: UInt64) {
    batchBytes = batch.count
    sequence = previous.sequence + 1
    self.epoch = epoch
    batchHash = XXH3_64bits_withSeed(batch.baseAddress, batch.count, secret)
    chain = Self.chain(previous.chain, sequence, epoch, batchHash, secret)
  }

  /// Reads a head, or returns `nil` if the bytes are not one.
  init?(_ bytes: UnsafeRawBufferPointer, secret: UInt64) {
    guard bytes.count >= Self.bytes, bytes.littleEndian32(4) == Self.magic,
      XXH3_64bits_withSeed(bytes.baseAddress, 40, secret) == bytes.littleEndian(40)
    else { return nil }
    batchBytes = Int(bytes.littleEndian32(0))
    sequence = bytes.littleEndian(8)
    epoch = bytes.littleEndian(16)
    batchHash = bytes.littleEndian(24)
    chain = bytes.littleEndian(32)
    guard position.isPossible else { return nil }
  }

  /// Writes the head to the first 48 bytes of a buffer.
  func write(to buffer: UnsafeMutableRawBufferPointer, secret: UInt64) {
    buffer.storeBytes(of: UInt32(batchBytes).littleEndian, toByteOffset: 0, as: UInt32.self)
    buffer.storeBytes(of: Self.magic.littleEndian, toByteOffset: 4, as: UInt32.self)
    for (index, number) in [sequence, epoch, batchHash, chain].enumerated() {
      buffer.storeBytes(of: number.littleEndian, toByteOffset: 8 + 8 * index, as: UInt64.self)
    }
    let hash = XXH3_64bits_withSeed(buffer.baseAddress, 40, secret)
    buffer.storeBytes(of: hash.littleEndian, toByteOffset: 40, as: UInt64.self)
  }

  /// Whether these bytes are the batch of this head.
  func isHead(of batch: UnsafeRawBufferPointer, secret: UInt64) -> Bool {
    batch.count == batchBytes && XXH3_64bits_withSeed(batch.baseAddress, batch.count, secret) == batchHash
  }

  /// Whether this head follows `previous`.
  func follows(_ previous: LogPosition, secret: UInt64) -> Bool {
    sequence == previous.sequence + 1 && epoch >= previous.epoch
      && chain == Self.chain(previous.chain, sequence, epoch, batchHash, secret)
  }

  var position: LogPosition { LogPosition(sequence: sequence, epoch: epoch, chain: chain) }

  private static func chain(
    _ previous: UInt64, _ sequence: UInt64, _ epoch: UInt64, _ batchHash: UInt64, _ secret: UInt64
  ) -> UInt64 {
    var numbers = (previous.littleEndian, sequence.littleEndian, epoch.littleEndian, batchHash.littleEndian)
    return XXH3_64bits_withSeed(&numbers, 32, secret)
  }
}

/// The head of a segment: 64 bytes at the start of its file.
///
///     0   magic text "HEARTHLG"       8   format, 1 (2 bytes), length of the file (6 bytes; 0 is unknown)
///     16  secret of the log           24  number of the segment
///     32  sequence, epoch and chain of the position before its first record
///     56  hash of the 56 bytes above, with seed 0
struct LogSegmentHead: Equatable {
  var secret: UInt64
  var number: UInt64
  /// The length of the file, in bytes. A shorter file was cut, which may have removed commits without another trace.
  var fileBytes: Int
  var start: LogPosition

  static let bytes = 64
  static let magic: UInt64 = 0x474C_4854_5241_4548
  static let format: UInt64 = 1

  init(secret: UInt64, number: UInt64, fileBytes: Int, start: LogPosition) {
    self.secret = secret
    self.number = number
    self.fileBytes = fileBytes
    self.start = start
  }

  /// Reads a head, or returns `nil` if the bytes are not one.
  /// - Throws: ``StorageError/unsupportedFormat(path:found:supported:)`` for the head of a later format.
  init?(_ bytes: UnsafeRawBufferPointer, path: String) throws(StorageError) {
    guard bytes.count >= Self.bytes, bytes.littleEndian(0) == Self.magic,
      XXH3_64bits_withSeed(bytes.baseAddress, 56, 0) == bytes.littleEndian(56)
    else { return nil }
    let format = bytes.littleEndian(8) & 0xFFFF
    guard format == Self.format else {
      throw .unsupportedFormat(path: path, found: "log format \(format)", supported: "log format \(Self.format)")
    }
    fileBytes = Int(bytes.littleEndian(8) >> 16)
    secret = bytes.littleEndian(16)
    number = bytes.littleEndian(24)
    start = LogPosition(
      sequence: bytes.littleEndian(32), epoch: bytes.littleEndian(40), chain: bytes.littleEndian(48))
    guard start.isPossible, number < 1 << 62 else { return nil }
  }

  /// Writes the head to the first 64 bytes of a buffer.
  func write(to buffer: UnsafeMutableRawBufferPointer) {
    let format = Self.format | UInt64(fileBytes) << 16
    let numbers = [Self.magic, format, secret, number, start.sequence, start.epoch, start.chain]
    for (index, number) in numbers.enumerated() {
      buffer.storeBytes(of: number.littleEndian, toByteOffset: 8 * index, as: UInt64.self)
    }
    let hash = XXH3_64bits_withSeed(buffer.baseAddress, 56, 0)
    buffer.storeBytes(of: hash.littleEndian, toByteOffset: 56, as: UInt64.self)
  }
}

extension UnsafeRawBufferPointer {
  /// The little-endian number of 8 bytes at an offset, which is within the buffer.
  func littleEndian(_ offset: Int) -> UInt64 {
    UInt64(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
  }

  /// The little-endian number of 4 bytes at an offset, which is within the buffer.
  func littleEndian32(_ offset: Int) -> UInt32 {
    UInt32(littleEndian: loadUnaligned(fromByteOffset: offset, as: UInt32.self))
  }
}
