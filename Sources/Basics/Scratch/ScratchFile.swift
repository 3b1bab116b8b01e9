import Glibc

/// A temporary file without a name: the system removes it when the process closes it or dies.
package final class ScratchFile: Sendable {
  private let descriptor: Int32
  private let directory: String

  /// Creates a file in a directory, or in the system's temporary directory if that fails.
  /// - Throws: ``ScratchError`` if neither is possible.
  package init(in directory: String?) throws(ScratchError) {
    let temporary = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var code: Int32 = 0
    for path in [directory, temporary].compactMap({ $0 }) {
      let descriptor = Self.open(in: path)
      guard descriptor < 0 else {
        self.descriptor = descriptor
        self.directory = path
        return
      }
      code = errno
    }
    throw Self.error("open", directory ?? temporary, code)
  }

  deinit { Glibc.close(descriptor) }

  /// Frees the disk space of the file, which must not be used any more.
  func close() { _ = ftruncate(descriptor, 0) }

  /// The flag of a file without a name, which Swift does not import.
  private static let withoutName: Int32 = 0o20000000 | O_DIRECTORY

  private static func open(in directory: String) -> Int32 {
    let descriptor = Glibc.open(directory, withoutName | O_RDWR | O_CLOEXEC, 0o600)
    guard descriptor < 0, errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL else { return descriptor }
    // The file system supports only files with names.
    var name = Array("\(directory)/hearth-XXXXXX".utf8CString)
    let named = mkstemp(&name)
    guard named >= 0 else { return named }
    unlink(name)
    _ = fcntl(named, F_SETFD, FD_CLOEXEC)
    return named
  }

  /// Writes bytes at an offset.
  /// - Throws: ``ScratchError/diskFull(path:)`` if the disk is full, or another ``ScratchError``.
  package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(ScratchError) {
    var written = 0
    while written < bytes.count {
      let step = pwrite(
        descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written, off_t(offset + written))
      if step < 0, errno == EINTR { continue }
      guard step > 0 else { throw Self.error("pwrite", directory, step == 0 ? ENOSPC : errno) }
      written += step
    }
  }

  /// Fills `bytes` from an offset on.
  /// - Throws: ``ScratchError/system(operation:path:code:)`` if the file cannot be read or is too short.
  package func read(at offset: Int, into bytes: UnsafeMutableRawBufferPointer) throws(ScratchError) {
    var done = 0
    while done < bytes.count {
      let step = pread(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done, off_t(offset + done))
      if step < 0, errno == EINTR { continue }
      guard step > 0 else { throw Self.error("pread", directory, step == 0 ? EIO : errno) }
      done += step
    }
  }

  private static func error(_ operation: String, _ path: String, _ code: Int32) -> ScratchError {
    code == ENOSPC || code == EDQUOT
      ? .diskFull(path: path) : .system(operation: operation, path: path, code: code)
  }
}
