import Basics
import Dispatch
import KeyValue

extension DocumentDatabase {
  /// Counts the bytes of the documents in the quota. If an older release wrote the database, counts its documents in the
  /// background, from a snapshot. Until that is done, the quota contains only what commits add. Call it before the first
  /// commit.
  /// - Throws: ``StorageError`` if the read fails.
  func countUse() throws(StorageError) {
    let snapshot = try store.snapshot()
    var reader = SnapshotReader(snapshot)
    do throws(StorageError) {
      if let bytes = try DocumentUse.stored(&reader) {
        use.set(bytes)
        return snapshot.end()
      }
    } catch {
      snapshot.end()
      throw error
    }
    use.set(0)
    background.counting.enter()
    // This thread does not use the snapshot any more.
    nonisolated(unsafe) let state = snapshot
    queues.aside { [self] in
      // If the count fails, the next start counts again, and `hearth check` reports the damage.
      let bytes = try? DocumentUse.count(state) { background.isStopped }
      state.end()
      guard let bytes else { return background.counting.leave() }
      queue.perform { [self] in
        defer { background.counting.leave() }
        guard !background.isStopped else { return }
        do throws(StorageError) {
          try queue.write { (writer, transaction) throws(StorageError) in
            try writer.storeUse(counted: bytes, transaction)
          }
          let stored = try store.snapshot()
          defer { stored.end() }
          var reader = SnapshotReader(stored)
          if let bytes = try DocumentUse.stored(&reader) { use.set(bytes) }
        } catch {
          // Nothing was stored. The next start counts again.
        }
      }
    }
  }
}
