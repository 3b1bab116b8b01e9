import DatabaseService
import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

/// Imports files into a database of a data directory that no server has open.
///
/// If the database is missing or empty, a new one is built next to it and replaces it when it is complete, so that an
/// interrupted import leaves nothing behind. Otherwise all files are checked first and then applied in commits.
struct DirectoryImport {
  /// The data directory; created if it does not exist.
  var directory: String
  /// The maximum size of the database, in bytes.
  var mapBytes: Int
  /// The indexes to build; `nil` keeps the indexes of the database.
  var indexes: IndexConfiguration?

  /// Imports the files, and shows progress on a terminal.
  /// - Throws: `FixtureTreeError` if a file is invalid; `StorageError` or ``CommandFailure`` if the import fails.
  func run(_ files: ImportFiles, isQuiet: Bool) throws -> ImportOutcome {
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    let directory = try DataDirectory(directory)
    var indexes = indexes
    let file = try directory.makeFile(of: files.database)
    if access(file, F_OK) == 0, try !openForReading(file, files.database).isEmpty() {
      // The files are read twice: everything is checked before anything is stored.
      let files = try files.repeatable { progress.show("\(ByteCount.text($0)) of the input read") }
      _ = try files.check { progress.show($0, "documents checked", fraction: files.fraction(after: $0)) }
      progress.restart()
      let database = try open(file, files.database, indexes: nil)
      return try database.apply(files) { progress.show($0, "documents imported", fraction: files.fraction(after: $0)) }
    }
    // This process has locked the directory, so a file of this name is left from an interrupted import.
    let unfinished = "\(file).importing"
    removeFiles(unfinished)
    defer { removeFiles(unfinished) }
    if indexes == nil, access(file, F_OK) == 0 {
      let empty = try openForReading(file, files.database)
      indexes = try empty.read { reader in try empty.indexes(&reader).configuration }
    }
    let outcome = try open(unfinished, files.database, indexes: indexes, durability: .unsynced).load(files) {
      progress.show($0, "documents imported", fraction: files.fraction(after: $0))
    }
    // The whole file is synced once, because an interrupted import leaves nothing behind.
    try sync(unfinished, O_RDONLY)
    guard rename(unfinished, file) == 0 else { throw StorageError.system(operation: "rename", path: file, code: errno) }
    try syncDirectory(of: file)
    return outcome
  }

  private func open(
    _ file: String, _ id: DatabaseID, indexes: IndexConfiguration?, durability: LMDBOptions.Durability = .durable
  ) throws -> DocumentDatabase {
    let database = try openForReading(file, id, durability: durability)
    try database.adopt(indexes: indexes)
    return database
  }

  private func openForReading(
    _ file: String, _ id: DatabaseID, durability: LMDBOptions.Durability = .durable
  ) throws -> DocumentDatabase {
    let options = LMDBOptions(path: file, mapBytes: mapBytes, durability: durability)
    return try DocumentDatabase(id: id, store: StoredDatabase.open(options, withLog: false))
  }

  private func removeFiles(_ file: String) {
    unlink(file)
    unlink("\(file)-lock")
  }

  private func syncDirectory(of file: String) throws { try sync(LocalPath.folder(of: file), O_RDONLY | O_DIRECTORY) }

  private func sync(_ path: String, _ flags: Int32) throws {
    let descriptor = Glibc.open(path, flags | O_CLOEXEC)
    guard descriptor >= 0 else { throw StorageError.system(operation: "open", path: path, code: errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw StorageError.system(operation: "fsync", path: path, code: errno) }
  }
}
