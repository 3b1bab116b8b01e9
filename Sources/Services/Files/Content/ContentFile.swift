import Glibc

/// Reads files of content.
enum ContentFile {
  private static let pieceBytes = 256 << 10

  /// Lends the bytes of an open file, from its beginning to `count` or to its end, in pieces.
  /// - Throws: ``FilesError/system(operation:path:code:)`` where it cannot be read, or ends before `count`; and what
  ///   `body` throws.
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
