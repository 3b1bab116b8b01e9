import Files
import Glibc
import KeyValue

/// A folder with everything below it. Symbolic links are not followed.
enum FolderTree {
  /// Passes the regular files below a folder to `take`, with their path relative to it and their size in bytes, sorted
  /// by path.
  /// - Throws: the error of `take`.
  static func forEachFile(in folder: String, _ take: (_ path: String, _ size: Int) throws -> Void) rethrows {
    try forEachFile(in: folder, below: "", take)
  }

  private static func forEachFile(
    in folder: String, below prefix: String, _ take: (String, Int) throws -> Void
  ) rethrows {
    for name in ContentDirectory.names(in: folder).sorted() {
      var status = stat()
      guard lstat("\(folder)/\(name)", &status) == 0 else { continue }
      switch status.st_mode & S_IFMT {
      case S_IFDIR: try forEachFile(in: "\(folder)/\(name)", below: "\(prefix)\(name)/", take)
      case S_IFREG: try take(prefix + name, Int(status.st_size))
      default: break
      }
    }
  }

  /// Removes a folder and everything below it. Does nothing if it does not exist.
  /// - Throws: `StorageError/system` if something cannot be removed.
  static func remove(_ path: String) throws(StorageError) {
    for name in ContentDirectory.names(in: path) {
      var status = stat()
      guard lstat("\(path)/\(name)", &status) == 0 else { continue }
      if status.st_mode & S_IFMT == S_IFDIR {
        try remove("\(path)/\(name)")
      } else if unlink("\(path)/\(name)") != 0 {
        throw .system(operation: "unlink", path: "\(path)/\(name)", code: errno)
      }
    }
    guard rmdir(path) == 0 || errno == ENOENT else { throw .system(operation: "rmdir", path: path, code: errno) }
  }
}
