import Synchronization

/// A file store that is opened when somebody first needs it: most servers have documents only.
package final class LazyFileStore: Sendable {
  private struct State {
    var store: FileStore?
    var isClosed = false
  }

  private let state = Mutex(State())
  private let open: @Sendable () throws(FilesError) -> FileStore

  /// Opens nothing yet; `open` is called once it succeeded at most once.
  package init(_ open: @escaping @Sendable () throws(FilesError) -> FileStore) { self.open = open }

  /// The store. Cost: a short lock, once it is open.
  /// - Throws: what opening throws; the next call tries again.
  package func store() throws(FilesError) -> FileStore {
    try state.withLock { (state) throws(FilesError) in
      if let store = state.store { return store }
      guard !state.isClosed else { throw .system(operation: "open", path: "files", code: 9) }
      let store = try open()
      state.store = store
      return store
    }
  }

  /// The store, where somebody needed it already.
  package var opened: FileStore? { state.withLock { $0.store } }

  /// Lets go of the store; nobody gets one any more.
  package func close() {
    state.withLock { state in
      state.store = nil
      state.isClosed = true
    }
  }
}
