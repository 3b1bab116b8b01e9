import FixtureTree
import Glibc
import KeyValue

extension BackupFolder {
  var appendsToLogFiles: Bool { true }

  private func path(_ file: String, _ name: BackupName) -> String { "\(self.file(name))/log/\(file)" }

  func logFiles(of name: BackupName) throws -> [String] {
    let folder = "\(file(name))/log"
    guard access(folder, F_OK) == 0 else { return [] }
    var files: [String] = []
    try FolderIterator.forEachFile(below: folder) { path, _ in files.append(path) }
    return files.filter { !$0.hasSuffix(".new") }.sorted()
  }

  func logFile(_ file: String, of name: BackupName) throws -> [UInt8]? {
    guard access(path(file, name), F_OK) == 0 else { return nil }
    var bytes: [UInt8] = []
    try DigestedFile.forEachPart(of: path(file, name)) { bytes += $0 }
    return bytes
  }

  func writeLogFile(_ file: String, _ content: [UInt8], of name: BackupName) throws {
    let path = path(file, name)
    try LocalPath.makeFolders(of: "log/\(file)", in: self.file(name))
    try write(content, to: "\(path).new", at: 0)
    guard rename("\(path).new", path) == 0 else {
      throw StorageError.system(operation: "rename", path: path, code: errno)
    }
    try syncFolders(of: path)
  }

  func appendToLogFile(_ file: String, _ content: [UInt8], at offset: Int, of name: BackupName) throws {
    if offset == 0 { try LocalPath.makeFolders(of: "log/\(file)", in: self.file(name)) }
    try write(content, to: path(file, name), at: offset)
    if offset == 0 { try syncFolders(of: path(file, name)) }
  }

  /// Writes bytes at an offset of a file, cuts what follows, and syncs it. Creates the file at the offset 0.
  private func write(_ content: [UInt8], to path: String, at offset: Int) throws {
    let descriptor = open(path, O_WRONLY | O_CLOEXEC | (offset == 0 ? O_CREAT : 0), 0o600)
    guard descriptor >= 0 else { throw StorageError.system(operation: "open", path: path, code: errno) }
    defer { close(descriptor) }
    guard ftruncate(descriptor, off_t(offset)) == 0, lseek(descriptor, off_t(offset), SEEK_SET) == offset else {
      throw StorageError.system(operation: "ftruncate", path: path, code: errno)
    }
    try Terminal(descriptor: descriptor).writeAll(content)
    guard fsync(descriptor) == 0 else { throw StorageError.system(operation: "fsync", path: path, code: errno) }
  }

  /// Syncs the folder of a file of the log, and those above it in the backup.
  private func syncFolders(of path: String) throws {
    var folder = LocalPath.folder(of: path)
    while folder.hasSuffix("/log") || folder.contains("/log/") {
      try LocalPath.sync(folder: folder)
      folder = LocalPath.folder(of: folder)
    }
    try LocalPath.sync(folder: folder)
  }
}
