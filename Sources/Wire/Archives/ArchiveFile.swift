import FixtureTree
import Glibc

/// A regular file of this machine that is read at any position, or bytes in memory.
final class ArchiveFile {
  let path: String
  /// The size when the file was opened, in bytes.
  let size: Int
  private let descriptor: Int32
  private let memory: [UInt8]

  /// Uses bytes in memory, for tests.
  init(name: String, _ bytes: [UInt8]) {
    (path, size, descriptor, memory) = (name, bytes.count, -1, bytes)
  }

  init(_ path: String) throws(FixtureTreeError) {
    self.path = path
    memory = []
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    var status = stat()
    let isOpen = descriptor >= 0 && fstat(descriptor, &status) == 0
    let reason = String(cString: strerror(errno))
    size = isOpen ? Int(status.st_size) : 0
    guard isOpen else { throw FixtureTreeError(file: path, message: "cannot open the file: \(reason)") }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Returns up to `count` bytes at an offset, fewer only at the end of the file.
  /// - Throws: ``FixtureTreeError`` if reading fails.
  func bytes(at offset: Int, count: Int) throws(FixtureTreeError) -> [UInt8] {
    if descriptor < 0 { return Array(memory.dropFirst(offset).prefix(max(0, count))) }
    var code: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: max(0, count)) { buffer, filled in
      while filled < count {
        let piece = pread(descriptor, buffer.baseAddress.map { $0 + filled }, count - filled, off_t(offset + filled))
        if piece == 0 { break }
        if piece > 0 {
          filled += piece
        } else if errno != EINTR {
          code = errno
          break
        }
      }
    }
    if code != 0 {
      throw FixtureTreeError(file: path, message: "cannot read the file: \(String(cString: strerror(code)))")
    }
    return bytes
  }

  /// Returns a function that returns the bytes of a range, piece by piece, and an empty array at the end.
  func pieces(_ range: Range<Int>) -> ByteStream.Next {
    var offset = range.lowerBound
    return { () throws(FixtureTreeError) in
      let piece = try self.bytes(at: offset, count: min(256 << 10, range.upperBound - offset))
      offset += piece.count
      return piece
    }
  }
}

/// A stream of bytes that are read once.
final class ByteStream {
  /// Returns the next bytes, or an empty array at the end.
  typealias Next = () throws(FixtureTreeError) -> [UInt8]

  private let next: Next
  private var buffer: [UInt8] = []
  private var position = 0

  init(_ next: @escaping Next) { self.next = next }

  /// Returns the next `count` bytes, fewer only at the end.
  func take(_ count: Int) throws(FixtureTreeError) -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      let piece = try takeSome(count - bytes.count)
      if piece.isEmpty { break }
      bytes += piece
    }
    return bytes
  }

  /// Returns at least one of the next bytes and at most `countMax`; none at the end.
  func takeSome(_ countMax: Int) throws(FixtureTreeError) -> ArraySlice<UInt8> {
    if position == buffer.count {
      buffer = try next()
      position = 0
    }
    let piece = buffer[position..<min(buffer.count, position + countMax)]
    position += piece.count
    return piece
  }
}
