package import DocumentModel
import DocumentStore
import RulesEngine
import Watch

/// One Listen stream: the targets of a client, and the events to be sent (listen-and-webchannel.md, section 1).
///
/// A stream is used on the event-loop thread of its client. The client's requests are passed in; events are pulled
/// out at the pace of the client. The data waiting in between is limited: a client that lags catches up from the
/// change log.
package final class ListenStream {
  /// The outcome of a pull.
  package enum Progress {
    /// More events may follow: `emit` returned `false`, or other clients should have their turn. Pull again.
    case more
    /// No event is available. `wake` is called when there is one.
    case waiting
  }

  let service: FirestoreService
  let caller: Caller
  let database: DocumentDatabase
  let hub: WatchHub
  let mailbox: WatchMailbox
  /// Whether rules authorize the targets.
  var access: Access
  /// The targets by the client's target ID, and by the hub's number.
  var targets: [Int32: WatchedTarget] = [:]
  var numbered: [Int: WatchedTarget] = [:]
  /// The events to be sent before anything else, in order from ``nextEvent``.
  var events: [ListenEvent] = []
  var nextEvent = 0

  private var lastNumber = 0
  /// Whether the server chooses the target IDs of this stream.
  private var isNumbering = false
  private var lastGivenID: Int32 = 0
  private var documentsWatched = 0
  private var operandBytes = 0
  private var work = StreamWork.none
  /// Targets that must be brought up to the joined version.
  private var joining: [WatchStart.Target] = []
  private(set) var joiningVersion: Int64 = 0
  /// The version that the client has of all targets that are current and not behind.
  private var shownVersion = Int64.min
  private var isOver = false

  /// The maximum number of targets in one stream.
  package static let targetsMax = 1000
  /// The maximum number of documents in all document targets of one stream.
  static let documentsMax = 10_000
  /// The maximum size of the operands of all queries of one stream, in bytes.
  package static let operandBytesMax = 4 << 20
  /// The maximum number of waiting events if a client sends requests but receives nothing.
  private static let eventsMax = 10_000
  /// The maximum number of steps in one pull.
  private static let pullEventsMax = 256

  /// Opens a stream to a database. `wake` is called, on any thread, when there is something to pull after
  /// ``Progress/waiting``. The stream may have ended by then.
  /// - Throws: The errors of ``FirestoreService/accessOfListener(to:as:)``.
  package init(_ service: FirestoreService, in id: DatabaseID, as caller: Caller, wake: @escaping @Sendable () -> Void)
    throws
  {
    let access = try service.accessOfListener(to: id, as: caller)
    self.service = service
    self.caller = caller
    database = access.database
    self.access = access.access
    hub = service.watchHubs.take(access.database)
    mailbox = WatchMailbox(name: caller.name, wake: wake)
  }

  deinit { end() }

  /// Ends the stream: no more events follow, and `wake` is released.
  package func end() {
    guard !isOver else { return }
    isOver = true
    hub.close(mailbox)
    service.watchHubs.give(hub)
    service.watchHubs.release(operandBytes)
    operandBytes = 0
    work = .none
    events = []
    targets = [:]
    numbered = [:]
  }

  // MARK: Requests

  /// Handles a request. An error in one target ends only that target, with an event.
  /// - Throws: `INVALID_ARGUMENT` or `RESOURCE_EXHAUSTED` for an error that ends the stream, `UNAUTHENTICATED` if
  ///   the caller's token has expired or was revoked.
  package func receive(_ request: ListenRequest) throws {
    guard !isOver else { return }
    guard events.count - nextEvent < Self.eventsMax else {
      throw Status(.resourceExhausted, "More than \(Self.eventsMax) responses wait. Read them before sending more.")
    }
    switch request {
    case .remove(let id):
      guard let target = targets[id] else { return }
      drop(target)
      send(.targetRemoved(id, cause: nil))
    case .add(let target):
      try checkCaller()
      try add(target)
    }
    mailbox.wake()
  }

  private func add(_ target: ListenTarget) throws {
    guard target.id >= 0 else { throw Status(.invalidArgument, "A target id must not be negative: \(target.id)") }
    guard target.id == 0 || targets[target.id] == nil else {
      throw Status(.invalidArgument, "Target id already in use: \(target.id)")
    }
    if target.id != 0, isNumbering {
      let text = "The server assigns the target ids of this stream, because one was 0; \(target.id) is not allowed."
      return send(.targetRemoved(target.id, cause: Status(.invalidArgument, text)))
    }
    let id = target.id == 0 ? freeID() : target.id
    send(.targetAdded(id))
    do { try addTarget(target, as: id) } catch {
      send(.targetRemoved(id, cause: Status(error, database: database.id)))
    }
  }

  private func freeID() -> Int32 {
    isNumbering = true
    repeat { lastGivenID = lastGivenID == .max ? 1 : lastGivenID + 1 } while targets[lastGivenID] != nil
    return lastGivenID
  }

  private func addTarget(_ requested: ListenTarget, as id: Int32) throws {
    guard targets.count < Self.targetsMax else {
      throw Status(.resourceExhausted, "A stream follows at most \(Self.targetsMax) targets. Open another stream.")
    }
    let selection = try selection(requested)
    let (lastSentVersion, isResetDue) = origin(requested.resumePoint)
    lastNumber += 1
    let target = WatchedTarget(
      requested, id: id, number: lastNumber, selection, lastSentVersion: lastSentVersion, isResetDue: isResetDue)
    let dependencies = try authorize(target)
    try reserve(target.operandBytes)
    if case .documents(let keys) = selection { documentsWatched += keys.count }
    targets[id] = target
    numbered[target.number] = target
    hub.join(mailbox, target: target.number, selection, guards: dependencies.documents)
  }

  /// Reserves memory for the operands of a query, which are kept as long as the target exists.
  private func reserve(_ bytes: Int) throws {
    guard operandBytes + bytes <= Self.operandBytesMax else {
      throw Status(
        .resourceExhausted,
        "The values in the queries of a stream may take \(Self.operandBytesMax) bytes. Open another stream.")
    }
    guard service.watchHubs.reserve(bytes) else {
      throw Status(.resourceExhausted, "The queries of all listeners take too much memory. Try again later.")
    }
    operandBytes += bytes
  }

  private func selection(_ target: ListenTarget) throws -> TargetSelection {
    switch target.selection {
    case .query(let query):
      guard query.findNearest == nil else {
        throw Status(.invalidArgument, "A query with find_nearest cannot be listened to.")
      }
      return .query(try WatchedQuery(query, in: database.id, edition: database.edition))
    case .documents(let paths):
      var seen: Set<ResourcePath> = []
      let keys = try paths.filter { seen.insert($0).inserted }.map { path in
        guard let key = DocumentKey(path) else {
          throw Status(.invalidArgument, "\"\(path.text)\" is not the path of a document.")
        }
        return key
      }
      guard documentsWatched + keys.count <= Self.documentsMax else {
        throw Status(
          .resourceExhausted, "A stream follows at most \(Self.documentsMax) documents by name. Follow a query instead."
        )
      }
      return .documents(keys)
    }
  }

  /// Returns the version that a client has, and whether the client has an unknown state that must be reset.
  private func origin(_ point: ListenTarget.ResumePoint?) -> (lastSentVersion: Int64?, isResetDue: Bool) {
    switch point {
    case nil: return (nil, false)
    case .readTime(let time): return (time.microseconds, false)
    case .token(let bytes):
      guard !bytes.isEmpty else { return (nil, false) }
      guard let token = ResumeToken(bytes), token.incarnation == database.incarnation else { return (nil, true) }
      return (token.version, false)
    }
  }

  /// Removes a target.
  func drop(_ target: WatchedTarget) {
    target.isActive = false
    targets[target.id] = nil
    numbered[target.number] = nil
    if case .documents(let keys) = target.selection { documentsWatched -= keys.count }
    operandBytes -= target.operandBytes
    service.watchHubs.release(target.operandBytes)
    hub.leave(mailbox, target: target.number)
  }

  /// Ends a target because of an error.
  func end(_ target: WatchedTarget, because error: any Error) {
    guard target.isActive else { return }
    drop(target)
    send(.targetRemoved(target.id, cause: Status(error, database: database.id)))
  }

  func send(_ event: ListenEvent) { events.append(event) }

  // MARK: Events

  /// Calls `emit` for each event until it returns `false`. Data that an event borrows is valid only during the call.
  /// - Throws: ``Status`` if the stream as a whole cannot continue, and any error of `emit`.
  package func pull(_ emit: (ListenEvent) throws -> Bool) throws -> Progress {
    guard !isOver else { return .waiting }
    try checkCaller()
    reauthorize(mailbox.takeReauthorizations())
    var left = Self.pullEventsMax
    while true {
      while nextEvent < events.count {
        nextEvent += 1
        guard try emit(events[nextEvent - 1]) else { return .more }
      }
      events.removeAll(keepingCapacity: events.count < 64)
      nextEvent = 0
      if left <= 0 { return .more }
      left -= 1
      switch work {
      case .none:
        guard try takeNext() else { return .waiting }
      case .catchUp(let catchUp, let target):
        // A slice takes a while: let other clients have their turn after it.
        left = 0
        guard try resume(catchUp, target, emit) else { return .more }
      case .batch(let batch, let place):
        guard try resume(batch, place, emit) else { return .more }
      }
    }
  }

  /// Starts to process the next event of the mailbox. Returns `false` if the mailbox is empty.
  private func takeNext() throws -> Bool {
    if !joining.isEmpty {
      begin(joining.removeFirst())
      return true
    }
    switch mailbox.take() {
    case nil: return false
    case .needsReauthorization(let numbers): reauthorize(numbers)
    case .batch(let batch): work = .batch(batch, BatchPlace())
    case .joined(let join):
      joining = join.targets
      joiningVersion = join.version
    case .unreadable(let number, let error): if let target = numbered[number] { end(target, because: error) }
    case .noChange(let version): if !targets.isEmpty { snapshot(version) }
    case .lagged:
      // The targets catch up one by one. Until the last one has done so, the client's state is not consistent.
      for target in targets.values { fallBehind(target) }
      hub.rejoin(mailbox)
    case .failed(let error): throw Status(error, database: database.id)
    }
    return true
  }

  /// Sends a snapshot: all events sent so far are consistent at a version. Does nothing while a target is behind.
  private func snapshot(_ version: Int64) {
    shownVersion = max(shownVersion, version)
    guard !targets.values.contains(where: \.isBehind) else { return }
    mailbox.noteSentVersion(shownVersion)
    send(.snapshot(token: token(shownVersion), readTime: Timestamp(uncheckedMicroseconds: shownVersion)))
  }

  private func token(_ version: Int64) -> [UInt8] {
    ResumeToken(incarnation: database.incarnation, version: version).bytes
  }

  // MARK: Catching up

  private func begin(_ join: WatchStart.Target) {
    if let target = numbered[join.target], isStale(target) { reauthorize([join.target]) }
    guard let target = numbered[join.target] else { return endCatchUp(nil) }
    let version = joiningVersion
    var origin = reached(target)
    if let known = origin, known > version {
      origin = nil
      target.isResetDue = true
    }
    if target.isResetDue {
      target.isResetDue = false
      target.isCurrent = false
      send(.targetReset(target.id))
    }
    let catchUp = CatchUp(
      database, target.selection, from: origin, to: version, documents: join.documents, mayName: access.isUnrestricted,
      expectedCount: target.isCurrent ? nil : target.expectedCount)
    work = .catchUp(catchUp, target)
  }

  /// Continues to bring a target up to a version. Returns `false` if `emit` did.
  private func resume(
    _ catchUp: CatchUp, _ target: WatchedTarget, _ emit: (ListenEvent) throws -> Bool
  ) throws -> Bool {
    guard target.isActive else {
      endCatchUp(nil)
      return true
    }
    var wantsMore = true
    var emitError: (any Error)?
    do {
      try catchUp.slice { event in
        guard let event = try self.event(event, of: target) else { return target.isActive }
        do { wantsMore = try emit(event) } catch {
          emitError = error
          throw error
        }
        return wantsMore
      }
      if catchUp.isAtEnd || !target.isActive { endCatchUp(target.isActive ? target : nil) }
    } catch {
      if let emitError { throw emitError }
      if case CommitError.readTimeTooOld = error { refresh(target) } else { end(target, because: error) }
      endCatchUp(nil)
    }
    return wantsMore
  }

  /// Ends the catch-up of a target. After the last target, sends a snapshot.
  private func endCatchUp(_ target: WatchedTarget?) {
    work = .none
    if let target {
      target.lastSentVersion = joiningVersion
      target.isBehind = false
      if !target.isCurrent {
        target.isCurrent = true
        let time = Timestamp(uncheckedMicroseconds: joiningVersion)
        send(.targetCurrent(target.id, token: token(joiningVersion), readTime: time))
      }
    }
    guard joining.isEmpty else { return }
    snapshot(joiningVersion)
    for target in targets.values where target.isOnce && target.isCurrent {
      drop(target)
      send(.targetRemoved(target.id, cause: nil))
    }
  }

  /// Returns the version that the client has of a target. If the target is current, it is that of the stream.
  private func reached(_ target: WatchedTarget) -> Int64? {
    target.lastSentVersion.map { target.isCurrent && !target.isBehind ? max($0, shownVersion) : $0 }
  }

  /// Marks a target as behind: the stream continues without it from a state that the client considers consistent.
  private func fallBehind(_ target: WatchedTarget) {
    guard target.isCurrent else { return }
    target.lastSentVersion = reached(target)
    target.isBehind = true
  }

  /// Makes a target start over from nothing.
  private func refresh(_ target: WatchedTarget) {
    fallBehind(target)
    target.lastSentVersion = nil
    target.isResetDue = true
    hub.refresh(mailbox, target: target.number)
  }

  // MARK: Changes

  /// Continues to send a batch of changes. Returns `false` if `emit` did.
  private func resume(
    _ batch: WatchBatch, _ place: BatchPlace, _ emit: (ListenEvent) throws -> Bool
  ) throws -> Bool {
    var place = place
    while place.part < batch.parts.count {
      let part = batch.parts[place.part]
      guard let target = numbered[part.target], let delta = part.delta else {
        if let target = numbered[part.target] { refresh(target) }
        place = place.nextPart
        continue
      }
      guard place.change < delta.changes.count else {
        place = place.nextPart
        continue
      }
      if place.change == 0, isStale(target) {
        reauthorize([target.number])
        work = .batch(batch, place)
        if nextEvent < events.count { return true }
      }
      let change = delta.changes[place.change]
      place.change += 1
      work = .batch(batch, place)
      if let event = event(change, of: target, at: batch.version) { return try emit(event) }
      // The authorization of the change may have ended the target. If so, send that event first.
      if nextEvent < events.count { return true }
    }
    work = .none
    snapshot(batch.version)
    return true
  }
}

/// The present work of a stream.
private enum StreamWork {
  /// None: read the mailbox.
  case none
  /// Bringing a target up to a version.
  case catchUp(CatchUp, WatchedTarget)
  /// Sending a batch of changes.
  case batch(WatchBatch, BatchPlace)
}

/// The position in a batch.
private struct BatchPlace {
  var part = 0
  var change = 0

  var nextPart: BatchPlace { BatchPlace(part: part + 1) }
}

extension Caller {
  /// The name of the caller in lists of listeners.
  var name: String {
    switch self {
    case .administrator: "admin"
    case .user(let auth): auth.map { $0.uid ?? "signed in" } ?? "not signed in"
    }
  }
}
