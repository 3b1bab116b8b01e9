import Glibc
package import KeyValue

/// The exclusive right of one process to write to a data directory, held until the object is released.
///
/// The lock is the kernel's (`flock`) on a file named ``fileName``, so it ends with the process, however the
/// process ends. The file's text only tells other processes the holder. It remains after the lock ends and means
/// nothing then.
package final class DataDirectoryLock: Sendable {
  /// The name of the lock file in the data directory.
  package static let fileName = "hearth.lock"

  /// The longest text read from a lock file, in bytes.
  private static let textBytesMax = 512

  /// The path of the lock file.
  package let path: String
  private let file: Descriptor

  /// Takes the lock of a data directory, which must exist.
  /// - Throws: ``StorageError/locked(path:holder:)`` if another process, or another object in this one, has the
  ///   lock; the holder reads like `hearth, process 123 (http://127.0.0.1:8080)`.
  ///   ``StorageError/system(operation:path:code:)`` if a system call fails.
  package init(directory: String) throws(StorageError) {
    path = "\(directory)/\(Self.fileName)"
    // From here on, an error ends the object, and its end closes the file.
    file = try Descriptor(path: path, flags: O_RDWR | O_CREAT, mode: 0o600)
    guard flock(file.number, LOCK_EX | LOCK_NB) == 0 else {
      guard errno == EWOULDBLOCK else { throw .systemCall("flock", path: path) }
      throw .locked(path: directory, holder: Self.holder(file.number))
    }
    try writeText("process \(getpid())")
  }

  /// Releases the lock. Closing the descriptor alone is not enough: a child process that is just being started has
  /// a copy of it until it executes its program.
  deinit { flock(file.number, LOCK_UN) }

  /// Adds the server's URL to the text that other processes see. Call it once the server listens.
  /// - Throws: ``StorageError`` if the file cannot be written.
  package func announce(serverURL: String) throws(StorageError) {
    try writeText("process \(getpid()) (\(serverURL))")
  }

  /// Returns the URL that the holder of a directory's lock announced, or `nil` if it announced none.
  ///
  /// The file may be left from a process that ended, so call this only after ``init(directory:)`` threw `locked`.
  package static func announcedURL(directory: String) -> String? {
    guard let file = try? Descriptor(path: "\(directory)/\(fileName)", flags: O_RDONLY) else { return nil }
    let text = holder(file.number)
    guard text.hasSuffix(")"), let start = text.lastIndex(of: "(") else { return nil }
    return String(text[text.index(after: start)...].dropLast())
  }

  /// Returns the holder of a directory's lock without creating a file, or `nil` if no process holds it or the file
  /// is not readable.
  ///
  /// It takes a shared lock for a moment, so another process that tries to lock the directory just then fails.
  package static func holder(ofDirectory directory: String) -> String? {
    guard let file = try? Descriptor(path: "\(directory)/\(fileName)", flags: O_RDONLY) else { return nil }
    guard flock(file.number, LOCK_SH | LOCK_NB) != 0 else {
      flock(file.number, LOCK_UN)
      return nil
    }
    return errno == EWOULDBLOCK ? holder(file.number) : nil
  }

  /// Replaces the text. A reader may see it cut short, but never mixed with an older text.
  private func writeText(_ text: String) throws(StorageError) {
    guard ftruncate(file.number, 0) == 0 else { throw .systemCall("ftruncate", path: path) }
    var line = "\(text)\n"
    let written = line.withUTF8 { pwrite(file.number, $0.baseAddress, min($0.count, Self.textBytesMax), 0) }
    guard written > 0 else { throw .systemCall("pwrite", path: path) }
  }

  private static func holder(_ descriptor: Int32) -> String {
    var bytes = [UInt8](repeating: 0, count: textBytesMax)
    let count = max(0, pread(descriptor, &bytes, bytes.count, 0))
    let line = String(decoding: bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    return line.isEmpty ? "another hearth process" : "hearth, \(line)"
  }
}
