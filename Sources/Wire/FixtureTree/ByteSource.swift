import Glibc

/// The input of a reader: a file, memory, or a function that returns the bytes piece by piece.
///
/// A source belongs to one reader, which reads it once from start to end.
package final class ByteSource {
  /// Writes to the start of the buffer and returns the number of bytes written; 0 means the end.
  package typealias Read = (UnsafeMutableRawBufferPointer) throws(FixtureTreeError) -> Int

  /// The name of the source in errors.
  package let name: String
  private let readNext: Read
  /// The bytes that ``peek(_:)`` read and that are not consumed yet.
  private var head: [UInt8] = []
  private var headOffset = 0

  /// Creates a source that reads from a function.
  package init(name: String, read: @escaping Read) {
    self.name = name
    self.readNext = read
  }

  /// Opens a file, or standard input if the path is `-`. The file closes when the source is deallocated.
  /// - Throws: ``FixtureTreeError`` if the file cannot be opened.
  package convenience init(file path: String) throws(FixtureTreeError) {
    let file = try OpenFile(path)
    self.init(name: path) { (buffer) throws(FixtureTreeError) in try file.read(into: buffer) }
  }

  /// Creates a source for bytes in memory. Each read returns at most `chunkBytesMax` of them.
  package convenience init(_ bytes: [UInt8], chunkBytesMax: Int = .max, name: String = "input") {
    var offset = 0
    self.init(name: name) { buffer in
      let count = min(buffer.count, bytes.count - offset, chunkBytesMax)
      bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count])) }
      offset += count
      return count
    }
  }

  /// Writes to the start of the buffer and returns the number of bytes written; 0 means the end.
  /// - Throws: ``FixtureTreeError`` if reading fails.
  func read(into buffer: UnsafeMutableRawBufferPointer) throws(FixtureTreeError) -> Int {
    guard headOffset < head.count else { return try readNext(buffer) }
    let count = min(buffer.count, head.count - headOffset)
    head.withUnsafeBytes {
      buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[headOffset..<headOffset + count]))
    }
    headOffset += count
    if headOffset == head.count {
      head = []
      headOffset = 0
    }
    return count
  }

  /// Returns all remaining bytes.
  /// - Throws: ``FixtureTreeError`` if reading fails, or if more than `bytesMax` bytes remain.
  package func readAll(bytesMax: Int) throws(FixtureTreeError) -> [UInt8] {
    var bytes: [UInt8] = []
    while true {
      let piece = try peek(64 << 10)
      head = []
      headOffset = 0
      if piece.isEmpty { return bytes }
      bytes += piece
      guard bytes.count <= bytesMax else {
        throw FixtureTreeError(file: name, message: "is longer than \(bytesMax) bytes")
      }
    }
  }

  /// Returns up to `count` of the next bytes without consuming them. If the bytes of an earlier peek are not consumed
  /// yet, `count` must not be less than the count of that peek.
  /// - Throws: ``FixtureTreeError`` if reading fails.
  func peek(_ count: Int) throws(FixtureTreeError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
      var piece = 0
      var failure: FixtureTreeError?
      bytes.withUnsafeMutableBytes { buffer in
        do throws(FixtureTreeError) {
          piece = try read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]))
        } catch {
          failure = error
        }
      }
      if let failure { throw failure }
      if piece == 0 { break }
      filled += piece
    }
    bytes.removeLast(count - filled)
    head = bytes
    return bytes
  }
}

/// An open file descriptor, closed on deinitialization.
private final class OpenFile {
  private let descriptor: Int32
  private let path: String

  init(_ path: String) throws(FixtureTreeError) {
    self.path = path
    descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure("cannot open the file", path) }
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
  }

  deinit {
    if descriptor > STDIN_FILENO { close(descriptor) }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws(FixtureTreeError) -> Int {
    while true {
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      if count >= 0 { return count }
      guard errno == EINTR else { throw Self.failure("cannot read the file", path) }
    }
  }

  private static func failure(_ what: String, _ path: String) -> FixtureTreeError {
    FixtureTreeError(file: path, message: "\(what): \(String(cString: strerror(errno)))")
  }
}
