import DatabaseService
import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

/// Imports files into a database of a data directory that no server has open.
///
/// Where the database is missing or empty, a new one is built beside it and takes its place when it is whole, so that
/// nothing is ever half-loaded. Otherwise the files are checked whole and then applied in commits.
struct DirectoryImport {
  /// The data directory; made where it is missing.
  var directory: String
  /// The size the database may grow to, in bytes.
  var mapBytes: Int
  /// The indexes to load with; those the database has where there are none.
  var indexes: IndexConfiguration?

  /// Imports, showing progress on a terminal.
  /// - Throws: `FixtureTreeError` for what is wrong in a file, `StorageError`, or ``CommandFailure``.
  func run(_ files: ImportFiles, isQuiet: Bool) throws -> ImportOutcome {
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    let directory = try DataDirectory(directory)
    var indexes = indexes
    let file = try directory.makeFile(of: files.database)
    if access(file, F_OK) == 0, try !isEmpty(file, files.database) {
      if let once = files.unrepeatable {
        throw CommandFailure.data(
          "\(once): it goes into a database that holds documents, so it is checked first and read twice; "
            + "save it as a file and import that")
      }
      _ = try files.check { progress.show($0, "documents checked") }
      let database = try open(file, files.database, indexes: nil)
      return try database.apply(files) { progress.show($0, "documents imported") }
    }
    // The directory is locked by us, so a file of this name is what an import left that did not end.
    let unfinished = "\(file).importing"
    removeFiles(unfinished)
    defer { removeFiles(unfinished) }
    if indexes == nil, access(file, F_OK) == 0 {
      let empty = try open(file, files.database, indexes: nil)
      indexes = try empty.read { reader in try empty.indexes(&reader).configuration }
    }
    let outcome = try open(unfinished, files.database, indexes: indexes).load(files) {
      progress.show($0, "documents imported")
    }
    guard rename(unfinished, file) == 0 else { throw StorageError.system(operation: "rename", path: file, code: errno) }
    try syncDirectory(of: file)
    return outcome
  }

  private func open(_ file: String, _ id: DatabaseID, indexes: IndexConfiguration?) throws -> DocumentDatabase {
    try DocumentDatabase(id: id, store: LMDBStore.open(LMDBOptions(path: file, mapBytes: mapBytes)), indexes: indexes)
  }

  private func isEmpty(_ file: String, _ id: DatabaseID) throws -> Bool {
    try open(file, id, indexes: nil).isEmpty()
  }

  private func removeFiles(_ file: String) {
    unlink(file)
    unlink("\(file)-lock")
  }

  private func syncDirectory(of file: String) throws {
    let folder = LocalPath.folder(of: file)
    let descriptor = Glibc.open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw StorageError.system(operation: "open", path: folder, code: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw StorageError.system(operation: "fsync", path: folder, code: errno) }
  }
}
