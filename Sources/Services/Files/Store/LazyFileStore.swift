import Synchronization

/// A file store that is opened on first use, because most servers store only documents.
package final class LazyFileStore: Sendable {
  private struct State {
    var store: FileStore?
    var isClosed = false
    var failure: (error: FilesError, at: ContinuousClock.Instant)?
  }

  private let state = Mutex(State())
  private let pause: Duration
  private let open: @Sendable () throws(FilesError) -> FileStore

  /// Creates a closed store. `open` is called on first use. After a failure, it is called again, at the earliest
  /// after `pause`.
  package init(pause: Duration = .seconds(1), _ open: @escaping @Sendable () throws(FilesError) -> FileStore) {
    self.pause = pause
    self.open = open
  }

  /// Returns the store, and opens it if necessary. Cost: a short lock if it is open.
  /// - Throws: the error of `open`, also for calls within `pause` after a failure;
  ///   ``FilesError/system(operation:path:code:)`` after ``close()``.
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

  /// The store if it is open, otherwise `nil`.
  package var opened: FileStore? { state.withLock { $0.store } }

  /// Releases the store. Later calls of ``store()`` throw.
  package func close() {
    state.withLock { state in
      state.store = nil
      state.isClosed = true
    }
  }
}
