package import DocumentModel
import DocumentStore

/// The state machine of one Listen stream: the targets of a client, and the events to be sent next
/// (listen-and-webchannel.md, section 1). It uses no hub, no rules and no threads.
///
/// 1. Requests of the client, events of the hub and the results of actions and steps enter with the methods below.
/// 2. ``nextAction()`` returns the next task of the caller at the hub or with the rules. It is done at once.
/// 3. ``nextStep()`` returns the next step of a pull. The caller takes steps at the pace of the client, so little data
///    waits in between.
package struct WatchStream: ~Copyable {
  /// A task of the caller, before the next step.
  package enum Action {
    /// Evaluate the rules for a target. Then call ``authorized(_:_:versions:)`` or ``end(_:because:)``.
    case authorize(Int, TargetSelection)
    /// Pass a request to the hub.
    case request(WatchHub.Request)
  }

  /// A step of a pull.
  package enum Step {
    case send(WatchEvent)
    /// Send the change of a document in a target at a version, as far as the client may see it.
    case change(Int, DocumentKey, DocumentChange<WatchedDocument>, version: Int64)
    /// Run a slice of a catch-up and send its changes. Then call ``caughtUp(_:)`` or ``catchUpFailed(_:)``.
    case catchUp(CatchUp.Plan)
    /// Nothing is left to send. Pass the next event of the hub to ``receive(_:)``, or wait for one.
    case takeFromHub
  }

  /// A target, and the state that the client has of it.
  private struct Target {
    enum Phase {
      /// The rules have not been evaluated yet.
      case authorizing
      /// The client does not have all documents yet.
      case joining
      /// The client has all documents at the version of the stream: CURRENT was sent.
      case current
      /// The stream continues without the target, from a state that the client considers consistent. No snapshot is
      /// consistent until the target has caught up.
      case behind
      /// As ``behind``, and the client has discarded the documents. CURRENT must be sent again.
      case restarting
    }

    /// The hub's number. It is never reused, although a client may reuse its target IDs.
    let number: Int
    /// The client's target ID.
    let id: Int32
    let selection: TargetSelection
    /// Whether the target ends when it is current (`once`).
    let isOnce: Bool
    /// The number of documents that the client has at the resume point, according to the client.
    let expectedCount: Int?
    var phase = Phase.authorizing
    /// The version that the client has of the target; `nil` for nothing.
    var sentVersion: Int64?
    /// Whether the client must first discard documents (RESET).
    var isResetDue: Bool
    /// Whether the authorization depends on the time, and whether on documents.
    var usesTime = false
    var isGuarded = false
    /// The time of the last authorization.
    var authorizedAt: Int64 = 0
    /// For a document target: the versions of the documents at their authorization; 0 for a document that does not
    /// exist.
    var authorizedVersions: [DocumentKey: Int64] = [:]

    var isCurrent: Bool { phase == .current || phase == .behind }
    var isBehind: Bool { phase == .behind || phase == .restarting }

    /// The number of documents followed by name.
    var documentCount: Int {
      if case .documents(let keys) = selection { keys.count } else { 0 }
    }

    /// The size of the query's operands, in bytes.
    var operandBytes: Int {
      if case .query(let query) = selection { query.operandBytes } else { 0 }
    }
  }

  private enum Work {
    case none
    case catchUp(CatchUp.Plan)
    /// Sending a batch, from a change of a part.
    case batch(WatchBatch, part: Int, change: Int)
  }

  /// The maximum number of targets in one stream.
  package static let targetsMax = 1000
  /// The maximum number of documents in all document targets of one stream.
  static let documentsMax = 10_000
  /// The maximum size of the operands of all queries of one stream, in bytes.
  package static let operandBytesMax = 4 << 20
  /// The limit of rejected targets that wait to be sent. The stream of a client that exceeds it ends.
  package static let refusalsMax = 100
  /// The maximum number of waiting events if a client sends requests but receives nothing.
  private static let eventsMax = 10_000
  /// The age, in microseconds, after which a decision that depends on the time is made again. Listeners are woken at
  /// least every 32 seconds, so no decision is older than a minute.
  private static let reauthorizationInterval: Int64 = 25_000_000

  /// The time, in microseconds since 1970. The caller updates it before each input.
  package var now: Int64 = 0
  /// The incarnation of the database. The caller updates it before each input.
  package var incarnation: UInt64 = 0
  /// Whether other nodes may have later versions of the database, so that a client can be ahead of this one. The caller
  /// updates it before each input.
  package var mayLag = false
  /// Whether rules apply to the caller.
  package var isRestricted: Bool
  /// The size of the operands of all queries that were authorized, in bytes.
  package private(set) var operandBytes = 0

  private let database: DatabaseID
  private let edition: Edition
  /// The targets, in the order of their numbers.
  private var targets: [Target] = []
  private var lastNumber = 0
  /// Whether the server chooses the target IDs of this stream.
  private var isNumbering = false
  private var lastGivenID: Int32 = 0
  private var refusals: [(target: Int32, cause: any Error)] = []
  private var actions = Backlog<Action>()
  /// The events to be sent before anything else.
  private var events = Backlog<WatchEvent>()
  private var work = Work.none
  /// Targets that must be brought up to the joined version.
  private var joining: [WatchStart.Target] = []
  private var joiningVersion: Int64 = 0
  /// The version that the client has of all current targets.
  private var shownVersion = Int64.min

  package init(in database: DatabaseID, _ edition: Edition, isRestricted: Bool) {
    self.database = database
    self.edition = edition
    self.isRestricted = isRestricted
  }

  // MARK: Requests of the client

  /// Handles a request. An error in one target ends only that target, with an event.
  /// - Throws: ``WatchError`` if the stream must end.
  package mutating func receive(_ request: ListenRequest) throws(WatchError) {
    guard events.count < Self.eventsMax else {
      throw .resourceExhausted("More than \(Self.eventsMax) responses wait. Read them before sending more.")
    }
    switch request {
    case .add(let target): try add(target)
    case .remove(let id):
      guard let place = targets.firstIndex(where: { $0.id == id }) else { return }
      drop(place, cause: nil)
    }
  }

  /// Rejects a target that could not be decoded.
  /// - Throws: ``WatchError`` if the stream must end.
  package mutating func refuse(_ id: Int32, because cause: any Error) throws(WatchError) {
    guard refusals.count < Self.refusalsMax else {
      throw .resourceExhausted("More than \(Self.refusalsMax) refused targets are pending.")
    }
    refusals.append((id, cause))
  }

  private mutating func add(_ target: ListenTarget) throws(WatchError) {
    guard target.id >= 0 else { throw .invalidArgument("A target id must not be negative: \(target.id)") }
    if target.id == 0 {
      isNumbering = true
      repeat { lastGivenID = lastGivenID == .max ? 1 : lastGivenID + 1 } while isUsed(lastGivenID)
    } else if isUsed(target.id) {
      throw .invalidArgument("Target id already in use: \(target.id)")
    } else if isNumbering {
      let text = "The server assigns the target ids of this stream, because one was 0; \(target.id) is not allowed."
      return events.append(.remove(target.id, cause: WatchError.invalidArgument(text)))
    }
    let id = target.id == 0 ? lastGivenID : target.id
    events.append(.add(id))
    do { try add(target, as: id) } catch { events.append(.remove(id, cause: error)) }
  }

  private func isUsed(_ id: Int32) -> Bool { targets.contains { $0.id == id } }

  private mutating func add(_ requested: ListenTarget, as id: Int32) throws {
    guard targets.count < Self.targetsMax else {
      throw WatchError.resourceExhausted(
        "A stream follows at most \(Self.targetsMax) targets. Open another stream.")
    }
    let selection = try selection(requested)
    let (version, isResetDue) = origin(requested.resumePoint)
    lastNumber += 1
    targets.append(
      Target(
        number: lastNumber, id: id, selection: selection, isOnce: requested.endsWhenCurrent,
        expectedCount: requested.resumePoint == nil ? nil : requested.expectedCount, sentVersion: version,
        isResetDue: isResetDue))
    actions.append(.authorize(lastNumber, selection))
  }

  private func selection(_ target: ListenTarget) throws -> TargetSelection {
    switch target.selection {
    case .query(let query):
      guard query.findNearest == nil else {
        throw WatchError.invalidArgument("A query with find_nearest cannot be listened to.")
      }
      return .query(try WatchedQuery(query, in: database, edition: edition))
    case .pipeline(let query, let provable):
      return .query(try WatchedQuery(query, in: database, edition: edition, ofPipelineWith: provable))
    case .documents(let paths):
      var seen: Set<ResourcePath> = []
      let keys = try paths.filter { seen.insert($0).inserted }.map { path in
        guard let key = DocumentKey(path) else {
          throw WatchError.invalidArgument("\"\(path.text)\" is not the path of a document.")
        }
        return key
      }
      guard targets.reduce(keys.count, { $0 + $1.documentCount }) <= Self.documentsMax else {
        throw WatchError.resourceExhausted(
          "A stream follows at most \(Self.documentsMax) documents by name. Follow a query instead.")
      }
      return .documents(keys)
    }
  }

  /// Returns the version that a client has, and whether the client has an unknown state that must be reset.
  private func origin(_ point: ListenTarget.ResumePoint?) -> (version: Int64?, isResetDue: Bool) {
    switch point {
    case nil: return (nil, false)
    case .readTime(let time): return (time.microseconds, false)
    case .token(let bytes):
      guard !bytes.isEmpty else { return (nil, false) }
      guard let token = ResumeToken(bytes), token.incarnation == incarnation else { return (nil, true) }
      return (token.version, false)
    }
  }

  // MARK: Authorization

  /// Notes that the rules allow a target. `versions` are those of the documents of a document target; 0 for a
  /// document that does not exist.
  package mutating func authorized(
    _ number: Int, _ dependencies: AuthorizationDependencies, versions: [DocumentKey: Int64]
  ) {
    guard let place = place(of: number) else { return }
    let wasGuarded = targets[place].isGuarded
    targets[place].authorizedAt = now
    targets[place].authorizedVersions = versions
    targets[place].usesTime = dependencies.usesTime
    targets[place].isGuarded = !dependencies.documents.isEmpty
    guard targets[place].phase == .authorizing else {
      if wasGuarded || targets[place].isGuarded { actions.append(.request(.setGuards(number, dependencies))) }
      return
    }
    let bytes = targets[place].operandBytes
    guard operandBytes + bytes <= Self.operandBytesMax else {
      let text = "The values in the queries of a stream may take \(Self.operandBytesMax) bytes. Open another stream."
      return drop(place, cause: WatchError.resourceExhausted(text))
    }
    operandBytes += bytes
    targets[place].phase = .joining
    actions.append(
      .request(
        .join(number, targets[place].selection, dependencies, atLeast: mayLag ? targets[place].sentVersion : nil)))
  }

  /// Whether a state of a document in a document target must be authorized before it is sent.
  package func needsAuthorization(_ key: DocumentKey, version: Int64, in number: Int) -> Bool {
    guard isRestricted, let place = place(of: number), case .documents = targets[place].selection else { return false }
    return targets[place].authorizedVersions[key] != version
  }

  /// Notes that the rules allow a state of a document in a document target.
  package mutating func authorized(
    _ key: DocumentKey, version: Int64, in number: Int, _ dependencies: AuthorizationDependencies
  ) {
    guard let place = place(of: number) else { return }
    targets[place].authorizedVersions[key] = version
    targets[place].usesTime = targets[place].usesTime || dependencies.usesTime
    if targets[place].isGuarded || !dependencies.documents.isEmpty {
      // Collect the dependencies of the target's other documents too.
      reauthorize(place)
    }
  }

  /// Requires that targets are authorized again; `nil` denotes all targets.
  package mutating func reauthorize(_ numbers: Set<Int>?) {
    for place in targets.indices where numbers?.contains(targets[place].number) ?? true { reauthorize(place) }
  }

  /// Requires that targets are authorized again if the decision depends on the time and is old.
  package mutating func tick() {
    for place in targets.indices
    where targets[place].usesTime && targets[place].authorizedAt + Self.reauthorizationInterval <= now {
      reauthorize(place)
    }
  }

  private mutating func reauthorize(_ place: Int) {
    actions.append(.authorize(targets[place].number, targets[place].selection))
  }

  /// If the authorization of a target depends on the time, requires that it is repeated, and returns `true`. Data that
  /// was allowed until some time is not sent after it. Cost: one evaluation for each commit that affects such a
  /// target.
  private mutating func reauthorizeIfStale(_ place: Int) -> Bool {
    guard targets[place].usesTime, now > targets[place].authorizedAt else { return false }
    reauthorize(place)
    return true
  }

  // MARK: The end of a target

  /// Ends a target because of an error.
  package mutating func end(_ number: Int, because cause: any Error) {
    if let place = place(of: number) { drop(place, cause: cause) }
  }

  private mutating func drop(_ place: Int, cause: (any Error)?) {
    let target = targets.remove(at: place)
    events.append(.remove(target.id, cause: cause))
    guard target.phase != .authorizing else { return }
    operandBytes -= target.operandBytes
    actions.append(.request(.leave(target.number)))
  }

  // MARK: Events of the hub

  /// Handles an event of the hub.
  /// - Throws: The error of an event that ends the stream.
  package mutating func receive(_ event: Subscriber.Event) throws {
    switch event {
    case .needsReauthorization(let numbers): reauthorize(numbers)
    // The service checks the caller.
    case .needsCallerCheck: break
    case .batch(let batch): work = .batch(batch, part: 0, change: 0)
    case .joined(let start):
      joining = start.targets
      joiningVersion = start.version
    case .unreadable(let number, let error): end(number, because: error)
    case .noChange(let version): if !targets.isEmpty { snapshot(version) }
    case .lagged:
      // The targets catch up one by one. Until the last one has done so, the client's state is not consistent.
      for place in targets.indices { fallBehind(place) }
      actions.append(.request(.rejoin))
    case .failed(let error): throw error
    }
  }

  // MARK: Output

  /// Returns the next action, or `nil` if none is due.
  package mutating func nextAction() -> Action? { actions.popFirst() }

  /// Whether events wait to be sent before anything else.
  package var hasEvents: Bool { !refusals.isEmpty || !events.isEmpty }

  /// Whether the client has received that every target is current or has ended.
  package var isSettled: Bool { !hasEvents && targets.allSatisfy(\.isCurrent) }

  /// Returns the client's ID of a target and its documents, or `nil` if it has ended.
  package func target(_ number: Int) -> (id: Int32, selection: TargetSelection)? {
    place(of: number).map { (targets[$0].id, targets[$0].selection) }
  }

  /// Returns the next step, or `nil` if actions come first.
  package mutating func nextStep() -> Step? {
    while actions.isEmpty {
      if !refusals.isEmpty {
        let refusal = refusals.removeFirst()
        return .send(.remove(refusal.target, cause: refusal.cause))
      }
      if let event = events.popFirst() { return .send(event) }
      switch work {
      case .none:
        guard let start = joining.first else { return .takeFromHub }
        begin(start)
      case .catchUp(let plan):
        guard place(of: plan.target) == nil else { return .catchUp(plan) }
        endCatchUp(nil)
      case .batch(let batch, let part, let change):
        if let step = next(in: batch, part, change) { return step }
      }
    }
    return nil
  }

  /// Sends a snapshot: all events sent so far are consistent at a version. Does nothing while a target is behind.
  private mutating func snapshot(_ version: Int64) {
    shownVersion = max(shownVersion, version)
    let newestShown = mayLag ? shownVersion : .max
    guard !targets.contains(where: { $0.isBehind || $0.sentVersion ?? .min > newestShown }) else { return }
    let (token, readTime) = position(shownVersion)
    events.append(.noChange(token: token, readTime: readTime))
  }

  private func position(_ version: Int64) -> (token: [UInt8], readTime: Timestamp) {
    (ResumeToken(incarnation: incarnation, version: version).bytes, Timestamp(uncheckedMicroseconds: version))
  }

  // MARK: Catching up

  /// Begins to bring a target up to the joined version.
  private mutating func begin(_ start: WatchStart.Target) {
    guard let place = place(of: start.target) else {
      joining.removeFirst()
      return endCatchUp(nil)
    }
    if reauthorizeIfStale(place) { return }
    joining.removeFirst()
    var origin = reached(place)
    if let known = origin, known > joiningVersion {
      origin = nil
      targets[place].isResetDue = true
    }
    if targets[place].isResetDue { reset(place) }
    work = .catchUp(
      CatchUp.Plan(
        target: start.target, selection: targets[place].selection, origin: origin, version: joiningVersion,
        documents: start.documents, mayName: !isRestricted,
        expectedCount: targets[place].isCurrent ? nil : targets[place].expectedCount))
  }

  /// Notes the outcome of a slice.
  package mutating func caughtUp(_ progress: CatchUp.Progress) {
    guard case .catchUp(let plan) = work, let place = place(of: plan.target) else { return }
    switch progress {
    case .paused: break
    case .reset: reset(place)
    case .done: endCatchUp(place)
    }
  }

  /// Notes that a catch-up cannot continue. If it took too long, it starts over; otherwise the target ends.
  package mutating func catchUpFailed(_ error: any Error) {
    guard case .catchUp(let plan) = work else { return }
    if case CommitError.readTimeTooOld = error {
      if let place = place(of: plan.target) { refresh(place) }
    } else {
      end(plan.target, because: error)
    }
    endCatchUp(nil)
  }

  /// Tells the client to discard the documents of a target.
  private mutating func reset(_ place: Int) {
    targets[place].isResetDue = false
    targets[place].phase = targets[place].isBehind ? .restarting : .joining
    events.append(.reset(targets[place].id))
  }

  /// Ends the catch-up of a target. After the last target, sends a snapshot.
  private mutating func endCatchUp(_ place: Int?) {
    work = .none
    if let place {
      targets[place].sentVersion = joiningVersion
      if !targets[place].isCurrent {
        let (token, readTime) = position(joiningVersion)
        events.append(.current(targets[place].id, token: token, readTime: readTime))
      }
      targets[place].phase = .current
    }
    guard joining.isEmpty else { return }
    snapshot(joiningVersion)
    while let place = targets.firstIndex(where: { $0.isOnce && $0.isCurrent }) { drop(place, cause: nil) }
  }

  /// Returns the version that the client has of a target. If the target is current, it is that of the stream.
  private func reached(_ place: Int) -> Int64? {
    targets[place].sentVersion.map { targets[place].phase == .current ? max($0, shownVersion) : $0 }
  }

  /// Marks a target as behind: the stream continues without it from a state that the client considers consistent.
  private mutating func fallBehind(_ place: Int) {
    guard targets[place].isCurrent else { return }
    targets[place].sentVersion = reached(place)
    targets[place].phase = .behind
  }

  /// Makes a target start over from nothing.
  private mutating func refresh(_ place: Int) {
    fallBehind(place)
    targets[place].sentVersion = nil
    targets[place].isResetDue = true
    actions.append(.request(.refresh(targets[place].number)))
  }

  // MARK: Changes

  /// Returns the step for the next change of a batch, or `nil` if the end of the batch or a part was reached.
  private mutating func next(in batch: WatchBatch, _ part: Int, _ change: Int) -> Step? {
    guard part < batch.parts.count else {
      work = .none
      snapshot(batch.version)
      return nil
    }
    let target = batch.parts[part].target
    let place = place(of: target)
    guard let place, let changes = batch.parts[part].delta?.changes, change < changes.count else {
      if let place, batch.parts[part].delta == nil { refresh(place) }
      work = .batch(batch, part: part + 1, change: 0)
      return nil
    }
    if change == 0, reauthorizeIfStale(place) { return nil }
    work = .batch(batch, part: part, change: change + 1)
    return .change(target, changes[change].key, changes[change].change, version: batch.version)
  }

  /// Returns the index of a target by the hub's number. Cost: a binary search.
  private func place(of number: Int) -> Int? {
    var (low, high) = (0, targets.count)
    while low < high {
      let middle = (low + high) / 2
      if targets[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low < targets.count && targets[low].number == number ? low : nil
  }
}
