import ContentSharing
import KeyValue
import Synchronization

/// An object that waits to be written: the work in the transaction, and its outcome.
final class NewObject: Sendable {
  /// Writes the object. Throws before it writes anything, unless the metadata store fails.
  typealias Body =
    @Sendable (any KeyValueTransaction, inout Int64, inout [ContentDigest]) throws(FilesError) ->
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
  /// Publishes content and writes the object that refers to it. All objects that wait for the writer are written in
  /// the same transaction, with one sync.
  func write(
    _ incoming: IncomingContent, _ content: ContentSummary, _ body: @escaping NewObject.Body
  ) throws(FilesError) -> StoredObject {
    let digest = content.digest
    if let cache { return try write(incoming, content, body, cache) }
    arriving.withLock { $0[digest, default: 0] += 1 }
    do throws(FilesError) { try contents.publish(incoming, as: digest) } catch {
      writer.withLock { _ in
        leave([digest])
        removeUnheld([digest])
      }
      throw error
    }
    return try write(NewObject(digest, body))
  }

  /// Writes an object whose content is marked as arriving. The mark ends with the write.
  func write(_ object: NewObject) throws(FilesError) -> StoredObject {
    waiting.withLock { $0.append(object) }
    configuration.objectWaits?()
    writer.withLock { last in
      // The previous holder of the lock may have written this object too.
      guard !object.isWritten else { return }
      write(
        waiting.withLock { waiting in
          let group = waiting
          waiting = []
          return group
        }, &last)
    }
    guard let outcome = object.outcome.withLock({ $0 }) else { throw .storage(.rolledBack) }
    return try outcome.get()
  }

  /// Writes a group of objects, each with an outcome of its own. Call under the writer's lock.
  private func write(_ group: [NewObject], _ last: inout Int64) {
    var unreferenced = group.map(\.digest)
    do throws(FilesError) { try settle(&last) } catch {
      for object in group { object.outcome.withLock { $0 = .failure(error) } }
      return leave(unreferenced)
    }
    var failure = writeTogether(group, &last, &unreferenced)
    if failure?.permitsParts == true, group.count > 1 {
      // If the transaction fails as a whole, most objects may still succeed one by one.
      for object in group {
        failure = writeTogether([object], &last, &unreferenced)
        if failure?.permitsParts == false { break }
      }
    }
    noteUse()
    leave(group.map(\.digest))
    // If the objects may be found later, their contents stay; otherwise ``sweep()`` removes them.
    if failure?.permitsParts == false { return }
    removeUnheld(unreferenced)
  }

  /// Writes objects in one transaction. If the store fails, all of them have its error as their outcome, and it is returned.
  private func writeTogether(
    _ group: [NewObject], _ last: inout Int64, _ unreferenced: inout [ContentDigest]
  ) -> StorageError? {
    do throws(StorageError) {
      try metadata.write { (transaction) throws(StorageError) in
        var isAnyWritten = false
        for object in group {
          var outcome: Result<StoredObject, FilesError>
          do throws(FilesError) {
            outcome = .success(try object.body(transaction, &last, &unreferenced))
            isAnyWritten = true
          } catch { outcome = .failure(error) }
          object.outcome.withLock { $0 = outcome }
        }
        guard isAnyWritten else { throw .rolledBack }
      }
    } catch {
      guard error != .rolledBack else { return nil }
      for object in group { object.outcome.withLock { $0 = .failure(FilesError(error)) } }
      return error
    }
    return nil
  }

  /// Marks contents as no longer arriving, after their objects were written or rejected.
  func leave(_ digests: [ContentDigest]) {
    arriving.withLock { arriving in
      for digest in digests {
        let count = (arriving[digest] ?? 1) - 1
        arriving[digest] = count > 0 ? count : nil
      }
    }
  }
}
