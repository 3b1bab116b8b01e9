import Glibc

/// Where a reader's bytes come from: a file, memory, or a function that hands out pieces.
///
/// Read once, from front to back. Belongs to one reader.
package final class ByteSource {
  /// Fills the buffer from its start and returns how many bytes it wrote; 0 means the end.
  package typealias Read = (UnsafeMutableRawBufferPointer) throws(FixtureTreeError) -> Int

  /// The name that errors carry.
  package let name: String
  private let readNext: Read
  /// Bytes that ``peek(_:)`` took and nobody consumed yet.
  private var head: [UInt8] = []
  private var headOffset = 0

  /// Creates a source from a function.
  package init(name: String, read: @escaping Read) {
    self.name = name
    self.readNext = read
  }

  /// Opens a file; `-` is standard input. The file is closed when the source goes away.
  /// - Throws: ``FixtureTreeError`` when it cannot be opened.
  package convenience init(file path: String) throws(FixtureTreeError) {
    let file = try OpenFile(path)
    self.init(name: path) { (buffer) throws(FixtureTreeError) in try file.read(into: buffer) }
  }

  /// Hands out bytes in memory, at most `chunkBytesMax` at a time.
  package convenience init(_ bytes: [UInt8], chunkBytesMax: Int = .max, name: String = "input") {
    var offset = 0
    self.init(name: name) { buffer in
      let count = min(buffer.count, bytes.count - offset, chunkBytesMax)
      bytes.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count])) }
      offset += count
      return count
    }
  }

  /// Fills the buffer from its start; returns how many bytes, 0 at the end.
  /// - Throws: ``FixtureTreeError`` when reading fails.
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

  /// All bytes that are left.
  /// - Throws: ``FixtureTreeError`` when reading fails, or when there are more than `bytesMax`.
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

  /// The first bytes, up to `count` of them, which stay to be read.
  /// - Throws: ``FixtureTreeError`` when reading fails.
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

/// An open file descriptor that closes itself.
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
