import Glibc
import KeyValue

/// Splits paths of this machine by bytes, as the system does. A slash and a combining mark after it are one
/// `Character`.
enum LocalPath {
  private static let slash = UInt8(ascii: "/")

  /// Returns the folder that contains the file or folder at a path: `.` for a plain name, `/` for a name below the
  /// root.
  static func folder(of path: String) -> String {
    guard let end = path.utf8.lastIndex(of: slash) else { return "." }
    return end == path.utf8.startIndex ? "/" : String(Substring(path.utf8[..<end]))
  }

  /// Returns a path without the slashes at its end. A path of slashes only becomes `/`.
  static func withoutLastSlashes(_ path: String) -> String {
    var bytes = path.utf8[...]
    while bytes.count > 1, bytes.last == slash { bytes.removeLast() }
    return String(Substring(bytes))
  }

  /// Creates the folders of a path below a folder that exists. Only the owner has access.
  /// - Throws: `StorageError/system` if that fails.
  static func makeFolders(of path: String, in root: String) throws(StorageError) {
    guard path.utf8.contains(slash) else { return }
    let folder = folder(of: path)
    try makeFolders(of: folder, in: root)
    try makeFolder("\(root)/\(folder)")
  }

  /// Creates a folder unless it exists. Only the owner has access.
  /// - Throws: `StorageError/system` if that fails.
  static func makeFolder(_ path: String) throws(StorageError) {
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw .system(operation: "mkdir", path: path, code: errno)
    }
  }

  /// Writes the entries of a folder to the disk.
  /// - Throws: `StorageError/system` if that fails.
  static func sync(folder: String) throws(StorageError) {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system(operation: "open", path: folder, code: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw .system(operation: "fsync", path: folder, code: errno) }
  }
}
