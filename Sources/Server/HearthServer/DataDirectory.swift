package import DocumentModel
import Files
import Glibc
package import KeyValue
import LMDBEngine

/// The directory of a server's databases. It checks the format, locks the directory, and knows its layout:
///
///     DIR/FORMAT                                    the layout's number, in text
///     DIR/hearth.lock                               the process that uses the directory
///     DIR/run/admin.sock                            the socket of the running server for the command line
///     DIR/databases/{project}/{database}/data.mdb   one LMDB environment per database, data.mdb-lock beside it
///     DIR/accounts/{project}/data.mdb               the users of a project, and the keys of their tokens
///     DIR/files/…                                   the stored files, see ``FilesSetup``
///     DIR/project-files/{project}/…                 the stored files of one of several projects
package final class DataDirectory: Sendable {
  /// The layout that this version writes.
  package static let format = 1
  /// The file with the identity of the directory's backups.
  package static let backupIdentityName = "backup-id"

  package let path: String
  private let lock: DataDirectoryLock

  /// Opens a directory for writing, creating it if it does not exist, and locks it against other processes. Only a node of a
  /// cluster, and what salvages its files, may open a replica that was not closed.
  /// - Throws: ``StorageError/locked(path:holder:)`` if another process uses it;
  ///   ``StorageError/openReplica(path:)`` if it is a replica that was not closed, unless `mayBeOpenReplica`;
  ///   ``StorageError/unsupportedFormat(path:found:supported:)`` if a newer version wrote it;
  ///   ``StorageError/diskFull(path:)`` or ``StorageError/system(operation:path:code:)`` if it cannot be created or written.
  package init(_ path: String, mayBeOpenReplica: Bool = false) throws(StorageError) {
    self.path = path
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .systemCall("mkdir", path: path) }
    lock = try DataDirectoryLock(directory: path)
    if !mayBeOpenReplica { try Self.requireClosedReplica(path) }
    if try Self.readFormat(of: path) == nil {
      // The process may not be allowed to read the directory that contains it.
      try? Descriptor.syncDirectory(of: path)
      try Self.writeFormat(to: path)
    }
  }

  /// The path of the file that locks the directory.
  package var lockFile: String { lock.path }

  /// Creates a folder of the directory, if it does not exist, that only its owner may use. Its name is durable when this
  /// returns, which costs a sync.
  /// - Throws: ``StorageError/diskFull(path:)`` or ``StorageError/system(operation:path:code:)`` if it cannot be created.
  package func makeFolder(at path: String) throws(StorageError) { try Self.makeDirectory(path) }

  /// Stores the server's URL in the lock file, for other processes.
  /// - Throws: ``StorageError`` if the write fails.
  package func announce(url: String) throws(StorageError) {
    try lock.announce(serverURL: url)
  }

  /// Returns the path of a database's file, whether or not it exists.
  package static func file(of id: DatabaseID, in path: String) -> String {
    "\(folder(of: id, in: path))/data.mdb"
  }

  /// Returns the path of a database's file, after creating its directory.
  /// - Throws: ``StorageError/diskFull(path:)`` or ``StorageError/system(operation:path:code:)`` if the directory cannot be
  ///   created.
  package func makeFile(of id: DatabaseID) throws(StorageError) -> String {
    let file = Self.file(of: id, in: path)
    // The names of the directories are durable before the file exists.
    guard access(file, F_OK) != 0 else { return file }
    try Self.makeDirectory("\(path)/databases")
    try Self.makeDirectory("\(path)/databases/\(id.project)")
    try Self.makeDirectory(Self.folder(of: id, in: path))
    return file
  }

  /// Returns the path of the file of a project's accounts, whether or not it exists.
  package static func accountsFile(of project: String, in path: String) -> String {
    "\(path)/accounts/\(project)/data.mdb"
  }

  /// Returns the path of a directory of files, whether or not it exists. The files of `nil` are those of a server with
  /// one project, or of the default project of a server with several.
  package static func filesFolder(of project: String? = nil, in path: String) -> String {
    project.map { "\(path)/project-files/\($0)" } ?? "\(path)/files"
  }

  /// Returns the path of the metadata of files, whether or not it exists.
  package static func filesFile(of project: String? = nil, in path: String) -> String {
    "\(filesFolder(of: project, in: path))/data.mdb"
  }

  /// Returns the path of the directory of files, after creating the directory that contains it.
  /// - Throws: ``StorageError/diskFull(path:)`` or ``StorageError/system(operation:path:code:)`` if the directory cannot be
  ///   created.
  package func makeFilesFolder(of project: String?) throws(StorageError) -> String {
    if project != nil { try Self.makeDirectory("\(path)/project-files") }
    return Self.filesFolder(of: project, in: path)
  }

  /// Returns the owners of the files in a data directory, in the form of ``filesFolder(of:in:)``.
  /// - Throws: the errors of ``hasFiles(of:in:)``.
  package static func filesOwners(in path: String) throws(StorageError) -> [String?] {
    var owners: [String?] = []
    if try hasFiles(in: path) { owners.append(nil) }
    for project in ContentDirectory.names(in: "\(path)/project-files").sorted() {
      if try hasFiles(of: project, in: path) { owners.append(project) }
    }
    return owners
  }

  /// Returns whether a data directory contains files.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if it contains their content, but not their metadata.
  package static func hasFiles(of project: String? = nil, in path: String) throws(StorageError) -> Bool {
    let file = filesFile(of: project, in: path)
    if access(file, F_OK) == 0 { return true }
    let folder = filesFolder(of: project, in: path)
    guard ContentDirectory.holdsContent(folder) else { return false }
    throw .corruption(
      path: file,
      detail: "the metadata of files are missing, but their content exists; restore the metadata from a "
        + "backup, or move \(folder) away")
  }

  /// Returns the projects with accounts in a data directory, sorted.
  package static func accountsProjects(in path: String) -> [String] {
    ContentDirectory.names(in: "\(path)/accounts").filter { access(accountsFile(of: $0, in: path), F_OK) == 0 }.sorted()
  }

  /// Returns the path of the file of a project's accounts, after creating its directory.
  /// - Throws: ``StorageError/exposed(path:)`` if the file permissions let other users access the private keys in
  ///   it; ``StorageError/diskFull(path:)`` or ``StorageError/system(operation:path:code:)`` if the directory cannot be created.
  package func makeAccountsFile(of project: String) throws(StorageError) -> String {
    let file = Self.accountsFile(of: project, in: path)
    let folder = "\(path)/accounts/\(project)"
    if access(file, F_OK) != 0 {
      try Self.makeDirectory("\(path)/accounts")
      try Self.makeDirectory(folder)
    }
    for secret in [folder, file] {
      var status = stat()
      if stat(secret, &status) == 0, status.st_mode & 0o077 != 0 { throw .exposed(path: secret) }
    }
    return file
  }

  /// Returns the projects of a data directory, sorted: those with databases or, if no project has one, those with
  /// accounts.
  package static func projects(in path: String) -> [String] {
    let databases = Set(((try? databases(in: path)) ?? []).map(\.project)).sorted()
    return databases.isEmpty ? accountsProjects(in: path) : databases
  }

  /// Returns the project of a data directory that has exactly one.
  package static func onlyProject(in path: String) -> String? {
    let projects = projects(in: path)
    return projects.count == 1 ? projects[0] : nil
  }

  /// Returns the databases of a data directory, sorted by name.
  /// - Throws: ``StorageError`` if the path is not a data directory or has a newer format.
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

  /// Creates a directory unless it exists, and makes its name durable. Only the owner has access, because documents may be
  /// confidential.
  private static func makeDirectory(_ path: String) throws(StorageError) {
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .systemCall("mkdir", path: path) }
    // Also if it exists: a process may have died between the two calls.
    try Descriptor.syncDirectory(of: path)
  }

  /// Returns the directory's format, or `nil` if it has none.
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
    let text = String(decoding: bytes.prefix(max(0, count)).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    guard let number = Int(text), number >= 1, number <= format else {
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
    try Descriptor.syncDirectory(of: file)
  }
}
