import Glibc

/// The entries of a folder.
package enum FolderEntries {
  /// The kind of an entry.
  package enum Kind: Sendable {
    case file
    case folder
    case link
    /// A pipe, a socket or a device.
    case special
    /// An entry whose name is not UTF-8. Its path shows other characters.
    case misnamed

    /// The kind in errors, such as `a symbolic link`.
    package var text: String {
      switch self {
      case .file: "a file"
      case .folder: "a folder"
      case .link: "a symbolic link"
      case .special: "not a regular file"
      case .misnamed: "an entry whose name is not UTF-8"
      }
    }
  }

  /// An entry of a folder.
  package struct Entry: Sendable {
    package var path: String
    package var kind: Kind
    /// Whether the entry is a folder, and not a link to one.
    package var isFolder: Bool { kind == .folder }
  }

  /// Lists everything in a folder, by name. Links are not followed.
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
      guard lstat(path, &status) == 0 else {
        if name.unicodeScalars.contains("\u{FFFD}") { entries.append(Entry(path: path, kind: .misnamed)) }
        continue
      }
      entries.append(Entry(path: path, kind: kind(status)))
    }
    return entries.sorted { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
  }

  private static func kind(_ status: stat) -> Kind {
    switch status.st_mode & S_IFMT {
    case S_IFREG: .file
    case S_IFDIR: .folder
    case S_IFLNK: .link
    default: .special
    }
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
