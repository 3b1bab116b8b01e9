import KeyValue
import Synchronization

/// An object that is about to be written: what has to be done in the transaction, and what came of it.
final class NewObject: Sendable {
  /// Writes the object. Throws before it writes anything, but where the metadata store fails.
  typealias Body = @Sendable (any KeyValueTransaction, inout Int64, inout [ContentDigest]) throws(FilesError) ->
    StoredObject

  let digest: ContentDigest
  let body: Body
  let outcome = Mutex<Result<StoredObject, FilesError>?>(nil)

  init(_ digest: ContentDigest, _ body: @escaping Body) {
    self.digest = digest
    self.body = body
  }

  var isWritten: Bool { outcome.withLock { $0 != nil } }
}

extension FileStore {
  /// How many new objects wait for the writer.
  package var waitingCount: Int { waiting.withLock { $0.count } }

  /// Has content reach the disk, and writes the object that holds it. Whoever waits for the writer meanwhile is written
  /// in the same transaction, with the same sync.
  func write(
    _ incoming: IncomingContent, _ content: ContentSummary, _ body: @escaping NewObject.Body
  ) throws(FilesError) -> StoredObject {
    let digest = content.digest
    arriving.withLock { $0[digest, default: 0] += 1 }
    do throws(FilesError) { try contents.publish(incoming, as: digest) } catch {
      writer.withLock { _ in
        leave([digest])
        removeUnheld([digest])
      }
      throw error
    }
    let object = NewObject(digest, body)
    waiting.withLock { $0.append(object) }
    writer.withLock { last in
      // Whoever had the lock before has perhaps written this one too.
      guard !object.isWritten else { return }
      write(waiting.withLock { waiting in
        let group = waiting
        waiting = []
        return group
      }, &last)
    }
    guard let outcome = object.outcome.withLock({ $0 }) else { throw .storage(.rolledBack) }
    return try outcome.get()
  }

  /// Writes a group, each as if it were alone. Under the writer's lock.
  private func write(_ group: [NewObject], _ last: inout Int64) {
    var unheld = group.map(\.digest)
    do throws(FilesError) { try settle(&last) } catch {
      for object in group { object.outcome.withLock { $0 = .failure(error) } }
      return leave(unheld)
    }
    if !writeTogether(group, &last, &unheld), group.count > 1 {
      // What the store refuses to all it may grant to most.
      for object in group { _ = writeTogether([object], &last, &unheld) }
    }
    leave(group.map(\.digest))
    removeUnheld(unheld)
  }

  /// Writes objects in one transaction; `false` where the store failed, and then none is written.
  private func writeTogether(_ group: [NewObject], _ last: inout Int64, _ unheld: inout [ContentDigest]) -> Bool {
    do throws(StorageError) {
      try metadata.write { (transaction) throws(StorageError) in
        var isAnyWritten = false
        for object in group {
          var outcome: Result<StoredObject, FilesError>
          do throws(FilesError) {
            outcome = .success(try object.body(transaction, &last, &unheld))
            isAnyWritten = true
          } catch { outcome = .failure(error) }
          object.outcome.withLock { $0 = outcome }
        }
        guard isAnyWritten else { throw .rolledBack }
      }
    } catch {
      guard error != .rolledBack else { return true }
      for object in group { object.outcome.withLock { $0 = .failure(FilesError(error)) } }
      return false
    }
    return true
  }

  /// The contents have their objects, or get none.
  private func leave(_ digests: [ContentDigest]) {
    arriving.withLock { arriving in
      for digest in digests {
        let count = (arriving[digest] ?? 1) - 1
        arriving[digest] = count > 0 ? count : nil
      }
    }
  }
}
