import Glibc

/// A folder of this machine that takes files under names that others chose, and lets none of them out.
///
/// Every part of a name is opened by itself and never through a symbolic link, so that neither `..` nor a link that
/// lies in the folder leads elsewhere.
final class TargetFolder {
  /// A name that no file in the folder can have; says why.
  struct UnusableName: Error { var reason: String }

  private let path: String
  private let root: Int32

  /// Opens a folder, making it where it is missing.
  /// - Throws: ``CommandFailure`` where that is not possible.
  init(_ path: String) throws {
    self.path = path
    if mkdir(path, 0o777) != 0, errno != EEXIST {
      throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))")
    }
    root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard root >= 0 else { throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))") }
  }

  deinit { if root >= 0 { close(root) } }

  /// Starts a file of a name such as `a/b.txt`; folders on the way are made.
  /// - Throws: ``UnusableName``; ``CommandFailure`` where the system refuses.
  func makeFile(_ name: String) throws -> TargetFile {
    var parts = try Self.parts(of: name)
    let last = parts.removeLast()
    let folder = try openFolder(parts)
    return try TargetFile(folder, last, shownAs: "\(path)/\(name)")
  }

  /// Makes a folder of a name such as `a/b`.
  /// - Throws: as ``makeFile(_:)``.
  func makeFolder(_ name: String) throws { close(try openFolder(Self.parts(of: name))) }

  /// The parts of a name between its slashes.
  /// - Throws: ``UnusableName`` for a name that would lead out, or that no path says exactly.
  static func parts(of name: String) throws -> [String] {
    // By bytes, as the system reads them: a slash and a combining mark are one Character.
    let parts = name.utf8.split(separator: FilePlace.slash, omittingEmptySubsequences: false)
      .map { String(Substring($0)) }
    for part in parts {
      if part.utf8.contains(FilePlace.slash) { throw UnusableName(reason: "a part of its name holds a slash") }
      if part.isEmpty { throw UnusableName(reason: "a part of its name is empty") }
      if part == "." || part == ".." { throw UnusableName(reason: "a part of its name is \(part)") }
      if part.utf8.count > 255 { throw UnusableName(reason: "a part of its name is longer than 255 bytes") }
      if part.utf8.contains(0) { throw UnusableName(reason: "its name holds a NUL") }
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
          throw UnusableName(reason: "what is called '\(part)' there is no folder")
        }
        throw CommandFailure.failed("\(path)/\(parts.joined(separator: "/")): \(String(cString: strerror(code)))")
      }
      folder = next
    }
    return folder
  }
}

/// A file on its way: it appears under its name when it is whole.
final class TargetFile {
  private let folder: Int32
  private let name: String
  private let unfinished: String
  private let path: String
  private let descriptor: Int32
  private var isFinished = false

  /// Starts a file in an open folder, which is closed in the end.
  fileprivate init(_ folder: Int32, _ name: String, shownAs path: String) throws {
    self.folder = folder
    self.name = name
    self.path = path
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
  func write(_ bytes: [UInt8]) throws {
    do throws(Terminal.WriteFailure) { try Terminal(descriptor: descriptor).writeAll(bytes) } catch {
      errno = error.code
      throw failure()
    }
  }

  /// Has it reach the disk and gives it its name, in place of a file that has it.
  /// - Throws: ``TargetFolder/UnusableName`` where a folder has the name.
  func finish() throws {
    guard fdatasync(descriptor) == 0, renameat(folder, unfinished, folder, name) == 0 else {
      if errno == EISDIR { throw TargetFolder.UnusableName(reason: "a folder has its name") }
      throw failure()
    }
    isFinished = true
  }

  private func failure() -> CommandFailure { .failed("\(path): \(String(cString: strerror(errno)))") }
}
