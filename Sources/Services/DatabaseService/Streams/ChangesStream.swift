package import DocumentModel
package import DocumentStore
import KeyValue
import Watch

/// One message of the ordered feed of a whole database.
package enum ChangesEvent {
  /// What a commit did to one document, borrowed for the call that it is given to: the state before it and after it,
  /// `nil` where the document was missing.
  case change(DocumentKey, version: Timestamp, before: StoredDocument?, after: StoredDocument?)
  /// All changes of a commit have been told; `token` is where to go on behind it.
  case commit(token: [UInt8], version: Timestamp)
  /// There is nothing newer: told when that is so for the first time, and every half a minute from then on.
  case caughtUp(token: [UInt8], version: Timestamp)
}

/// Every commit of a database, in order, once (administrators only): the base of replicas and search indexers.
///
/// Belongs to the loop's thread of its client. Commits are read from the change log as the client takes them, so a slow
/// client costs nothing but its place.
package final class ChangesStream {
  /// Where it stands in the log.
  private struct Place {
    /// The last commit of which all was told.
    var version: Int64
    /// The last change that was told of the commit behind it, by version and position.
    var last: (version: Int64, position: UInt64)?
  }

  private let database: DocumentDatabase
  private let feed: WatchHub
  private let feeds: WatchHubRegistry
  private let listener: WatchMailbox
  private let incarnation: UInt64
  private var place: Place
  private var isCaughtUpDue = true
  private var isOver = false

  /// Changes that one pull tells, so that others get their turn.
  private static let pullChangesMax = 64

  /// Follows a database from behind the commit that `token` names, or with `nil` from now on. `wake` is called, on any
  /// thread, once there is something to pull after ``ListenStream/Progress/waiting``.
  /// - Throws: as ``FirestoreService/access(to:as:)``, `PERMISSION_DENIED` for who is no administrator, and where the token is of
  ///   another database, or before-images of commits behind it are gone, `OUT_OF_RANGE`: start afresh then.
  package init(
    _ service: FirestoreService, in id: DatabaseID, as caller: Caller, since token: [UInt8]?,
    wake: @escaping @Sendable () -> Void
  ) throws {
    let access = try service.access(to: id, as: caller)
    try access.requireAdmin()
    let database = access.database
    let incarnation = database.incarnation
    place = try database.read { reader in
      guard let token else { return Place(version: try reader.lastVersion()) }
      guard let token = ResumeToken(token) else {
        throw Status(.invalidArgument, "The token is none that a feed of changes gave out.")
      }
      guard token.incarnation == incarnation, token.version <= (try reader.lastVersion()) else {
        throw Self.afresh("The token belongs to another database, or to this one before it was cleared or restored.")
      }
      return Place(version: token.version)
    }
    self.database = database
    self.incarnation = incarnation
    feeds = service.feeds
    listener = WatchMailbox(name: caller.name, wake: wake)
    try Self.check(place.version, database)
    feed = feeds.take(database)
    feed.subscribeToAll(listener)
  }

  deinit { end() }

  /// Ends the stream; nothing is told any more, and `wake` is let go.
  package func end() {
    guard !isOver else { return }
    isOver = true
    feed.close(listener)
    feeds.give(feed)
  }

  /// Calls `emit` for each event until it returns `false`. What an event borrows is valid during the call.
  /// - Throws: what `emit` throws, and `OUT_OF_RANGE` where the client was so slow that before-images are gone.
  package func pull(_ emit: (ChangesEvent) throws -> Bool) throws -> ListenStream.Progress {
    guard !isOver else { return .waiting }
    // Mail says only that there may be something: first it is taken, then the log is read, so that nothing is missed.
    while let event = listener.take() {
      switch event {
      case .noChange: isCaughtUpDue = true
      case .lagged: feed.rejoin(listener)
      case .failed(let error): throw Status(error, database: database.id)
      default: break
      }
    }
    guard database.incarnation == incarnation else { throw Self.afresh("The database was cleared.") }
    return try database.read { reader in try pull(&reader, emit) }
  }

  private func pull(
    _ reader: inout SnapshotReader, _ emit: (ChangesEvent) throws -> Bool
  ) throws -> ListenStream.Progress {
    guard try reader.isReadable(at: place.version) else { throw Self.tooOld }
    let scan =
      if let last = place.last {
        try ChangeLogIterator(reader.snapshot, behind: last.position, of: last.version)
      } else {
        try ChangeLogIterator(reader.snapshot, after: place.version)
      }
    var left = Self.pullChangesMax
    while let row = try scan.next() {
      if let last = place.last, last.version != row.version {
        guard try tellCommit(last.version, emit) else { return .more }
      }
      guard left > 0 else { return .more }
      left -= 1
      place.last = (row.version, row.position)
      guard try emit(try change(row, &reader)) else { return .more }
    }
    if let last = place.last {
      guard try tellCommit(last.version, emit) else { return .more }
    }
    if isCaughtUpDue {
      isCaughtUpDue = false
      guard try emit(.caughtUp(token: token, version: Timestamp(uncheckedMicroseconds: place.version))) else {
        return .more
      }
    }
    return .waiting
  }

  private func change(_ row: ChangeLogIterator.Row, _ reader: inout SnapshotReader) throws -> ChangesEvent {
    let collection = try reader.collectionPath(row.collection)
    guard let id = row.document.id else {
      throw StorageError.corruption(path: "changeLog", detail: "a change without a document")
    }
    // Versions rise by one at least, so below this commit there is nothing but the commits before it.
    let before = try reader.document(id, in: row.collection, at: row.version - 1)
    let after = try reader.document(id, in: row.collection, at: row.version)
    return .change(
      DocumentKey(uncheckedPath: collection.appending(id)), version: Timestamp(uncheckedMicroseconds: row.version),
      before: before, after: after)
  }

  private func tellCommit(_ version: Int64, _ emit: (ChangesEvent) throws -> Bool) throws -> Bool {
    place = Place(version: version)
    listener.tell(version)
    return try emit(.commit(token: token, version: Timestamp(uncheckedMicroseconds: version)))
  }

  private var token: [UInt8] { ResumeToken(incarnation: incarnation, version: place.version).bytes }

  private static func check(_ version: Int64, _ database: DocumentDatabase) throws {
    let isThere = try database.read { reader in
      try reader.isLogged(since: version) && reader.isReadable(at: version)
    }
    guard isThere else { throw tooOld }
  }

  private static var tooOld: Status {
    afresh("Before-images of commits behind the token are gone; raise the retention of history if that happens often.")
  }

  private static func afresh(_ reason: String) -> Status {
    Status(.outOfRange, reason + " Read the whole database, and follow it without a token from then on.")
  }
}
