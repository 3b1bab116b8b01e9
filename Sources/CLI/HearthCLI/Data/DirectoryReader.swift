import DocumentModel
import Files
import Glibc
import HearthServer
import KeyValue
import LMDBEngine
import LogEngine

/// Reads a data directory, even while a server has it open. It changes no data, but creates missing lock files, such
/// as `content.lock`.
struct DirectoryReader {
  /// The data directory.
  let path: String
  /// Its databases, sorted by name.
  let databases: [DatabaseID]

  /// Lists the databases of a directory.
  /// - Throws: ``CommandFailure`` if the directory does not exist; `StorageError` if its format is unknown;
  ///   `StorageError.openReplica` if its newest commits are in the log of a cluster, unless `mayBeOpenReplica`.
  init(_ path: String, mayBeOpenReplica: Bool = false) throws {
    self.path = path
    try Self.require(path)
    if !mayBeOpenReplica { try DataDirectory.requireClosedReplica(path) }
    databases = try DataDirectory.databases(in: path)
  }

  /// Refuses a path that is not a data directory, so that a misspelled path does not become one.
  /// - Throws: ``CommandFailure`` if the path does not exist, or has no file `FORMAT`.
  static func require(_ path: String) throws(CommandFailure) {
    let advice = "correct the path; `hearth serve` and `hearth import` create data directories"
    // Other errors, such as missing permissions, get better messages when the directory is opened.
    if access(path, F_OK) != 0, [ENOENT, ENOTDIR].contains(errno) {
      throw .failed("the data directory \(path) does not exist; \(advice)")
    }
    if access("\(path)/FORMAT", F_OK) != 0, [ENOENT, ENOTDIR].contains(errno) {
      throw .failed("\(path) is not a data directory, because it has no file FORMAT; \(advice)")
    }
  }

  /// Opens the files of an owner, as ``DataDirectory/filesFolder(of:in:)`` names it, for reading. Returns `nil` if the
  /// directory has none.
  ///
  /// While `lock` is alive, no content is removed, so the content that the metadata name exists.
  /// - Throws: `StorageError` if the metadata are missing or cannot be opened; `FilesError` if the content cannot be
  ///   locked or opened.
  func openFiles(of owner: String? = nil) throws -> (
    metadata: LMDBStore, contents: ContentDirectory, lock: ContentLock
  )? {
    let file = DataDirectory.filesFile(of: owner, in: path)
    guard try DataDirectory.hasFiles(of: owner, in: path) else { return nil }
    let folder = DataDirectory.filesFolder(of: owner, in: path)
    let lock = try ContentLock(folder)
    let metadata = try LMDBStore.open(LMDBOptions(path: file, readOnly: true))
    return (metadata, try ContentDirectory(folder), lock)
  }

  /// Opens a database for reading, with the commits of its log.
  /// - Throws: ``CommandFailure`` if the directory has no database of that name; `StorageError` if it cannot be opened.
  func open(_ id: DatabaseID) throws -> ReadOnlyStore {
    guard databases.contains(id) else {
      let others = databases.isEmpty ? "it is empty" : "it has \(databases.map(\.name).joined(separator: ", "))"
      throw CommandFailure.failed("\(path) has no database \(id); \(others). Name one with --project and --database")
    }
    return try StoredDatabase.openReadOnly(LMDBOptions(path: DataDirectory.file(of: id, in: path)))
  }
}
