import Glibc
package import KeyValue

/// The exclusive right of one process to write in a data directory, held until the object goes away.
///
/// The lock is the kernel's (`flock`) on a file named ``fileName``, so it ends with the process, however that
/// ends. The file's text only tells others who holds it; it stays behind and means nothing without the lock.
package final class DataDirectoryLock: Sendable {
  /// The name of the lock file in the data directory.
  package static let fileName = "hearth.lock"

  /// The longest text read from a lock file, in bytes.
  private static let textBytesMax = 512

  private let path: String
  private let descriptor: Int32

  /// Takes the lock of the data directory, which must exist.
  /// - Throws: ``StorageError/locked(path:holder:)`` when another process has it, or another object in this one;
  ///   the holder reads like `hearth, process 123 (http://127.0.0.1:8080)`.
  package init(directory: String) throws(StorageError) {
    path = "\(directory)/\(Self.fileName)"
    descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .systemCall("open", path: path) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      let code = errno
      let holder = Self.holder(descriptor)
      close(descriptor)
      guard code == EWOULDBLOCK else { throw .system(operation: "flock", path: path, code: code) }
      throw .locked(path: directory, holder: holder)
    }
    do throws(StorageError) {
      try writeText("process \(getpid())")
    } catch {
      Self.release(descriptor)
      throw error
    }
  }

  deinit { Self.release(descriptor) }

  /// Gives the lock back. Closing alone would not: a program that this process is just starting has a copy of the
  /// descriptor until it runs.
  private static func release(_ descriptor: Int32) {
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Adds the server's URL to what another process is told; call it once the server listens.
  package func announce(serverURL: String) throws(StorageError) {
    try writeText("process \(getpid()) (\(serverURL))")
  }

  /// The URL that the holder of a directory's lock announced; `nil` where it announced none. What a process that ended
  /// left behind means nothing: ask only after ``init(directory:)`` threw `locked`.
  package static func announcedURL(directory: String) -> String? {
    let descriptor = open("\(directory)/\(fileName)", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    let text = holder(descriptor)
    guard text.hasSuffix(")"), let start = text.lastIndex(of: "(") else { return nil }
    return String(text[text.index(after: start)...].dropLast())
  }

  /// Who has the lock of a directory, found out without leaving anything there; `nil` for nobody, and where it cannot
  /// be seen. Who tries to take the lock just then is refused.
  package static func holder(ofDirectory directory: String) -> String? {
    let descriptor = open("\(directory)/\(fileName)", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { release(descriptor) }
    guard flock(descriptor, LOCK_SH | LOCK_NB) != 0, errno == EWOULDBLOCK else { return nil }
    return holder(descriptor)
  }

  /// Replaces the text; a reader may see it cut short, never mixed with an older one.
  private func writeText(_ text: String) throws(StorageError) {
    guard ftruncate(descriptor, 0) == 0 else { throw .systemCall("ftruncate", path: path) }
    var line = "\(text)\n"
    let written = line.withUTF8 { pwrite(descriptor, $0.baseAddress, min($0.count, Self.textBytesMax), 0) }
    guard written > 0 else { throw .systemCall("pwrite", path: path) }
  }

  private static func holder(_ descriptor: Int32) -> String {
    var bytes = [UInt8](repeating: 0, count: textBytesMax)
    let count = max(0, pread(descriptor, &bytes, bytes.count, 0))
    let line = String(decoding: bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    return line.isEmpty ? "another hearth process" : "hearth, \(line)"
  }
}
