import Dispatch
package import DocumentModel
import DocumentStore
import Synchronization
import Watch

/// A listener, its targets and its lag.
package struct ListenerDescription: Sendable {
  package let database: DatabaseID
  /// The ID of the user, or `admin`.
  package let name: String
  /// Short text forms of the targets, one line each.
  package let targets: [String]
  /// How far the client lags behind, in microseconds of commit time.
  package let lag: Int64
  /// The number of bytes waiting for the client.
  package let queuedBytes: Int
}

extension FirestoreService {
  /// Describes every listener of the open databases. `completion` is called once, on any thread.
  ///
  /// Cost: one pass over the listeners, on the queues of their hubs.
  package func listeners(
    as _: Administrator, completion: @escaping @Sendable ([ListenerDescription]) -> Void
  ) {
    let watchHubs = watchHubs.all
    let gathered = Mutex<[ListenerDescription]>([])
    let group = DispatchGroup()
    for hub in watchHubs {
      group.enter()
      hub.describe { found in
        let descriptions = found.map { one in
          ListenerDescription(
            database: hub.database.id, name: one.name, targets: one.targets, lag: one.lag, queuedBytes: one.queuedBytes
          )
        }
        gathered.withLock { $0 += descriptions }
        group.leave()
      }
    }
    group.notify(queue: .global(qos: .utility)) { completion(gathered.withLock { $0 }) }
  }
}
