package import FixtureTree
import Glibc

/// A file that is read from start to end. If the file changes meanwhile, that is noticed at its end.
package final class StampedFile {
  /// The state of a file: another value means that the content may have changed.
  package struct Stamp: Hashable, Sendable {
    /// The size in bytes.
    package let size: Int
    private let device: UInt
    private let node: UInt
    private let seconds: Int
    private let nanoseconds: Int

    fileprivate init(_ status: stat) {
      size = Int(status.st_size)
      device = UInt(status.st_dev)
      node = UInt(status.st_ino)
      seconds = status.st_mtim.tv_sec
      nanoseconds = status.st_mtim.tv_nsec
    }
  }

  /// The state when the file was opened.
  package let stamp: Stamp
  private let path: String
  private let descriptor: Int32

  /// Opens a regular file.
  /// - Throws: `FixtureTreeError` if the path does not name a readable regular file.
  package init(_ path: String) throws(FixtureTreeError) {
    self.path = path
    // Opening a pipe or a device must not block. It is refused below.
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    var status = stat()
    let isOpen = descriptor >= 0 && fstat(descriptor, &status) == 0
    let reason = String(cString: strerror(errno))
    stamp = Stamp(status)
    guard isOpen else { throw FixtureTreeError(file: path, message: "cannot open the file: \(reason)") }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw FixtureTreeError(file: path, message: "is not a regular file")
    }
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Fills the buffer, and returns the number of bytes, which is less than the buffer's only at the end of the file.
  /// - Throws: `FixtureTreeError` if reading fails.
  package func read(into buffer: UnsafeMutableRawBufferPointer) throws(FixtureTreeError) -> Int {
    var filled = 0
    while filled < buffer.count {
      let count = Glibc.read(descriptor, buffer.baseAddress.map { $0 + filled }, buffer.count - filled)
      if count == 0 { break }
      if count > 0 {
        filled += count
      } else if errno != EINTR {
        throw FixtureTreeError(file: path, message: "cannot read the file: \(String(cString: strerror(errno)))")
      }
    }
    return filled
  }

  /// Checks that the file still has the state of an earlier moment.
  /// - Throws: `FixtureTreeError` if it has changed.
  package func requireUnchanged(since earlier: Stamp) throws(FixtureTreeError) {
    var status = stat()
    guard fstat(descriptor, &status) == 0, Stamp(status) == earlier else {
      throw FixtureTreeError(
        file: path, message: "the file changed while it was read; wait until the export is complete, or copy it first")
    }
  }
}
