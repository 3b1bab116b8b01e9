import FixtureTree
import WireFormat

/// A reader for the records of a file in the format of ``RecordLog``. It checks every checksum.
///
/// Memory: a buffer of 256 KiB, and the record if it spans blocks.
final class RecordLogReader {
  private static let bufferBlocks = 8

  /// The file's name in errors.
  let name: String
  /// The number of the latest record, from 1.
  private(set) var number = 0
  /// The offset of the latest record in the file.
  private(set) var recordOffset = 0
  private let source: ByteFiller
  private var buffer: [UInt8]
  private var count = 0
  /// The offset of the next chunk in the buffer.
  private var position = 0
  /// The offset of the buffer in the file.
  private var base = 0
  private var assembled: [UInt8] = []
  /// Whether the first chunk of the latest record was read, but not its last one.
  private var isAssembling = false

  /// Fills a buffer, and returns the number of bytes, which is less than the buffer's only at the end.
  typealias ByteFiller = (UnsafeMutableRawBufferPointer) throws(FixtureTreeError) -> Int

  init(name: String, _ source: @escaping ByteFiller) {
    self.name = name
    self.source = source
    buffer = [UInt8](repeating: 0, count: Self.bufferBlocks * RecordLog.blockBytes)
  }

  /// Passes the next record to `body`, and returns its result, or `nil` at the end of the file. The bytes are valid
  /// during the call.
  /// - Throws: ``FixtureTreeError`` with the record and its offset if a chunk is damaged or missing, or if `body`
  ///   throws.
  func next<R>(
    _ body: (UnsafeRawBufferPointer) throws(RecordError) -> R
  ) throws(FixtureTreeError) -> R? {
    guard let range = try nextRecord() else { return nil }
    do throws(RecordError) {
      guard let range else { return try assembled.withRawBytes { (bytes) throws(RecordError) in try body(bytes) } }
      return try buffer.withRawBytes { (bytes) throws(RecordError) in
        try body(UnsafeRawBufferPointer(rebasing: bytes[range]))
      }
    } catch {
      var located = failure(error.message)
      (located.path, located.field) = (error.path, error.field)
      throw located
    }
  }

  /// Reads the next record. Returns its range in the buffer, or an inner `nil` if it is in `assembled`, or an outer
  /// `nil` at the end of the file.
  private func nextRecord() throws(FixtureTreeError) -> Range<Int>?? {
    isAssembling = false
    if assembled.capacity > 4 << 20 { assembled = [] }
    guard let first = try nextChunk() else { return .none }
    number += 1
    recordOffset = base + first.data.lowerBound - RecordLog.headerBytes
    switch first.type {
    case .full: return .some(first.data)
    case .first: break
    case .middle, .last: throw damage("its first part is missing")
    }
    isAssembling = true
    assembled.removeAll(keepingCapacity: true)
    assembled.append(contentsOf: buffer[first.data])
    while true {
      guard let chunk = try nextChunk() else { throw truncation() }
      guard chunk.type == .middle || chunk.type == .last else { throw damage("its last part is missing") }
      assembled.append(contentsOf: buffer[chunk.data])
      guard assembled.count <= ExportLimits.recordBytesMax else {
        throw failure("the record is longer than \(ExportLimits.recordBytesMax) bytes")
      }
      if chunk.type == .last { return .some(nil) }
    }
  }

  /// Returns an error at the latest record.
  func failure(_ message: String) -> FixtureTreeError {
    FixtureTreeError(file: "\(name): record \(number), at byte \(recordOffset)", message: message)
  }

  private func damage(_ reason: String) -> FixtureTreeError {
    failure("the record is damaged: \(reason); copy or download the file again")
  }

  private func truncation() -> FixtureTreeError {
    failure("the file ends in the middle of this record; copy or download the file again")
  }

  private typealias Chunk = (type: RecordLog.ChunkType, data: Range<Int>)

  /// Returns the next chunk, or `nil` at the end. The range is valid until the next call.
  private func nextChunk() throws(FixtureTreeError) -> Chunk? {
    while true {
      let blockEnd = min(count, (position / RecordLog.blockBytes + 1) * RecordLog.blockBytes)
      let left = blockEnd - position
      if left < RecordLog.headerBytes {
        try requireZeros(position..<blockEnd)
        position = blockEnd
        if position < count { continue }
        guard try fill() else { return nil }
        continue
      }
      let length = Int(buffer[position + 4]) | Int(buffer[position + 5]) << 8
      if length == 0, buffer[position + 6] == 0 {
        // The rest of the block is unused.
        try requireZeros(position..<blockEnd)
        position = blockEnd
        continue
      }
      let start = position + RecordLog.headerBytes
      guard start + length <= blockEnd else {
        let isAtEnd = blockEnd == count && !count.isMultiple(of: RecordLog.blockBytes)
        throw upcoming(isAtEnd ? "the file ends in the middle of this record" : "its length is not possible")
      }
      let stored = (0..<4).reduce(UInt32(0)) { $0 | UInt32(buffer[position + $1]) << (8 * UInt32($1)) }
      let sum = buffer.withUnsafeBytes {
        RecordLog.checksum(UnsafeRawBufferPointer(rebasing: $0[start - 1..<start + length]))
      }
      guard sum == stored else { throw upcoming("its checksum is wrong") }
      guard let type = RecordLog.ChunkType(rawValue: buffer[start - 1]) else { throw upcoming("its type is unknown") }
      position = start + length
      return (type, start..<start + length)
    }
  }

  /// Returns an error at the chunk that begins at the current position.
  private func upcoming(_ reason: String) -> FixtureTreeError {
    FixtureTreeError(
      file: "\(name): record \(isAssembling ? number : number + 1), at byte \(base + position)",
      message: number == 0 && base + position == 0
        ? "not the record log of a Firebase export, or damaged: \(reason)"
        : "the record is damaged: \(reason); copy or download the file again")
  }

  private func requireZeros(_ range: Range<Int>) throws(FixtureTreeError) {
    guard buffer[range].allSatisfy({ $0 == 0 }) else {
      throw FixtureTreeError(
        file: "\(name): record \(isAssembling ? number : number + 1), at byte \(base + range.lowerBound)",
        message: base + range.upperBound == base + count && count < buffer.count
          ? "the file ends in the middle of this record; copy or download the file again"
          : "the unused end of a block is not empty, so the file is damaged; copy or download the file again")
    }
  }

  /// Reads the next blocks. Returns `false` at the end.
  private func fill() throws(FixtureTreeError) -> Bool {
    guard count == buffer.count || base + count == 0 else { return false }
    base += count
    var read = 0
    var failure: FixtureTreeError?
    buffer.withUnsafeMutableBytes { bytes in
      do throws(FixtureTreeError) { read = try source(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
    count = read
    position = 0
    return count > 0
  }
}

/// The reason why the content of a record cannot be used.
struct RecordError: Error {
  /// The path of the document at the error; empty if it is unknown.
  var path = ""
  /// The path of the field at the error; empty outside a field.
  var field = ""
  var message: String
}
