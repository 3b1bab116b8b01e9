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

  /// Opens a file, or standard input if the path is `-`. The file closes when the source is deallocated. `meter` counts
  /// the bytes read.
  /// - Throws: ``FixtureTreeError`` if the file cannot be opened.
  package convenience init(file path: String, meter: ReadMeter? = nil) throws(FixtureTreeError) {
    let file = try OpenFile(path)
    self.init(name: path) { (buffer) throws(FixtureTreeError) in
      let count = try file.read(into: buffer)
      meter?.add(count)
      return count
    }
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
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(FixtureTreeError) -> Int {
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
    var piece = [UInt8](repeating: 0, count: 64 << 10)
    while true {
      let count = try fill(&piece, from: 0, isHead: true)
      if count == 0 { return bytes }
      bytes += piece[..<count]
      guard bytes.count <= bytesMax else {
        throw FixtureTreeError(file: name, message: "is longer than \(bytesMax) bytes")
      }
    }
  }

  /// Returns up to `count` of the next bytes without consuming them; fewer only at the end.
  /// - Throws: ``FixtureTreeError`` if reading fails.
  func peek(_ count: Int) throws(FixtureTreeError) -> [UInt8] {
    if head.count - headOffset < count {
      var bytes = Array(head[headOffset...])
      var filled = bytes.count
      bytes.append(contentsOf: repeatElement(0, count: count - filled))
      while filled < count {
        let piece = try fill(&bytes, from: filled, isHead: false)
        if piece == 0 { break }
        filled += piece
      }
      bytes.removeLast(count - filled)
      head = bytes
      headOffset = 0
    }
    return Array(head[headOffset...].prefix(count))
  }

  /// Reads bytes into an array from an index on: with `isHead` the next bytes, else those after the peeked ones.
  private func fill(_ bytes: inout [UInt8], from start: Int, isHead: Bool) throws(FixtureTreeError) -> Int {
    var count = 0
    var failure: FixtureTreeError?
    bytes.withUnsafeMutableBytes { buffer in
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[start...])
      do throws(FixtureTreeError) {
        count = isHead ? try read(into: rest) : try readNext(rest)
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return count
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
    var file = stat()
    guard fstat(descriptor, &file) != 0 || file.st_mode & S_IFMT != S_IFDIR else {
      if descriptor > STDIN_FILENO { close(descriptor) }
      throw FixtureTreeError(
        file: path, message: "is a directory, not a file of documents; name the files in it, such as \(path)/*.json")
    }
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
