import DocumentStore
import Synchronization
package import Watch

/// The hubs of the databases that have listeners. A hub retains its database, so that it stays open.
package final class WatchHubRegistry: Sendable {
  private struct Entry {
    var hub: WatchHub
    var users: Int
  }

  private let entries = Mutex<[ObjectIdentifier: Entry]>([:])
  /// The size of the operands of all queries with listeners, in bytes.
  private let operandBytes = Atomic(0)

  /// The maximum size of the operands of all queries with listeners, in bytes. The hubs keep about three copies of
  /// each.
  static let operandBytesMax = 64 << 20

  /// Reserves memory for the operands of a query. Returns `false` if the limit is reached. Call ``release(_:)`` for
  /// bytes that were reserved.
  func reserve(_ bytes: Int) -> Bool {
    guard operandBytes.wrappingAdd(bytes, ordering: .relaxed).newValue <= Self.operandBytesMax else {
      release(bytes)
      return false
    }
    return true
  }

  /// Releases bytes that ``reserve(_:)`` has reserved.
  func release(_ bytes: Int) { operandBytes.wrappingSubtract(bytes, ordering: .relaxed) }

  /// Returns the hub of a database. Call ``give(_:)`` after its use.
  func take(_ database: DocumentDatabase) -> WatchHub {
    entries.withLock { entries in
      let id = ObjectIdentifier(database)
      let entry = entries[id] ?? Entry(hub: WatchHub(database), users: 0)
      entries[id] = Entry(hub: entry.hub, users: entry.users + 1)
      return entry.hub
    }
  }

  /// Ends one use of a hub. The last use stops it.
  func give(_ hub: WatchHub) {
    let isUnused = entries.withLock { entries in
      let id = ObjectIdentifier(hub.database)
      entries[id]?.users -= 1
      guard entries[id]?.users == 0 else { return false }
      entries[id] = nil
      return true
    }
    if isUnused { hub.stop() }
  }

  /// All hubs.
  package var all: [WatchHub] { entries.withLock { $0.values.map(\.hub) } }
}
