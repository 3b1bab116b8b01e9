import Basics
package import DocumentModel
package import KeyValue
import Synchronization

/// The databases of an emulator that do not exist yet. Requests may name any, so a read must not create one: it reads a
/// blank database, which is empty and shares its store with all others.
///
/// All blank databases exist since the same moment. A database that a write creates has that moment as its origin, so
/// it continues what earlier reads have shown: the read times of these reads remain valid.
package final class BlankDatabases: Sendable {
  /// The databases that a server keeps open, each with three file descriptors. Beyond it, the server closes databases
  /// that no request uses and that lose nothing. If every one is in use or contains documents, a request that would open
  /// another one fails with RESOURCE_EXHAUSTED. At most half of the descriptors of the process are used, so fewer
  /// descriptors lower the limit. Source: Hearth's own limit, which bounds memory and descriptors.
  package static let openDatabasesMax = 1000
  /// The file descriptors of an open database.
  package static let descriptorsPerDatabase = 3

  /// Returns whether the server has stored a database.
  let isStored: @Sendable (DatabaseID) -> Bool
  /// The databases that the server keeps open.
  let openMax: Int
  private let makeStore: @Sendable () throws(StorageError) -> any KeyValueStore
  private let state = Mutex(State())

  private struct State {
    /// The databases whose stores the blank ones share: one for all names without declared indexes, and one for each
    /// name with declared indexes.
    var templates: [String?: DocumentDatabase] = [:]
    /// The moment since which blank databases exist, in microseconds since 1970.
    var origin: Int64?
  }

  /// Creates an object without stores.
  ///
  /// - Parameters:
  ///   - openMax: the databases that the server keeps open.
  ///   - isStored: returns whether the server has stored a database.
  ///   - makeStore: returns an empty store, which need not be durable.
  package init(
    openMax: Int = openDatabasesMax, isStored: @escaping @Sendable (DatabaseID) -> Bool,
    makeStore: @escaping @Sendable () throws(StorageError) -> any KeyValueStore
  ) {
    self.openMax = openMax
    self.isStored = isStored
    self.makeStore = makeStore
  }

  /// The moment since which blank databases exist, in microseconds since 1970, or `nil` if none was read yet.
  var origin: Int64? { state.withLock { $0.origin } }

  /// Returns a blank database for the requests that read one. Cost: a few allocations and a snapshot; the first call
  /// for the same declared indexes creates a store.
  /// - Throws: ``StorageError`` if the store cannot be created or read.
  func database(
    _ id: DatabaseID, _ edition: Edition, indexes: IndexConfiguration?, _ settings: DatabaseSettings
  ) throws(StorageError) -> DocumentDatabase {
    let template = try state.withLock { (state) throws(StorageError) in
      let name = indexes == nil ? nil : id.database
      if let template = state.templates[name] { return template }
      let origin = state.origin ?? settings.clock.now()
      let template = try DocumentDatabase(
        id: id, store: makeStore(), retention: settings.retention, clock: settings.clock, scratch: settings.scratch)
      try template.adopt(indexes: indexes, origin: origin)
      template.continueBackgroundWork()
      state.origin = origin
      state.templates[name] = template
      return template
    }
    // Nobody adopts it, so it can only be read: requests that write create their database.
    return try DocumentDatabase(
      id: id, edition: edition, store: template.store, retention: settings.retention, clock: settings.clock,
      scratch: settings.scratch)
  }
}

/// The settings that all databases of a registry share.
struct DatabaseSettings: Sendable {
  var retention: Retention
  var clock: Clock
  var scratch: ScratchSpace
}
