import Glibc

/// A folder of this machine that receives files under untrusted names. No name can lead out of the folder.
///
/// Every part of a name is opened separately and never through a symbolic link, so neither `..` nor a link in the
/// folder can lead elsewhere.
final class TargetFolder {
  /// The error for a name that no file in the folder can have.
  struct UnusableName: Error { var reason: String }

  private let path: String
  private let root: Int32

  /// Opens a folder, and creates it if it does not exist.
  /// - Throws: ``CommandFailure`` if that fails.
  init(_ path: String) throws {
    self.path = path
    if mkdir(path, 0o777) != 0, errno != EEXIST {
      throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))")
    }
    root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard root >= 0 else { throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))") }
  }

  deinit { if root >= 0 { close(root) } }

  /// Starts a file with a name such as `a/b.txt`, and creates missing folders.
  /// - Throws: ``UnusableName`` if the name is not possible; ``CommandFailure`` if the system refuses.
  func makeFile(_ name: String) throws -> TargetFile {
    var parts = try Self.parts(of: name)
    let last = parts.removeLast()
    let folder = try openFolder(parts)
    return try TargetFile(folder, last, shownAs: "\(path)/\(name)")
  }

  /// Creates a folder with a name such as `a/b`.
  /// - Throws: ``UnusableName`` if the name is not possible; ``CommandFailure`` if the system refuses.
  func makeFolder(_ name: String) throws { close(try openFolder(Self.parts(of: name))) }

  /// Returns the parts of a name between its slashes.
  /// - Throws: ``UnusableName`` if the name would lead out of the folder, or no path represents it exactly.
  static func parts(of name: String) throws -> [String] {
    // Split bytes, as the system does: a slash and a combining mark are one `Character`.
    let parts = name.utf8.split(separator: FileLocation.slash, omittingEmptySubsequences: false)
      .map { String(Substring($0)) }
    for part in parts {
      if part.utf8.contains(FileLocation.slash) { throw UnusableName(reason: "a part of its name contains a slash") }
      if part.isEmpty { throw UnusableName(reason: "a part of its name is empty") }
      if part == "." || part == ".." { throw UnusableName(reason: "a part of its name is \(part)") }
      if part.utf8.count > 255 { throw UnusableName(reason: "a part of its name is longer than 255 bytes") }
      if part.utf8.contains(0) { throw UnusableName(reason: "its name contains a NUL byte") }
    }
    return parts
  }

  private func openFolder(_ parts: [String]) throws -> Int32 {
    var folder = dup(root)
    for part in parts {
      if mkdirat(folder, part, 0o777) != 0, errno != EEXIST {
        defer { close(folder) }
        throw CommandFailure.failed("\(path)/\(parts.joined(separator: "/")): \(String(cString: strerror(errno)))")
      }
      let next = openat(folder, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      let code = errno
      close(folder)
      guard next >= 0 else {
        if code == ENOTDIR || code == ELOOP {
          throw UnusableName(reason: "'\(part)' in DEST is not a folder")
        }
        throw CommandFailure.failed("\(path)/\(parts.joined(separator: "/")): \(String(cString: strerror(code)))")
      }
      folder = next
    }
    return folder
  }
}

/// A file that is being received. It gets its name when it is complete.
final class TargetFile {
  private let folder: Int32
  private let name: String
  private let unfinished: String
  private let path: String
  private let descriptor: Int32
  private var isFinished = false

  /// Starts a file in an open folder. The file owns the folder's descriptor and closes it.
  /// - Throws: ``TargetFolder/UnusableName`` if a device, pipe or socket has the name, which the file would replace;
  ///   ``CommandFailure`` if the system refuses.
  fileprivate init(_ folder: Int32, _ name: String, shownAs path: String) throws {
    self.folder = folder
    self.name = name
    self.path = path
    var existing = stat()
    if fstatat(folder, name, &existing, AT_SYMLINK_NOFOLLOW) == 0,
      ![S_IFREG, S_IFLNK, S_IFDIR].contains(existing.st_mode & S_IFMT)
    {
      close(folder)
      throw TargetFolder.UnusableName(reason: "a device, pipe or socket of that name exists")
    }
    unfinished = ".hearth-\(getpid())-\(UInt64.random(in: 0 ... .max)).part"
    descriptor = openat(folder, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
    guard descriptor >= 0 else { throw failure() }
  }

  deinit {
    if descriptor >= 0 {
      close(descriptor)
      if !isFinished { unlinkat(folder, unfinished, 0) }
    }
    close(folder)
  }

  /// Appends bytes.
  /// - Throws: ``CommandFailure`` if the file cannot be written.
  func write(_ bytes: [UInt8]) throws {
    do throws(Terminal.WriteFailure) { try Terminal(descriptor: descriptor).writeAll(bytes) } catch {
      errno = error.code
      throw failure()
    }
  }

  /// Syncs the file and gives it its name, replacing a file of that name.
  /// - Throws: ``TargetFolder/UnusableName`` if a folder has the name; ``CommandFailure`` if the system refuses.
  func finish() throws {
    guard fdatasync(descriptor) == 0, renameat(folder, unfinished, folder, name) == 0 else {
      if errno == EISDIR { throw TargetFolder.UnusableName(reason: "a folder of that name exists") }
      throw failure()
    }
    isFinished = true
  }

  private func failure() -> CommandFailure { .failed("\(path): \(String(cString: strerror(errno)))") }
}
