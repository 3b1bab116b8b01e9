import Basics
import Dispatch
import DocumentModel
import DocumentStore
import Files
import FileService
import Gateway
import Glibc
import KeyValue
import LMDBEngine

/// The setup of the file store.
///
///     DIR/files/data.mdb       the metadata, an LMDB environment
///     DIR/files/content/…      the content, see ``ContentDirectory``
///
/// A project that has its own folder of configuration keeps its files in `DIR/project-files/{project}/` instead, unless
/// it is the default project of the server.
///
/// A server in memory keeps the content in a directory on `/dev/shm`, and removes it when it stops. If a server was
/// killed, the next process with a server in memory removes its directory.
enum FilesSetup {
  /// The most memory for content, in bytes.
  private static let inMemoryBytesMax = 4 << 30
  private static let secondsBetweenCleanings = 3600
  private static let memoryRoot = "/dev/shm"
  private static let memoryPrefix = "hearth-memory-"

  /// Returns a file store that is opened on first use.
  static func make(
    _ configuration: HearthConfiguration, _ directory: DataDirectory?, _ stores: ProjectStores,
    _ databases: DatabaseRegistry, _ quotas: ProjectQuotas
  ) -> LazyFileStore {
    var settings = settings(configuration, databases, lastMark: stores.lastMark)
    settings.quota = quotas.files
    settings.shared = configuration.sharedFiles
    settings.cacheBytesMax = configuration.sharedFilesCacheBytes
    return LazyFileStore { [settings] () throws(FilesError) in
      let contents: ContentDirectory
      let metadata: any KeyValueStore
      do throws(StorageError) {
        if let directory {
          // With a new, empty store, the sweep would remove all existing content.
          let owner = configuration.filesOwner
          _ = try DataDirectory.hasFiles(of: owner, in: directory.path)
          let path = try directory.makeFilesFolder(of: owner)
          contents = try wrapped(path) { () throws(FilesError) in try ContentDirectory(path) }
        } else {
          contents = try wrapped(memoryRoot) { () throws(FilesError) in try inMemory() }
        }
        metadata = try stores.filesMetadata()
      } catch { throw FilesError(error) }
      let store = FileStore(metadata: metadata, contents: contents, configuration: settings)
      try store.recover()
      DispatchQueue.global(qos: .utility).async { [weak store] in
        guard let store else { return }
        do throws(FilesError) { _ = try store.sweep() } catch {
          configuration.log(.warn, "files.sweep", "could not remove unreferenced files: \(error)")
        }
        SharedFilesMaintenance(store, configuration)?.run()
      }
      cleanLater(store, configuration)
      return store
    }
  }

  /// Removes expired uploads and content of deleted objects every hour, as long as the store is in use.
  private static func cleanLater(_ store: FileStore, _ configuration: HearthConfiguration) {
    let time = DispatchTime.now() + .seconds(secondsBetweenCleanings)
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: time) { [weak store] in
      guard let store else { return }
      do throws(FilesError) { try store.removeOldUploads() } catch {
        configuration.log(.warn, "files.uploads", "could not remove expired uploads: \(error)")
      }
      SharedFilesMaintenance(store, configuration)?.run()
      cleanLater(store, configuration)
    }
  }

  /// Returns the configuration of a file store next to document databases. `lastMark` is that of ``ProjectStores``.
  static func settings(
    _ configuration: HearthConfiguration, _ databases: DatabaseRegistry,
    lastMark: @escaping @Sendable (DatabaseID) throws(StorageError) -> UInt64 = { _ in 0 }
  ) -> FileStore.Configuration {
    let clock = configuration.clock
    var settings = FileStore.Configuration { clock.now() }
    settings.wasCommitted = { (database, number) throws(FilesError) in
      do throws(StorageError) {
        return try Self.lastMark(of: database, databases, ofUnserved: lastMark) == number
      } catch { throw FilesError(error) }
    }
    settings.makesBuckets = configuration.serverMode.createsWhatRequestsName
    if let project = configuration.project {
      settings.buckets = ["\(project).appspot.com", "\(project).firebasestorage.app"]
    }
    return settings
  }

  /// Returns the number of a database's last commit with a file, even if the database is no longer served.
  private static func lastMark(
    of text: String, _ databases: DatabaseRegistry,
    ofUnserved lastMark: (DatabaseID) throws(StorageError) -> UInt64
  ) throws(StorageError) -> UInt64 {
    guard let id = FileCommitDatabase.id(text) else {
      throw .corruption(path: "files", detail: "a pending commit refers to the database '\(text)', which is not valid")
    }
    if let database = try databases.database(id) { return try database.lastMark() }
    return try lastMark(id)
  }

  /// Opens the file store at the start if the data directory contains files. This removes what a crash left behind
  /// and reports damage early.
  static func openStored(
    _ files: LazyFileStore, _ directory: DataDirectory?, _ configuration: HearthConfiguration
  ) throws(FilesError) {
    guard let directory else { return }
    do throws(StorageError) {
      guard try DataDirectory.hasFiles(of: configuration.filesOwner, in: directory.path) else { return }
    } catch { throw FilesError(error) }
    _ = try files.store()
  }

  /// Runs a body that creates a directory at `path`, and converts its errors to storage errors.
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

  /// Removes the directories of killed servers, once in each process.
  private static let removedLeftovers: Void = ContentDirectory.removeAbandoned(in: memoryRoot, prefix: memoryPrefix)

  /// Returns a directory in memory, which is removed when it is no longer used.
  static func inMemory() throws(FilesError) -> ContentDirectory {
    removedLeftovers
    return try ContentDirectory.temporary(in: memoryRoot, prefix: memoryPrefix, bytesMax: inMemoryBytesMax)
  }
}
