import Glibc

/// Reads content files.
enum ContentFile {
  private static let pieceBytes = 256 << 10

  /// Opens an open file again, with an offset and locks of its own. It may have no name any longer.
  static func openAgain(_ descriptor: Int32) throws(FilesError) -> Int32 {
    let path = "/proc/self/fd/\(descriptor)"
    let copy = open(path, O_RDONLY | O_CLOEXEC)
    guard copy >= 0 else { throw ContentDirectory.failure("open", path) }
    return copy
  }

  /// Passes the bytes of an open file to `body` in pieces, from the beginning to `count` or to the end of the file.
  /// - Throws: ``FilesError/system(operation:path:code:)`` if the file cannot be read or ends before `count`; the
  ///   errors of `body`.
  static func forEachPiece(
    of descriptor: Int32, path: String, count: Int? = nil,
    _ body: (UnsafeRawBufferPointer) throws(FilesError) -> Void
  ) throws(FilesError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceBytes, alignment: 16)
    defer { buffer.deallocate() }
    var done = 0
    while done < count ?? .max {
      let read = pread(descriptor, buffer.baseAddress, min(buffer.count, (count ?? .max) - done), off_t(done))
      if read < 0 && errno == EINTR { continue }
      if read == 0, count == nil { return }
      guard read > 0 else { throw .system(operation: "read", path: path, code: read < 0 ? errno : EIO) }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<read]))
      done += read
    }
  }
}
