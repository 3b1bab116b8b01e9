import Dispatch
import KeyValue
import LMDBEngine
import Synchronization

/// Commits of other nodes.
extension LoggedTables {
  /// Adds a commit of another node as ``LoggedStore/apply(_:at:)``.
  func apply(_ batch: UnsafeRawBufferPointer, at position: LogPosition) throws(StorageError) -> Bool {
    try withWriter { () throws(StorageError) in
      try requireOpen()
      guard view.withLock({ $0.position.sequence }) < position.sequence else { return false }
      // Nothing may be added if an operation is malformed.
      try check(batch, at: position)
      try makeRoom()
      var (active, ordinal) = view.withLock { ($0.active, $0.ordinal) }
      do throws(CommitBatchError) { try active.add(batch, ordinal: &ordinal) } catch {
        preconditionFailure("a batch that was checked is malformed: \(error)")
      }
      view.withLock { view in
        view.ordinal = ordinal
        view.active.ranges = active.ranges
        view.position = position
      }
      startFlushIfFull()
      return true
    }
  }

  private func check(_ batch: UnsafeRawBufferPointer, at position: LogPosition) throws(StorageError) {
    do throws(CommitBatchError) {
      var reader = try CommitBatchReader(batch)
      while try reader.next() != nil {}
    } catch {
      throw .corruption(
        path: base.path, detail: "commit \(position.sequence) is wrong at byte \(error.offset): \(error.problem)")
    }
  }

  /// Moves the position forward as ``LoggedStore/advance(to:)``.
  func advance(to position: () -> LogPosition) throws(StorageError) {
    try withIdleWriter { () throws(StorageError) in
      guard !isClosed, place.log != nil else { return }
      let position = position()
      let (isEmpty, isFlushing) = view.withLock { view in
        if view.position.sequence < position.sequence { view.position = position }
        return (view.isEmpty, view.flushing != nil)
      }
      if isEmpty {
        let mark = LogMark(isOpen: true, position: view.withLock { $0.position }.encoded(secret: secret))
        try base.writeMarked { _ throws(StorageError) in mark }
      } else if !isFlushing {
        freeze()
        if settings.flushesInline { writeFlushingTable() } else { flusher.async { self.writeFlushingTable() } }
      }
    }
  }

  /// The position after the last commit, or that to which it was moved.
  var position: LogPosition { view.withLock { $0.position } }
}
