import ConsoleAPI
import Glibc

// The editor of an emulator's console reads and writes the files of rules for documents.
extension RulesFiles {
  /// Returns the access of the console to the files, or `nil` without files.
  func consoleAccess(key: String) -> RulesFileAccess? {
    guard !files.isEmpty else { return nil }
    return RulesFileAccess(
      key: key,
      read: { [self] database in
        guard let path = path(of: database), let bytes = try? Self.read(path),
          let text = String(validating: bytes, as: UTF8.self)
        else { return nil }
        return (path, text)
      },
      write: { [self] database, text in
        guard let path = path(of: database) else { return "the rules of this database have no file" }
        if let reason = Self.replace(path, with: Array(text.utf8)) { return reason }
        reload()
        return nil
      })
  }

  /// Returns the file of the rules of a database, or `nil` if they have none.
  private func path(of database: String) -> String? {
    (files.first { $0.database == database } ?? files.first { $0.database == nil })?.path
  }

  /// Replaces the content of a file at once, so that no reader sees a part of it. Returns the reason if that fails.
  private static func replace(_ path: String, with bytes: [UInt8]) -> String? {
    // The file may be a link, which stays.
    guard let real = realpath(path, nil) else { return String(cString: strerror(errno)) }
    defer { free(real) }
    var status = stat()
    guard stat(real, &status) == 0 else { return String(cString: strerror(errno)) }
    let new = String(cString: real) + ".hearth-new"
    let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, status.st_mode & 0o777)
    guard descriptor >= 0 else { return String(cString: strerror(errno)) }
    let isWritten = Glibc.write(descriptor, bytes, bytes.count) == bytes.count && fsync(descriptor) == 0
    let code = errno
    close(descriptor)
    guard isWritten, rename(new, real) == 0 else {
      let reason = String(cString: strerror(isWritten ? errno : code))
      unlink(new)
      return reason
    }
    return nil
  }
}
