import DocumentStore
import Synchronization
package import Watch

/// The feeds of the databases that somebody follows. A feed holds on to its database, so that it is not closed.
package final class WatchHubRegistry: Sendable {
  private struct Entry {
    var feed: WatchHub
    var users: Int
  }

  private let entries = Mutex<[ObjectIdentifier: Entry]>([:])
  /// Bytes of the operands of all queries that are followed.
  private let operandBytes = Atomic(0)

  /// Bytes that the operands of all queries followed at a time may take. The feeds keep some three copies of each.
  static let operandBytesMax = 64 << 20

  /// Counts the operands of a query; `false` where there is no room for them. Give back what was counted.
  func reserve(_ bytes: Int) -> Bool {
    guard operandBytes.wrappingAdd(bytes, ordering: .relaxed).newValue <= Self.operandBytesMax else {
      release(bytes)
      return false
    }
    return true
  }

  /// Gives back what ``reserve(_:)`` counted.
  func release(_ bytes: Int) { operandBytes.wrappingSubtract(bytes, ordering: .relaxed) }

  /// The feed of a database; ``give(_:)`` it back.
  func take(_ database: DocumentDatabase) -> WatchHub {
    entries.withLock { entries in
      let id = ObjectIdentifier(database)
      let entry = entries[id] ?? Entry(feed: WatchHub(database), users: 0)
      entries[id] = Entry(feed: entry.feed, users: entry.users + 1)
      return entry.feed
    }
  }

  /// Ends the use of a feed, and with the last use the feed.
  func give(_ feed: WatchHub) {
    let isUnused = entries.withLock { entries in
      let id = ObjectIdentifier(feed.database)
      entries[id]?.users -= 1
      guard entries[id]?.users == 0 else { return false }
      entries[id] = nil
      return true
    }
    if isUnused { feed.stop() }
  }

  /// Wakes every listener.
  func wakeAll() { for feed in all { feed.wakeAll() } }

  /// Every feed.
  package var all: [WatchHub] { entries.withLock { $0.values.map(\.feed) } }
}
