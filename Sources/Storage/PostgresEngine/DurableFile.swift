import Glibc
import KeyValue

/// Writes small files so that they survive a crash of the machine.
enum DurableFile {
  /// Replaces a file that only its owner may read, and waits until it is on disk. Returns `errno`, or 0.
  static func replace(_ path: String, with text: String) -> Int32 {
    let descriptor = open("\(path).new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return errno }
    let bytes = Array(text.utf8)
    var code: Int32 = 0
    if write(descriptor, bytes, bytes.count) != bytes.count || fsync(descriptor) != 0 {
      code = errno == 0 ? EIO : errno
    }
    close(descriptor)
    if code == 0, rename("\(path).new", path) != 0 { code = errno }
    return code == 0 ? syncFolder(of: path) : code
  }

  /// Waits until the entry of a file in its folder is on disk. Returns `errno`, or 0.
  static func syncFolder(of path: String) -> Int32 {
    let folder = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return errno }
    defer { close(descriptor) }
    return fsync(descriptor) == 0 ? 0 : errno
  }

  /// Returns the text of a file, or `nil` if it does not exist. A text of more than `bytesMax` bytes is cut.
  /// - Throws: `StorageError.system` if the file cannot be read.
  static func text(_ path: String, bytesMax: Int) throws(StorageError) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw .system(operation: "open", path: path, code: errno)
    }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: bytesMax)
    let count = read(descriptor, &bytes, bytesMax)
    guard count >= 0 else { throw .system(operation: "read", path: path, code: errno) }
    return String(decoding: bytes[..<count], as: UTF8.self)
  }
}
