import Dispatch
import DocumentStore
import Files
import Gateway
import Glibc
import KeyValue
import LMDBEngine

/// Where a server keeps files:
///
///     DIR/files/data.mdb       what is known of them, an LMDB environment
///     DIR/files/content/…      what they hold, see ``ContentDirectory``
///
/// In memory the content lies in a directory on `/dev/shm` that is removed when the server stops; one that a killed
/// server left is removed by the next.
enum FilesSetup {
  /// What content may take in memory, in bytes, and what is known of it.
  private static let inMemoryBytesMax = 4 << 30
  private static let inMemoryMetadataBytesMax = 512 << 20
  private static let secondsBetweenCleanings = 3600
  private static let memoryRoot = "/dev/shm"
  private static let memoryPrefix = "hearth-files-"

  /// A store that is opened when somebody needs it.
  static func make(
    _ configuration: HearthConfiguration, _ directory: DataDirectory?, _ databases: DatabaseRegistry
  ) -> LazyFileStore {
    let settings = settings(configuration, databases, directory)
    let mapBytes = configuration.mapBytes
    return LazyFileStore { () throws(FilesError) in
      let contents: ContentDirectory
      let metadata: LMDBStore
      do throws(StorageError) {
        if let directory {
          // A new store would take all content for what a crash left.
          _ = try DataDirectory.hasFiles(in: directory.path)
          let path = DataDirectory.filesFolder(in: directory.path)
          contents = try wrapped(path) { () throws(FilesError) in try ContentDirectory(path) }
          metadata = try LMDBStore.open(LMDBOptions(path: DataDirectory.filesFile(in: directory.path), mapBytes: mapBytes))
        } else {
          contents = try wrapped(memoryRoot) { () throws(FilesError) in try inMemory() }
          metadata = try LMDBStore.open(.inMemory(mapBytes: min(mapBytes, inMemoryMetadataBytesMax)))
        }
      } catch { throw .storage(error) }
      let store = FileStore(metadata: metadata, contents: contents, configuration: settings)
      try store.recover()
      DispatchQueue.global(qos: .utility).async { [weak store] in
        do throws(FilesError) { _ = try store?.sweep() } catch {
          configuration.tell(.warn, "files.sweep", "looking for files that nothing names failed: \(error)")
        }
      }
      cleanLater(store, configuration)
      return store
    }
  }

  /// Forgets old uploads now and then, for as long as the store is used.
  private static func cleanLater(_ store: FileStore, _ configuration: HearthConfiguration) {
    let time = DispatchTime.now() + .seconds(secondsBetweenCleanings)
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: time) { [weak store] in
      guard let store else { return }
      do throws(FilesError) { try store.removeOldUploads() } catch {
        configuration.tell(.warn, "files.uploads", "forgetting old uploads failed: \(error)")
      }
      cleanLater(store, configuration)
    }
  }

  /// How files are served beside the documents of databases.
  static func settings(
    _ configuration: HearthConfiguration, _ databases: DatabaseRegistry, _ directory: DataDirectory? = nil
  ) -> FileStore.Configuration {
    let clock = configuration.clock
    var settings = FileStore.Configuration { clock.now() }
    settings.wasCommitted = { (database, number) throws(FilesError) in
      do throws(StorageError) {
        return try lastMark(of: database, databases, directory) == number
      } catch { throw .storage(error) }
    }
    settings.makesBuckets = configuration.mode == .emulator
    if let project = configuration.project {
      settings.buckets = ["\(project).appspot.com", "\(project).firebasestorage.app"]
    }
    return settings
  }

  /// The mark of a database, also of one that is not served any more.
  private static func lastMark(
    of text: String, _ databases: DatabaseRegistry, _ directory: DataDirectory?
  ) throws(StorageError) -> UInt64 {
    guard let id = FileCommitDatabase.id(text) else {
      throw .corruption(path: "files", detail: "a commit with a file names the database '\(text)'")
    }
    if let database = try databases.database(id) { return try DocumentDatabase.lastMark(in: database.store) }
    // One that is not there has seen no commit.
    guard let directory, access(DataDirectory.file(of: id, in: directory.path), F_OK) == 0 else { return 0 }
    let options = LMDBOptions(path: DataDirectory.file(of: id, in: directory.path), readOnly: true)
    return try DocumentDatabase.lastMark(in: LMDBStore.open(options))
  }

  /// Opens the files of a data directory that has some, so that what a crash left is removed and damage is told.
  static func openStored(_ files: LazyFileStore, _ directory: DataDirectory?) throws(FilesError) {
    guard let directory else { return }
    do throws(StorageError) {
      guard try DataDirectory.hasFiles(in: directory.path) else { return }
    } catch { throw .storage(error) }
    _ = try files.store()
  }

  /// The error of a body that makes a directory at `path`, as one of storage.
  private static func wrapped<R>(
    _ path: String, _ body: () throws(FilesError) -> R
  ) throws(StorageError) -> R {
    do throws(FilesError) { return try body() } catch {
      if case .storage(let error) = error { throw error }
      if case .system(let operation, let path, let code) = error {
        throw .system(operation: operation, path: path, code: code)
      }
      throw .diskFull(path: path)
    }
  }

  /// A directory in memory, with a lock that ends with this process.
  static func inMemory() throws(FilesError) -> ContentDirectory {
    removeLeftovers()
    var generator = SystemRandomNumberGenerator()
    let path = "\(memoryRoot)/\(memoryPrefix)\(getpid())-\(UInt64.random(in: 0 ... .max, using: &generator))"
    let contents = try ContentDirectory(path, isInMemory: true, bytesMax: inMemoryBytesMax)
    contents.removesItself()
    return contents
  }

  /// Removes directories of processes that are gone.
  private static func removeLeftovers() {
    for name in ContentDirectory.names(in: memoryRoot) where name.hasPrefix(memoryPrefix) {
      let rest = name.dropFirst(memoryPrefix.count)
      guard let process = Int32(rest.prefix { $0 != "-" }), kill(process, 0) != 0, errno == ESRCH else { continue }
      ContentDirectory.remove("\(memoryRoot)/\(name)")
    }
  }
}
