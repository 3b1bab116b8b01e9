package import ChangeFeed
import DocumentStore
import Synchronization

/// The feeds of the databases that somebody follows. A feed holds on to its database, so that it is not closed.
package final class FeedBook: Sendable {
  private struct Entry {
    var feed: Feed
    var users: Int
  }

  private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

  /// The feed of a database; ``give(_:)`` it back.
  func take(_ database: DocumentDatabase) -> Feed {
    entries.withLock { entries in
      let id = ObjectIdentifier(database)
      let entry = entries[id] ?? Entry(feed: Feed(database), users: 0)
      entries[id] = Entry(feed: entry.feed, users: entry.users + 1)
      return entry.feed
    }
  }

  /// Ends the use of a feed, and with the last use the feed.
  func give(_ feed: Feed) {
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
  func nudgeAll() { for feed in all { feed.nudgeAll() } }

  /// Every feed.
  package var all: [Feed] { entries.withLock { $0.values.map(\.feed) } }
}
