import Glibc

/// The entries of a folder.
package enum FolderEntries {
  /// A file or a folder.
  package struct Entry: Sendable {
    package var path: String
    package var isFolder: Bool
  }

  /// Lists the files and folders in a folder, by name. Symbolic links and other entries are left out.
  /// - Throws: `FixtureTreeError` if the folder cannot be read.
  package static func list(_ folder: String) throws(FixtureTreeError) -> [Entry] {
    guard let stream = opendir(folder) else {
      throw FixtureTreeError(file: folder, message: "cannot read the folder: \(String(cString: strerror(errno)))")
    }
    defer { closedir(stream) }
    var entries: [Entry] = []
    while let entry = readdir(stream) {
      let name = name(of: entry)
      if name == "." || name == ".." { continue }
      let path = "\(folder)/\(name)"
      var status = stat()
      guard lstat(path, &status) == 0 else { continue }
      switch status.st_mode & S_IFMT {
      case S_IFDIR: entries.append(Entry(path: path, isFolder: true))
      case S_IFREG: entries.append(Entry(path: path, isFolder: false))
      default: continue
      }
    }
    return entries.sorted { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
  }

  /// Removes a folder with everything in it, as far as possible. Follows no links.
  package static func removeAll(_ folder: String) {
    guard let stream = opendir(folder) else { return }
    while let entry = readdir(stream) {
      let name = name(of: entry)
      if name == "." || name == ".." { continue }
      let path = "\(folder)/\(name)"
      var status = stat()
      if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR { removeAll(path) } else { unlink(path) }
    }
    closedir(stream)
    rmdir(folder)
  }

  private static func name(of entry: UnsafeMutablePointer<dirent>) -> String {
    withUnsafePointer(to: &entry.pointee.d_name) { pointer in
      pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
    }
  }
}
