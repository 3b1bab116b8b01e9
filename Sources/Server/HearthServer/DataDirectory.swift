package import DocumentModel
import Files
import Glibc
package import KeyValue
import LMDBEngine

/// The directory that holds a server's databases.
///
///     DIR/FORMAT                                    the layout's number, in text
///     DIR/hearth.lock                               who uses the directory
///     DIR/databases/{project}/{database}/data.mdb   one LMDB environment per database, data.mdb-lock beside it
///     DIR/accounts/{project}/data.mdb               who the people of a project are, and the keys of their tokens
///     DIR/files/…                                   what is stored beside the documents, see ``FilesSetup``
package final class DataDirectory: Sendable {
  /// The layout this code writes.
  package static let format = 1

  /// The directory.
  package let path: String
  private let lock: DataDirectoryLock

  /// Opens a directory for writing, making it where it is missing, and keeps other processes from writing to it.
  /// - Throws: ``StorageError/locked(path:holder:)``, ``StorageError/unsupportedFormat(path:found:supported:)``, or
  ///   ``StorageError/system(operation:path:code:)``.
  package init(_ path: String) throws(StorageError) {
    self.path = path
    try Self.makeDirectory(path)
    lock = try DataDirectoryLock(directory: path)
    if try Self.readFormat(of: path) == nil { try Self.writeFormat(to: path) }
  }

  /// Tells other processes where the server that uses the directory answers.
  package func announce(url: String) throws(StorageError) {
    try lock.announce(serverURL: url)
  }

  /// The file of a database, whether it exists or not.
  package static func file(of id: DatabaseID, in path: String) -> String {
    "\(folder(of: id, in: path))/data.mdb"
  }

  /// The file of a database, its folder made where it is missing.
  package func makeFile(of id: DatabaseID) throws(StorageError) -> String {
    try Self.makeDirectory("\(path)/databases")
    try Self.makeDirectory("\(path)/databases/\(id.project)")
    try Self.makeDirectory(Self.folder(of: id, in: path))
    return Self.file(of: id, in: path)
  }

  /// The file of a project's accounts, whether it exists or not.
  package static func accountsFile(of project: String, in path: String) -> String {
    "\(path)/accounts/\(project)/data.mdb"
  }

  /// Where the files of a data directory are, whether there are any or not.
  package static func filesFolder(in path: String) -> String { "\(path)/files" }

  /// The metadata of the files of a data directory, whether there are any or not.
  package static func filesFile(in path: String) -> String { "\(path)/files/data.mdb" }

  /// Whether a data directory has files.
  /// - Throws: ``StorageError/corruption(path:detail:)`` where it has their content, but not what is known of it.
  package static func hasFiles(in path: String) throws(StorageError) -> Bool {
    let file = filesFile(in: path)
    if access(file, F_OK) == 0 { return true }
    guard ContentDirectory.holdsContent(filesFolder(in: path)) else { return false }
    throw .corruption(
      path: file, detail: "it is missing, though there is content of files beside it; restore it from a backup, "
        + "or move \(filesFolder(in: path)) away")
  }

  /// The projects whose accounts a data directory holds.
  package static func accountsProjects(in path: String) -> [String] {
    ContentDirectory.names(in: "\(path)/accounts").filter { access(accountsFile(of: $0, in: path), F_OK) == 0 }.sorted()
  }

  /// The file of a project's accounts, its folder made where it is missing.
  /// - Throws: ``StorageError/exposed(path:)`` where others than the owner could read it: it holds private keys.
  package func makeAccountsFile(of project: String) throws(StorageError) -> String {
    let file = Self.accountsFile(of: project, in: path)
    let folder = "\(path)/accounts/\(project)"
    try Self.makeDirectory("\(path)/accounts")
    try Self.makeDirectory(folder)
    for secret in [folder, file] {
      var status = stat()
      if stat(secret, &status) == 0, status.st_mode & 0o077 != 0 { throw .exposed(path: secret) }
    }
    return file
  }

  /// The databases of a data directory, by name.
  /// - Throws: ``StorageError`` when it is no data directory or of a newer format.
  package static func databases(in path: String) throws(StorageError) -> [DatabaseID] {
    guard try readFormat(of: path) != nil else {
      throw .unsupportedFormat(path: path, found: "none (no FORMAT file)", supported: "data directories of format 1")
    }
    var ids: [DatabaseID] = []
    for project in ContentDirectory.names(in: "\(path)/databases") {
      for database in ContentDirectory.names(in: "\(path)/databases/\(project)") {
        if let id = DatabaseID(project: project, database: database), access(file(of: id, in: path), F_OK) == 0 {
          ids.append(id)
        }
      }
    }
    return ids.sorted { $0.name < $1.name }
  }

  private static func folder(of id: DatabaseID, in path: String) -> String {
    "\(path)/databases/\(id.project)/\(id.database)"
  }

  private static func makeDirectory(_ path: String) throws(StorageError) {
    // Only the owner may look in: documents are people's data.
    if mkdir(path, 0o700) != 0, errno != EEXIST { throw .system(operation: "mkdir", path: path, code: errno) }
  }

  /// The directory's format, `nil` for a directory without one.
  private static func readFormat(of path: String) throws(StorageError) -> Int? {
    let file = "\(path)/FORMAT"
    let descriptor = open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      guard errno == ENOENT else { throw .system(operation: "open", path: file, code: errno) }
      return nil
    }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 32)
    let count = read(descriptor, &bytes, bytes.count)
    let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    guard let number = Int(text.prefix { $0 != "\n" }), number >= 1, number <= format else {
      throw .unsupportedFormat(path: path, found: text.isEmpty ? "none" : text, supported: "1")
    }
    return number
  }

  private static func writeFormat(to path: String) throws(StorageError) {
    let file = "\(path)/FORMAT"
    let descriptor = open("\(file).new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .system(operation: "open", path: file, code: errno) }
    let text = Array("\(format)\n".utf8)
    let isWritten = write(descriptor, text, text.count) == text.count && fsync(descriptor) == 0
    let code = errno
    close(descriptor)
    guard isWritten, rename("\(file).new", file) == 0 else {
      throw .system(operation: "write", path: file, code: isWritten ? errno : code)
    }
  }
}
