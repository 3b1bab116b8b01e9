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
    var failure: FixtureTreeError?
    let bytes = [UInt8](unsafeUninitializedCapacity: max(0, count)) { buffer, filled in
      do throws(FixtureTreeError) {
        filled = try read(
          at: offset,
          into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[..<max(0, count)]))
      } catch { failure = error }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Fills a buffer from an offset on. Returns the number of bytes, fewer than those of the buffer only at the end of the
  /// file.
  private func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(FixtureTreeError) -> Int {
    if descriptor < 0 {
      let rest = memory.dropFirst(offset).prefix(buffer.count)
      buffer.copyBytes(from: rest)
      return rest.count
    }
    var filled = 0
    while filled < buffer.count {
      let start = buffer.baseAddress.map { $0 + filled }
      let piece = pread(descriptor, start, buffer.count - filled, off_t(offset + filled))
      if piece == 0 { break }
      if piece > 0 {
        filled += piece
      } else if errno != EINTR {
        throw FixtureTreeError(file: path, message: "cannot read the file: \(String(cString: strerror(errno)))")
      }
    }
    return filled
  }

  /// Returns the bytes of a range as a source with a name for errors; the default is the path.
  func source(_ range: Range<Int>, name: String? = nil) -> ByteSource {
    var offset = range.lowerBound
    return ByteSource(name: name ?? path) { [self] (buffer) throws(FixtureTreeError) in
      let wanted = min(buffer.count, range.upperBound - offset)
      let count = try read(at: offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
      offset += count
      return count
    }
  }
}

/// A stream of bytes that are read once.
final class ByteStream {
  /// Returns the next bytes, or an empty array at the end.
  typealias Next = () throws(FixtureTreeError) -> [UInt8]

  private static let pieceBytes = 256 << 10

  private let next: Next
  private var buffer: [UInt8] = []
  private var position = 0

  init(_ next: @escaping Next) { self.next = next }

  convenience init(_ source: ByteSource) { self.init(Self.pieces(source)) }

  /// Returns a function that returns the bytes of a source, piece by piece, and an empty array at the end.
  static func pieces(_ source: ByteSource) -> Next {
    { () throws(FixtureTreeError) in
      var failure: FixtureTreeError?
      let piece = [UInt8](unsafeUninitializedCapacity: pieceBytes) { buffer, count in
        do throws(FixtureTreeError) {
          count = try source.read(
            into: UnsafeMutableRawBufferPointer(UnsafeMutableBufferPointer(rebasing: buffer[..<pieceBytes])))
        } catch { failure = error }
      }
      if let failure { throw failure }
      return piece
    }
  }

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
