import Glibc

/// The files below a folder, in the order of their names' bytes. Memory: the names of one folder at each depth.
///
/// Symbolic links are not followed: they could lead out of the folder, and round in circles.
struct FolderIterator {
  /// What lies in a folder.
  enum Entry {
    /// A regular file: its path, and its name below the folder.
    case file(path: String, name: String)
    /// Something that is left out, and why.
    case leftOut(path: String, reason: String)
  }

  /// Hands on everything below a folder.
  /// - Throws: ``CommandFailure`` where a folder cannot be read, and what `body` throws.
  static func forEach(below folder: String, _ body: (Entry) throws -> Void) throws {
    try walk(folder, "", body)
  }

  private static func walk(_ folder: String, _ prefix: String, _ body: (Entry) throws -> Void) throws {
    for bytes in try names(in: folder) {
      guard let name = String(validating: bytes, as: UTF8.self) else {
        let path = "\(folder)/\(String(decoding: bytes, as: UTF8.self))"
        try body(.leftOut(path: path, reason: "its name is not UTF-8"))
        continue
      }
      let path = folder.utf8.last == FilePlace.slash ? folder + name : "\(folder)/\(name)"
      var status = stat()
      guard lstat(path, &status) == 0 else {
        // What went away meanwhile is not there.
        if errno != ENOENT { throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))") }
        continue
      }
      switch status.st_mode & S_IFMT {
      case S_IFREG: try body(.file(path: path, name: prefix + name))
      case S_IFDIR: try walk(path, "\(prefix)\(name)/", body)
      case S_IFLNK: try body(.leftOut(path: path, reason: "symbolic links are not followed"))
      default: try body(.leftOut(path: path, reason: "it is no regular file"))
      }
    }
  }

  private static func names(in folder: String) throws -> [[UInt8]] {
    guard let stream = opendir(folder) else {
      throw CommandFailure.failed("\(folder): \(String(cString: strerror(errno)))")
    }
    defer { closedir(stream) }
    var names: [[UInt8]] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
      if name != Array(".".utf8), name != Array("..".utf8) { names.append(name) }
    }
    return names.sorted { $0.lexicographicallyPrecedes($1) }
  }
}
