import Synchronization

/// A file store that is opened when somebody first needs it: most servers have documents only.
package final class LazyFileStore: Sendable {
  private struct State {
    var store: FileStore?
    var isClosed = false
    var failure: (error: FilesError, at: ContinuousClock.Instant)?
  }

  private let state = Mutex(State())
  private let pause: Duration
  private let open: @Sendable () throws(FilesError) -> FileStore

  /// Opens nothing yet; `open` is called once it succeeded at most once, and after a failure not before a `pause`.
  package init(pause: Duration = .seconds(1), _ open: @escaping @Sendable () throws(FilesError) -> FileStore) {
    self.pause = pause
    self.open = open
  }

  /// The store. Cost: a short lock, once it is open.
  /// - Throws: what opening throws, also to those who come shortly after; later calls try again.
  package func store() throws(FilesError) -> FileStore {
    try state.withLock { (state) throws(FilesError) in
      if let store = state.store { return store }
      guard !state.isClosed else { throw .system(operation: "open", path: "files", code: 9) }
      if let failure = state.failure, failure.at.duration(to: .now) < pause { throw failure.error }
      do throws(FilesError) {
        let store = try open()
        state.store = store
        state.failure = nil
        return store
      } catch {
        state.failure = (error, .now)
        throw error
      }
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
