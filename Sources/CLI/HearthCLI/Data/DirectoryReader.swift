import DocumentModel
import Files
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

/// Reads a data directory, even while a server has it open. It changes no data, but creates missing lock files, such
/// as `content.lock`.
struct DirectoryReader {
  /// The data directory.
  let path: String
  /// Its databases, sorted by name.
  let databases: [DatabaseID]

  /// Lists the databases of a directory.
  /// - Throws: ``CommandFailure`` if the directory does not exist; `StorageError` if its format is unknown.
  init(_ path: String) throws {
    self.path = path
    guard access(path, F_OK) == 0 else { throw CommandFailure.failed("the data directory \(path) does not exist") }
    databases = try DataDirectory.databases(in: path)
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

  /// Opens a database for reading.
  /// - Throws: ``CommandFailure`` if the directory has no database of that name; `StorageError` if it cannot be opened.
  func open(_ id: DatabaseID) throws -> LMDBStore {
    guard databases.contains(id) else {
      let others = databases.isEmpty ? "it is empty" : "it has \(databases.map(\.name).joined(separator: ", "))"
      throw CommandFailure.failed("\(path) has no database \(id); \(others). Name one with --project and --database")
    }
    return try LMDBStore.open(LMDBOptions(path: DataDirectory.file(of: id, in: path), readOnly: true))
  }
}
