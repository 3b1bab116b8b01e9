package import DocumentModel
import DocumentStore
import KeyValue
import Watch

/// One event of the change feed of a whole database.
package enum ChangesEvent {
  /// A change of one document by a commit: the states before and after it, `nil` if the document did not exist.
  /// Borrowed: valid only during the call that receives it.
  case change(DocumentKey, version: Timestamp, before: StoredDocument?, after: StoredDocument?)
  /// All changes of a commit have been sent. `token` is the position after the commit.
  case commit(token: [UInt8], version: Timestamp)
  /// There are no newer commits. Sent when this is first the case, and every half minute after that.
  case caughtUp(token: [UInt8], version: Timestamp)
}

/// The change feed of a database: every commit once, in order, for replicas and search indexers. For administrators.
///
/// A stream is used on the event-loop thread of its client. It reads commits from the change log at the pace of the
/// client, so a slow client costs nothing but its position.
package final class ChangesStream {
  /// A position in the change log.
  private struct Place {
    /// The last commit that was sent completely.
    var version: Int64
    /// The last change sent of the next commit, by version and position.
    var last: (version: Int64, position: UInt64)?
  }

  private let caller: Caller
  private let database: DocumentDatabase
  private let hub: WatchHub
  private let watchHubs: WatchHubRegistry
  private let subscriber: Subscriber
  private let openStreams: OpenStreams
  private let entry: OpenStreams.Entry
  private let incarnation: UInt64
  private var place: Place
  private var isCaughtUpDue = true
  private var isOver = false

  /// The maximum number of changes in one pull, so that other clients have their turn.
  private static let pullChangesMax = 64

  /// Follows a database from the commit after `token`, or else from the first commit after `readTime`, or else from now
  /// on. `wake` is called, on any thread, when there is something to pull after ``ListenStream/Progress/waiting``.
  /// - Throws: The errors of ``FirestoreService/access(to:as:)``; `PERMISSION_DENIED` if the caller is not an
  ///   administrator and rules apply; `INVALID_ARGUMENT` if the token is malformed; `OUT_OF_RANGE` if the token
  ///   belongs to another database or the history no longer reaches back to it. After `OUT_OF_RANGE` the client must
  ///   start over.
  package init(
    _ service: FirestoreService, in id: DatabaseID, as caller: Caller, since token: [UInt8]?,
    readTime: Timestamp? = nil,
    wake: @escaping @Sendable () -> Void
  ) throws {
    let database = try service.access(to: id, as: caller).administrator().database
    let incarnation = database.incarnation
    place = try database.read { reader in
      guard let token else {
        let last = try reader.lastVersion()
        return Place(version: min(readTime?.microseconds ?? last, last))
      }
      guard let token = ResumeToken(token) else {
        throw Status(.invalidArgument, "The token is not valid for a change feed.")
      }
      let isKnown = token.version <= (try reader.lastVersion())
      guard token.incarnation == incarnation, isKnown || !database.isAdopted else { throw Self.foreignToken }
      return Place(version: token.version)
    }
    self.caller = caller
    self.database = database
    self.incarnation = incarnation
    watchHubs = service.watchHubs
    try Self.check(place.version, database)
    subscriber = Subscriber(name: caller.name, wake: wake)
    openStreams = service.openStreams
    entry = try openStreams.add(as: caller) { [weak subscriber] in subscriber?.requireCallerCheck() }
    hub = watchHubs.take(database)
    hub.handle(.followAll, from: subscriber)
  }

  deinit { end() }

  /// Ends the stream: no more events follow, and `wake` is released.
  package func end() {
    guard !isOver else { return }
    isOver = true
    openStreams.remove(entry)
    hub.close(subscriber)
    watchHubs.give(hub)
  }

  /// Calls `emit` for each event until it returns `false`. Data that an event borrows is valid only during the call.
  /// - Throws: `UNAUTHENTICATED` if the caller's token was revoked; `OUT_OF_RANGE` if the client was so slow that the
  ///   history no longer reaches back to its position; any error of `emit`.
  package func pull(_ emit: (ChangesEvent) throws -> Bool) throws -> ListenStream.Progress {
    guard !isOver else { return .waiting }
    try openStreams.requireContinuing()
    try caller.checkToken(database.clock)
    // Empty the mailbox before reading the log, so that no commit is missed: events only mean that there may be
    // changes.
    while let event = subscriber.take() {
      switch event {
      case .noChange: isCaughtUpDue = true
      case .lagged: hub.handle(.rejoin, from: subscriber)
      case .needsCallerCheck: try caller.checkToken(database.clock)
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
    if try reader.lastVersion() < place.version {
      // Another node made this token. Its commits arrive later, unless this node took over the database without them.
      guard !database.isAdopted else { throw Self.foreignToken }
      return .waiting
    }
    let scan =
      if let last = place.last {
        try ChangeLogIterator(reader.snapshot, after: last.position, of: last.version)
      } else {
        try ChangeLogIterator(reader.snapshot, after: place.version)
      }
    var left = Self.pullChangesMax
    while let row = try scan.next() {
      if let last = place.last, last.version != row.version {
        guard try emitCommit(last.version, emit) else { return .more }
      }
      guard left > 0 else { return .more }
      left -= 1
      place.last = (row.version, row.position)
      guard try emit(try change(row, &reader)) else { return .more }
    }
    if let last = place.last {
      guard try emitCommit(last.version, emit) else { return .more }
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
      throw StorageError.corruption(path: "changeLog", detail: "a change-log row without a document")
    }
    // Versions increase by at least 1, so the version before this one shows exactly the previous commits.
    let before = try reader.document(id, in: row.collection, at: row.version - 1)
    let after = try reader.document(id, in: row.collection, at: row.version)
    return .change(
      DocumentKey(uncheckedPath: collection.appending(id)), version: Timestamp(uncheckedMicroseconds: row.version),
      before: before, after: after)
  }

  private func emitCommit(_ version: Int64, _ emit: (ChangesEvent) throws -> Bool) throws -> Bool {
    place = Place(version: version)
    subscriber.noteSentVersion(version)
    return try emit(.commit(token: token, version: Timestamp(uncheckedMicroseconds: version)))
  }

  private var token: [UInt8] { ResumeToken(incarnation: incarnation, version: place.version).bytes }

  private static func check(_ version: Int64, _ database: DocumentDatabase) throws {
    let isThere = try database.read { reader in
      try reader.isLogged(since: version) && reader.isReadable(at: version)
    }
    guard isThere else { throw tooOld }
  }

  private static var foreignToken: Status {
    afresh("The token belongs to another database, or to this one before it was cleared or restored.")
  }

  private static var tooOld: Status {
    afresh("The history no longer reaches back to this position. If this happens often, keep history longer.")
  }

  private static func afresh(_ reason: String) -> Status {
    Status(.outOfRange, reason + " Copy the whole database again, then follow its changes from there.")
  }
}
