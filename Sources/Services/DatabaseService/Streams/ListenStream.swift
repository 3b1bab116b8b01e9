package import DocumentModel
import DocumentStore
import RulesEngine
import Watch

/// One Listen stream: the targets of a client, and what it is yet to be told (listen-and-webchannel.md, section 1).
///
/// Belongs to the loop's thread of its client. Requests go in; events are pulled out, only as fast as the client takes
/// them. What waits in between is bounded: a client that lags is brought up to date from the change log.
package final class ListenStream {
  /// How a pull ended.
  package enum Progress {
    /// `emit` wanted no more, or others are to get their turn: pull again.
    case more
    /// There is nothing to tell now: `wake` will be called when there is.
    case waiting
  }

  let service: FirestoreService
  let caller: Caller
  let database: DocumentDatabase
  let feed: WatchHub
  let listener: WatchMailbox
  /// How requests are judged; `nil` where everything is allowed.
  var authorizer: Authorizer?
  /// The targets by the client's numbers, and by the feed's.
  var targets: [Int32: WatchedTarget] = [:]
  var numbered: [Int: WatchedTarget] = [:]
  /// What is to be told before anything else, the next one last.
  var events: [ListenEvent] = []
  var nextEvent = 0

  private var numbersGiven = 0
  /// Whether the client left the numbers of its targets to the server.
  private var isNumbering = false
  private var lastGivenID: Int32 = 0
  private var documentsWatched = 0
  private var operandBytes = 0
  private var work = StreamWork.none
  /// Targets that have to be brought up to the version that was joined at.
  private var joining: [WatchStart.Target] = []
  private(set) var joiningVersion: Int64 = 0
  /// The version up to which everything was told of the targets that are current and not behind.
  private var shown = Int64.min
  private var isOver = false

  /// Targets of one stream.
  package static let targetsMax = 1000
  /// Documents of all document targets of one stream.
  static let documentsMax = 10_000
  /// Bytes of the operands of all queries of one stream.
  package static let operandBytesMax = 4 << 20
  /// Events that wait while a client sends requests and takes nothing.
  private static let eventsMax = 10_000
  /// Events of one pull.
  private static let pullEventsMax = 256

  /// Opens a stream to a database. `wake` is called, on any thread, once there is something to pull after
  /// ``Progress/waiting``; the stream may have ended meanwhile.
  /// - Throws: as ``FirestoreService/accessOfListener(to:as:)``.
  package init(_ service: FirestoreService, in id: DatabaseID, as caller: Caller, wake: @escaping @Sendable () -> Void) throws {
    let access = try service.accessOfListener(to: id, as: caller)
    self.service = service
    self.caller = caller
    database = access.database
    authorizer = access.authorizer
    feed = service.feeds.take(access.database)
    listener = WatchMailbox(name: caller.name, wake: wake)
  }

  deinit { end() }

  /// Ends the stream; nothing is told any more, and `wake` is let go.
  package func end() {
    guard !isOver else { return }
    isOver = true
    feed.close(listener)
    service.feeds.give(feed)
    service.feeds.release(operandBytes)
    operandBytes = 0
    work = .none
    events = []
    targets = [:]
    numbered = [:]
  }

  // MARK: Requests

  /// Takes a request. What is wrong with one target ends that target only, by an event.
  /// - Throws: `INVALID_ARGUMENT` for what ends the stream, `UNAUTHENTICATED` where the caller's token is over.
  package func receive(_ request: ListenRequest) throws {
    guard !isOver else { return }
    guard events.count - nextEvent < Self.eventsMax else {
      throw Status(.resourceExhausted, "More than \(Self.eventsMax) answers wait. Read them before asking for more.")
    }
    switch request {
    case .remove(let id):
      guard let target = targets[id] else { return }
      drop(target)
      tell(.targetRemoved(id, cause: nil))
    case .add(let target):
      try checkCaller()
      try add(target)
    }
    listener.wake()
  }

  private func add(_ target: ListenTarget) throws {
    guard target.id >= 0 else { throw Status(.invalidArgument, "A target id must not be negative: \(target.id)") }
    guard target.id == 0 || targets[target.id] == nil else {
      throw Status(.invalidArgument, "Target id already in use: \(target.id)")
    }
    if target.id != 0, isNumbering {
      let text = "The server assigns the target ids of this stream, since one was 0; \(target.id) is refused."
      return tell(.targetRemoved(target.id, cause: Status(.invalidArgument, text)))
    }
    let id = target.id == 0 ? freeID() : target.id
    tell(.targetAdded(id))
    do { try addTarget(target, as: id) } catch {
      tell(.targetRemoved(id, cause: Status(error, database: database.id)))
    }
  }

  private func freeID() -> Int32 {
    isNumbering = true
    repeat { lastGivenID = lastGivenID == .max ? 1 : lastGivenID + 1 } while targets[lastGivenID] != nil
    return lastGivenID
  }

  private func addTarget(_ asked: ListenTarget, as id: Int32) throws {
    guard targets.count < Self.targetsMax else {
      throw Status(.resourceExhausted, "A stream follows at most \(Self.targetsMax) targets. Open another one.")
    }
    let selection = try selection(asked)
    let (lastSentVersion, isResetDue) = origin(asked.resumePoint)
    numbersGiven += 1
    let target = WatchedTarget(
      asked, id: id, number: numbersGiven, selection, lastSentVersion: lastSentVersion, isResetDue: isResetDue)
    let grounds = try admit(target)
    try reserve(target.operandBytes)
    if case .documents(let keys) = selection { documentsWatched += keys.count }
    targets[id] = target
    numbered[target.number] = target
    feed.join(listener, target: target.number, selection, guards: grounds.documents)
  }

  /// Counts the operands of a query: they are kept for as long as it is followed.
  private func reserve(_ bytes: Int) throws {
    guard operandBytes + bytes <= Self.operandBytesMax else {
      throw Status(
        .resourceExhausted,
        "The values in the queries of a stream take \(Self.operandBytesMax) bytes at most. Open another stream.")
    }
    guard service.feeds.reserve(bytes) else {
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
          throw Status(.invalidArgument, "A target names documents; \"\(path.text)\" is none.")
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

  /// The version that a client has, and whether it has something that nobody knows.
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

  /// Lets go of a target.
  func drop(_ target: WatchedTarget) {
    target.isActive = false
    targets[target.id] = nil
    numbered[target.number] = nil
    if case .documents(let keys) = target.selection { documentsWatched -= keys.count }
    operandBytes -= target.operandBytes
    service.feeds.release(target.operandBytes)
    feed.leave(listener, target: target.number)
  }

  /// Ends a target because of an error.
  func end(_ target: WatchedTarget, because error: any Error) {
    guard target.isActive else { return }
    drop(target)
    tell(.targetRemoved(target.id, cause: Status(error, database: database.id)))
  }

  func tell(_ event: ListenEvent) { events.append(event) }

  // MARK: Events

  /// Calls `emit` for each event until it returns `false`. What an event borrows is valid during the call.
  /// - Throws: what `emit` throws, and ``Status`` where the stream as a whole cannot go on.
  package func pull(_ emit: (ListenEvent) throws -> Bool) throws -> Progress {
    guard !isOver else { return .waiting }
    try checkCaller()
    reauthorize(listener.takeReauthorizations())
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
        guard try takeNews() else { return .waiting }
      case .run(let run, let target):
        // A slice takes a while: others are to get their turn after it.
        left = 0
        guard try goOn(run, target, emit) else { return .more }
      case .batch(let batch, let place):
        guard try goOn(batch, place, emit) else { return .more }
      }
    }
  }

  /// Takes what comes next; `false` where there is nothing.
  private func takeNews() throws -> Bool {
    if !joining.isEmpty {
      begin(joining.removeFirst())
      return true
    }
    switch listener.take() {
    case nil: return false
    case .needsReauthorization(let numbers): reauthorize(numbers)
    case .batch(let batch): work = .batch(batch, BatchPlace())
    case .joined(let join):
      joining = join.targets
      joiningVersion = join.version
    case .unreadable(let number, let error): if let target = numbered[number] { end(target, because: error) }
    case .noChange(let version): if !targets.isEmpty { snapshot(version) }
    case .lagged:
      // Each is told in its own time; until the last one is, nothing is consistent.
      for target in targets.values { fallBehind(target) }
      feed.rejoin(listener)
    case .failed(let error): throw Status(error, database: database.id)
    }
    return true
  }

  /// Tells that everything told so far is consistent at a version, unless a target is behind.
  private func snapshot(_ version: Int64) {
    shown = max(shown, version)
    guard !targets.values.contains(where: \.isBehind) else { return }
    listener.tell(shown)
    tell(.snapshot(token: token(shown), readTime: Timestamp(uncheckedMicroseconds: shown)))
  }

  private func token(_ version: Int64) -> [UInt8] {
    ResumeToken(incarnation: database.incarnation, version: version).bytes
  }

  // MARK: Bringing a target to a version

  private func begin(_ join: WatchStart.Target) {
    if let target = numbered[join.target], isStale(target) { reauthorize([join.target]) }
    guard let target = numbered[join.target] else { return endRun(nil) }
    let version = joiningVersion
    var origin = reached(target)
    if let known = origin, known > version {
      origin = nil
      target.isResetDue = true
    }
    if target.isResetDue {
      target.isResetDue = false
      target.isCurrent = false
      tell(.targetReset(target.id))
    }
    let run = CatchUp(
      database, target.selection, from: origin, to: version, members: join.members, mayName: authorizer == nil,
      expectedCount: target.isCurrent ? nil : target.expectedCount)
    work = .run(run, target)
  }

  /// Goes on with a target; `false` where `emit` wanted no more.
  private func goOn(
    _ run: CatchUp, _ target: WatchedTarget, _ emit: (ListenEvent) throws -> Bool
  ) throws -> Bool {
    guard target.isActive else {
      endRun(nil)
      return true
    }
    var wantsMore = true
    var emitError: (any Error)?
    do {
      try run.slice { event in
        guard let event = try self.event(event, of: target) else { return target.isActive }
        do { wantsMore = try emit(event) } catch {
          emitError = error
          throw error
        }
        return wantsMore
      }
      if run.isAtEnd || !target.isActive { endRun(target.isActive ? target : nil) }
    } catch {
      if let emitError { throw emitError }
      if case CommitError.readTimeTooOld = error { refresh(target) } else { end(target, because: error) }
      endRun(nil)
    }
    return wantsMore
  }

  /// Ends the work on a target, and with the last one tells that all are consistent.
  private func endRun(_ target: WatchedTarget?) {
    work = .none
    if let target {
      target.lastSentVersion = joiningVersion
      target.isBehind = false
      if !target.isCurrent {
        target.isCurrent = true
        let time = Timestamp(uncheckedMicroseconds: joiningVersion)
        tell(.targetCurrent(target.id, token: token(joiningVersion), readTime: time))
      }
    }
    guard joining.isEmpty else { return }
    snapshot(joiningVersion)
    for target in targets.values where target.isOnce && target.isCurrent {
      drop(target)
      tell(.targetRemoved(target.id, cause: nil))
    }
  }

  /// The version that the client has of a target: that of the stream, where the target is current.
  private func reached(_ target: WatchedTarget) -> Int64? {
    target.lastSentVersion.map { target.isCurrent && !target.isBehind ? max($0, shown) : $0 }
  }

  /// Notes that others go on without a target, from a state that the client takes for consistent.
  private func fallBehind(_ target: WatchedTarget) {
    guard target.isCurrent else { return }
    target.lastSentVersion = reached(target)
    target.isBehind = true
  }

  /// Has a target told anew, from nothing.
  private func refresh(_ target: WatchedTarget) {
    fallBehind(target)
    target.lastSentVersion = nil
    target.isResetDue = true
    feed.refresh(listener, target: target.number)
  }

  // MARK: Changes

  /// Goes on with what happened; `false` where `emit` wanted no more.
  private func goOn(
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
      // What was judged may have been the end of the target: that comes first.
      if nextEvent < events.count { return true }
    }
    work = .none
    snapshot(batch.version)
    return true
  }
}

/// What a stream is at.
private enum StreamWork {
  /// Nothing: look for news.
  case none
  /// Bringing a target to a version.
  case run(CatchUp, WatchedTarget)
  /// Telling what happened.
  case batch(WatchBatch, BatchPlace)
}

/// How far a batch was told.
private struct BatchPlace {
  var part = 0
  var change = 0

  var nextPart: BatchPlace { BatchPlace(part: part + 1) }
}

extension Caller {
  /// Who it is, as lists of listeners say it.
  var name: String {
    switch self {
    case .admin: "admin"
    case .user(let auth): auth.map { $0.uid ?? "signed in" } ?? "not signed in"
    }
  }
}
