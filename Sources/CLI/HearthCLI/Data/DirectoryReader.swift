import DocumentModel
import Files
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

/// Looks into a data directory without changing it, also while a server has it open.
struct DirectoryReader {
  /// The data directory.
  let path: String
  /// Its databases, by name.
  let databases: [DatabaseID]

  /// Finds the databases.
  /// - Throws: ``CommandFailure`` when it is no data directory, `StorageError` when it is of a newer format.
  init(_ path: String) throws {
    self.path = path
    guard access(path, F_OK) == 0 else { throw CommandFailure.failed("there is no data directory \(path)") }
    databases = try DataDirectory.databases(in: path)
  }

  /// Opens the files for reading; `nil` where there are none. Throws `StorageError` where their metadata are lost.
  ///
  /// As long as `hold` lives, no content goes away, and what metadata name that are read meanwhile is there.
  func openFiles() throws -> (metadata: LMDBStore, contents: ContentDirectory, hold: ContentLock)? {
    let file = DataDirectory.filesFile(in: path)
    guard try DataDirectory.hasFiles(in: path) else { return nil }
    let folder = DataDirectory.filesFolder(in: path)
    let hold = try ContentLock(folder)
    let metadata = try LMDBStore.open(LMDBOptions(path: file, readOnly: true))
    return (metadata, try ContentDirectory(folder), hold)
  }

  /// Opens a database for reading.
  /// - Throws: ``CommandFailure`` when the directory has none of that name.
  func open(_ id: DatabaseID) throws -> LMDBStore {
    guard databases.contains(id) else {
      let others = databases.isEmpty ? "it is empty" : "it has \(databases.map(\.name).joined(separator: ", "))"
      throw CommandFailure.failed("\(path) has no \(id); \(others). Name one with --project and --database")
    }
    return try LMDBStore.open(LMDBOptions(path: DataDirectory.file(of: id, in: path), readOnly: true))
  }
}
