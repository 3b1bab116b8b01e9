import DocumentStore
import Files
import KeyValue
import LMDBEngine
import Synchronization

/// The files that test servers begin with. They are never written.
struct OriginFiles: Sendable {
  let metadata: LMDBStore
  let contents: ContentDirectory

  /// Copies the current files of a store.
  init(of store: FileStore, _ metadata: LMDBStore, _ settings: TestOrigin.Settings) throws(FilesError) {
    contents = try FilesSetup.inMemory()
    var copy: LMDBStore?
    try store.fork(to: contents) { () throws(FilesError) in
      do throws(StorageError) { copy = try TestOrigin.copy(metadata, settings) } catch { throw .storage(error) }
    }
    guard let copy else { throw .storage(.rolledBack) }
    self.metadata = copy
  }
}

/// The files of a test server until its next reset: a copy of the origin's files, made on first use.
final class TestServerFiles: Sendable {
  private struct Opened {
    var metadata: LMDBStore
    var transaction: Int
  }

  private let origin: TestOrigin
  private let configuration: FileStore.Configuration
  private let opened = Mutex<Opened?>(nil)

  init(_ origin: TestOrigin, _ configuration: HearthConfiguration, _ databases: DatabaseRegistry) {
    self.origin = origin
    self.configuration = FilesSetup.settings(configuration, databases)
  }

  /// Returns the store, which is opened on first use.
  func makeStore() -> LazyFileStore { LazyFileStore { [self] () throws(FilesError) in try open() } }

  /// Whether the files are not open, or nothing was written since they were opened.
  var isUnchanged: Bool { opened.withLock { $0.map { $0.metadata.lastTransaction == $0.transaction } ?? true } }

  /// Returns the files that a fork begins with.
  func makeOriginFiles(_ store: LazyFileStore) throws(FilesError) -> OriginFiles? {
    guard let store = store.opened, let metadata = opened.withLock({ $0?.metadata }) else { return origin.files }
    return try OriginFiles(of: store, metadata, origin.settings)
  }

  private func open() throws(FilesError) -> FileStore {
    let contents = try FilesSetup.inMemory()
    let metadata: LMDBStore
    do throws(StorageError) {
      metadata =
        if let files = origin.files { try TestOrigin.copy(files.metadata, origin.settings) } else {
          try LMDBStore.open(TestOrigin.options(origin.settings))
        }
    } catch { throw .storage(error) }
    if let files = origin.files { try contents.link(contentsOf: files.contents) }
    let store = FileStore(metadata: metadata, contents: contents, configuration: configuration)
    try store.recover()
    opened.withLock { $0 = Opened(metadata: metadata, transaction: metadata.lastTransaction) }
    return store
  }
}
