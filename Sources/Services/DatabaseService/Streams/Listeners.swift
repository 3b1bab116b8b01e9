import Dispatch
package import DocumentModel
import DocumentStore
import Synchronization
import Watch

/// Who follows what, and how far behind.
package struct ListenerDescription: Sendable {
  /// The database.
  package let database: DatabaseID
  /// Who: a user's id, or `admin`.
  package let name: String
  /// What is followed, in short: one line a target.
  package let targets: [String]
  /// How far the client is behind, in microseconds of commit time.
  package let lag: Int64
  /// Bytes that wait for the client.
  package let queuedBytes: Int
}

extension FirestoreService {
  /// Describes every listener of the open databases; `completion` is called once, on any thread.
  ///
  /// Cost: a step over the listeners, on the queues of their feeds.
  /// - Throws: `PERMISSION_DENIED` where nobody is admitted.
  package func listeners(
    as caller: Caller, completion: @escaping @Sendable ([ListenerDescription]) -> Void
  ) throws {
    try admit(caller)
    let feeds = feeds.all
    let gathered = Mutex<[ListenerDescription]>([])
    let group = DispatchGroup()
    for feed in feeds {
      group.enter()
      feed.describe { found in
        let descriptions = found.map { one in
          ListenerDescription(
            database: feed.database.id, name: one.name, targets: one.targets, lag: one.lag, queuedBytes: one.queuedBytes
          )
        }
        gathered.withLock { $0 += descriptions }
        group.leave()
      }
    }
    group.notify(queue: .global(qos: .utility)) { completion(gathered.withLock { $0 }) }
  }
}
