package import FixtureTree
import Glibc

/// A file of records in the format of ``RecordLog`` that is being written. It gets its name when it is complete and on
/// disk. Memory: 256 KiB.
final class OutputLog {
  private static let bufferBytes = 256 << 10

  /// The size of the file so far, in bytes.
  private(set) var byteCount = 0
  private let path: String
  private let unfinished: String
  private let descriptor: Int32
  private var buffer: [UInt8] = []
  private var isFinished = false

  /// Creates the file under another name.
  /// - Throws: ``FixtureTreeError`` if it cannot be created.
  init(_ path: String) throws(FixtureTreeError) {
    self.path = path
    unfinished = "\(path).\(getpid()).part"
    descriptor = open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw ExportFiles.failure("cannot be written", path) }
    buffer.reserveCapacity(Self.bufferBytes + RecordLog.blockBytes)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    if !isFinished { unlink(unfinished) }
  }

  /// Appends a record.
  /// - Throws: ``FixtureTreeError`` if the file cannot be written.
  func append(_ record: UnsafeRawBufferPointer) throws(FixtureTreeError) {
    var rest = record[...]
    var isFirst = true
    repeat {
      let left = RecordLog.blockBytes - byteCount % RecordLog.blockBytes
      if left < RecordLog.headerBytes {
        for _ in 0..<left { buffer.append(0) }
        byteCount += left
        continue
      }
      let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(left - RecordLog.headerBytes))
      rest = rest.dropFirst(piece.count)
      let type: RecordLog.ChunkType = isFirst ? (rest.isEmpty ? .full : .first) : (rest.isEmpty ? .last : .middle)
      appendChunk(type, piece)
      isFirst = false
    } while isFirst || !rest.isEmpty
    if buffer.count >= Self.bufferBytes { try flush() }
  }

  private func appendChunk(_ type: RecordLog.ChunkType, _ data: UnsafeRawBufferPointer) {
    let sum = RecordLog.checksum(type, data)
    for shift in 0..<4 { buffer.append(UInt8(truncatingIfNeeded: sum >> (8 * UInt32(shift)))) }
    buffer.append(UInt8(truncatingIfNeeded: data.count))
    buffer.append(UInt8(truncatingIfNeeded: data.count >> 8))
    buffer.append(type.rawValue)
    buffer.append(contentsOf: data)
    byteCount += RecordLog.headerBytes + data.count
  }

  private func flush() throws(FixtureTreeError) {
    try ExportFiles.write(buffer, to: descriptor, path)
    buffer.removeAll(keepingCapacity: true)
  }

  /// Writes the rest, syncs the file and gives it its name.
  /// - Throws: ``FixtureTreeError`` if that fails.
  func finish() throws(FixtureTreeError) {
    try flush()
    guard fsync(descriptor) == 0, rename(unfinished, path) == 0 else {
      throw ExportFiles.failure("cannot be written", path)
    }
    isFinished = true
  }
}

/// The files and folders of an export that is being written.
package enum ExportFiles {
  static func failure(_ what: String, _ path: String) -> FixtureTreeError {
    FixtureTreeError(file: path, message: "\(what): \(String(cString: strerror(errno)))")
  }

  static func write(_ bytes: [UInt8], to descriptor: Int32, _ path: String) throws(FixtureTreeError) {
    var offset = 0
    while offset < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress.map { $0 + offset }, $0.count - offset)
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw failure("cannot be written", path)
      }
      offset += count
    }
  }

  /// Creates a folder, and those above it that are missing.
  /// - Throws: `FixtureTreeError` if that fails.
  package static func makeFolder(_ path: String) throws(FixtureTreeError) {
    var end = path.utf8.startIndex
    while end < path.utf8.endIndex {
      end = path.utf8[path.utf8.index(after: end)...].firstIndex(of: UInt8(ascii: "/")) ?? path.utf8.endIndex
      let part = String(Substring(path.utf8[..<end]))
      guard mkdir(part, 0o700) == 0 || errno == EEXIST else { throw failure("the folder cannot be created", part) }
    }
  }

  /// Writes a whole file. It gets its name when it is complete and on disk.
  /// - Throws: `FixtureTreeError` if that fails.
  package static func write(_ bytes: [UInt8], to path: String) throws(FixtureTreeError) {
    let unfinished = "\(path).\(getpid()).part"
    let descriptor = open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("cannot be written", path) }
    defer {
      close(descriptor)
      unlink(unfinished)
    }
    try write(bytes, to: descriptor, path)
    guard fsync(descriptor) == 0, rename(unfinished, path) == 0 else { throw failure("cannot be written", path) }
  }
}
