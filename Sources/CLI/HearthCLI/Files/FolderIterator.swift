import Glibc

/// Iterates the files below a folder, in the byte order of their names. Memory: the names of one folder at each depth.
///
/// It does not follow symbolic links, because they could lead out of the folder or form a cycle.
struct FolderIterator {
  /// An entry of a folder.
  enum Entry {
    /// A regular file: its path, and its name below the folder.
    case file(path: String, name: String)
    /// An entry that is skipped, and the reason.
    case leftOut(path: String, reason: String)
  }

  /// Passes everything below a folder to `body`.
  /// - Throws: ``CommandFailure`` if a folder cannot be read, or the error of `body`.
  static func forEach(below folder: String, _ body: (Entry) throws -> Void) throws {
    try walk(folder, "", body)
  }

  /// Passes the name and the size, in bytes, of each regular file below a folder to `body`.
  /// - Throws: ``CommandFailure`` if a folder cannot be read, or the error of `body`.
  static func forEachFile(below folder: String, _ body: (_ name: String, _ size: Int) throws -> Void) throws {
    try forEach(below: folder) { entry in
      var status = stat()
      guard case .file(let path, let name) = entry, stat(path, &status) == 0 else { return }
      try body(name, Int(status.st_size))
    }
  }

  /// Returns the size of all regular files below a folder, in bytes.
  /// - Throws: ``CommandFailure`` if a folder cannot be read.
  static func size(of folder: String) throws -> Int {
    var size = 0
    try forEachFile(below: folder) { size += $1 }
    return size
  }

  private static func walk(_ folder: String, _ prefix: String, _ body: (Entry) throws -> Void) throws {
    for bytes in try names(in: folder) {
      guard let name = String(validating: bytes, as: UTF8.self) else {
        let path = "\(folder)/\(String(decoding: bytes, as: UTF8.self))"
        try body(.leftOut(path: path, reason: "its name is not UTF-8"))
        continue
      }
      let path = folder.utf8.last == FileLocation.slash ? folder + name : "\(folder)/\(name)"
      var status = stat()
      guard lstat(path, &status) == 0 else {
        // An entry that was removed meanwhile is not an error.
        if errno != ENOENT { throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))") }
        continue
      }
      switch status.st_mode & S_IFMT {
      case S_IFREG: try body(.file(path: path, name: prefix + name))
      case S_IFDIR: try walk(path, "\(prefix)\(name)/", body)
      case S_IFLNK: try body(.leftOut(path: path, reason: "symbolic links are not followed"))
      default: try body(.leftOut(path: path, reason: "it is not a regular file"))
      }
    }
  }

  /// Returns the names in a folder, in the order of their bytes, without `.` and `..`.
  /// - Throws: ``CommandFailure`` if the folder cannot be read.
  static func names(in folder: String) throws -> [[UInt8]] {
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
