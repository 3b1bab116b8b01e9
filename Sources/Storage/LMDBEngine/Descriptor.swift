import Glibc
package import KeyValue

/// An open file descriptor that is closed at the end of its lifetime.
package struct Descriptor: ~Copyable {
  /// The number of the descriptor, which is open as long as this value exists.
  package let number: Int32
  /// The path with which it was opened.
  package let path: String

  /// Opens `path`. `O_CLOEXEC` is added to `flags`.
  /// - Throws: ``StorageError`` if the call fails.
  package init(path: String, flags: Int32, mode: UInt32 = 0) throws(StorageError) {
    let opened = open(path, flags | O_CLOEXEC, mode)
    guard opened >= 0 else { throw .systemCall("open", path: path) }
    number = opened
    self.path = path
  }

  deinit {
    close(number)
  }

  /// Returns the length of the file, in bytes.
  /// - Throws: ``StorageError`` if the call fails.
  package func length() throws(StorageError) -> Int {
    var information = stat()
    guard fstat(number, &information) == 0 else { throw .systemCall("fstat", path: path) }
    return Int(information.st_size)
  }

  /// Waits until everything written so far is on the disk.
  /// - Throws: ``StorageError`` if the call fails.
  package func sync() throws(StorageError) {
    guard fsync(number) == 0 else { throw .systemCall("fsync", path: path) }
  }

  /// Fills `buffer` from the file at `offset`. Returns the number of bytes read, which is smaller only at the
  /// file's end.
  /// - Throws: ``StorageError`` if the call fails.
  package func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(StorageError) -> Int {
    var filled = 0
    while filled < buffer.count, let start = buffer.baseAddress {
      let count = pread(number, start + filled, buffer.count - filled, off_t(offset + filled))
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .systemCall("pread", path: path) }
      if count == 0 { break }
      filled += count
    }
    return filled
  }

  /// Makes the file names in the directory of `path` durable.
  /// - Throws: ``StorageError`` if a call fails.
  package static func syncDirectory(of path: String) throws(StorageError) {
    let directory: String
    if let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) {
      directory = slash == path.utf8.startIndex ? "/" : String(path[..<slash])
    } else {
      directory = "."
    }
    try Descriptor(path: directory, flags: O_RDONLY | O_DIRECTORY).sync()
  }
}
