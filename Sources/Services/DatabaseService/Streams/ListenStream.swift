import Callers
package import DocumentModel
import DocumentStore
import PipelineEngine
import QueryEngine
import RulesEngine
package import Watch
package import WireFormat

/// One Listen stream: carries out the actions of a ``WatchStream`` at the hub and with the rules of the caller.
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

  private let service: FirestoreService
  private let caller: Caller
  private let database: DocumentDatabase
  private let hub: WatchHub
  private let subscriber: Subscriber
  private var wake: (@Sendable () -> Void)?
  private let entry: OpenStreams.Entry
  /// Whether rules authorize the targets.
  private var access: Access
  private var stream: WatchStream
  /// The catch-up that was begun.
  private var catchUp: CatchUp?
  /// The size of the operands for which memory was reserved, in bytes.
  private var reservedBytes = 0
  /// The documents that were sent and not yet charged to the caller.
  private var unchargedReads = 0
  /// The newest target for which the caller's allowance of reads was checked. Targets have increasing numbers.
  private var newestCheckedTarget = 0
  private var isOver = false

  /// The maximum number of steps in one pull.
  private static let pullEventsMax = 256

  /// Opens a stream to a database. `wake` is called, on any thread, when there is something to pull after
  /// ``Progress/waiting``. The stream may have ended by then.
  /// - Throws: The errors of ``FirestoreService/accessOfListener(to:as:)``; `RESOURCE_EXHAUSTED` if the project has too
  ///   many streams.
  package init(_ service: FirestoreService, in id: DatabaseID, as caller: Caller, wake: @escaping @Sendable () -> Void)
    throws
  {
    let listener = try service.accessOfListener(to: id, as: caller)
    self.service = service
    self.caller = caller
    database = listener.database
    access = listener.access
    stream = WatchStream(in: id, database.edition, isRestricted: !access.isUnrestricted)
    subscriber = Subscriber(name: caller.name, wake: wake)
    self.wake = wake
    entry = try service.openStreams.add(as: caller) { [weak subscriber] in subscriber?.requireCallerCheck() }
    // After the last error, because the stream must give it back.
    hub = service.watchHubs.take(database)
  }

  deinit { end() }

  /// Ends the stream: no more events follow, and `wake` is released.
  package func end() {
    guard !isOver else { return }
    isOver = true
    wake = nil
    service.openStreams.remove(entry)
    hub.close(subscriber)
    service.watchHubs.give(hub)
    service.watchHubs.release(reservedBytes)
    stream = WatchStream(in: database.id, database.edition, isRestricted: true)
    catchUp = nil
  }

  // MARK: Requests

  /// Handles a request. An error in one target ends only that target, with an event.
  /// - Throws: `INVALID_ARGUMENT` or `RESOURCE_EXHAUSTED` for an error that ends the stream, `UNAUTHENTICATED` if
  ///   the caller's token has expired or was revoked.
  package func receive(_ request: ListenRequest) throws {
    guard !isOver else { return }
    advance()
    if case .add = request { try checkCaller() }
    do { try stream.receive(request) } catch { throw Status(error, database: database.id) }
    act()
    subscriber.wake()
  }

  /// Handles a decoded request. A target that could not be decoded ends with an event.
  /// - Throws: The errors of ``receive(_:)-(ListenRequest)``; `RESOURCE_EXHAUSTED` if too many of these events wait.
  package func receive(_ request: DecodedListenRequest) throws {
    switch request {
    case .accepted(let request): return try receive(request)
    case .refused(let target, let error): try refuse(target, error)
    case .pipeline(let target, let pipeline):
      let checked: ListenTarget
      do throws(Status) { checked = try target.following(pipeline, in: database.id) } catch {
        // Without a number, the error ends the stream.
        guard target.id != 0 else { throw error }
        return try refuse(target.id, error)
      }
      try receive(.add(checked))
    }
  }

  private func refuse(_ target: Int32, _ cause: any Error) throws {
    do { try stream.refuse(target, because: cause) } catch { throw Status(error, database: database.id) }
    subscriber.wake()
  }

  /// Whether every target is current or has ended, and the client has received that.
  package var isSettled: Bool { stream.isSettled }

  /// Updates the time, the incarnation and the role of this process that the stream sees.
  private func advance() {
    stream.now = database.clock.now()
    stream.mayLag = !database.isAdopted
    stream.incarnation = database.incarnation
  }

  // MARK: Events

  /// Calls `emit` for each event until it returns `false`. Data that an event borrows is valid only during the call.
  /// - Throws: ``Status`` if the stream as a whole cannot continue, and any error of `emit`.
  package func pull(_ emit: (WatchEvent) throws -> Bool) throws -> Progress {
    guard !isOver else { return .waiting }
    defer { chargeReads() }
    advance()
    try checkCaller()
    stream.reauthorize(subscriber.takeReauthorizations())
    var left = Self.pullEventsMax
    repeat {
      act()
      switch stream.nextStep() {
      case nil: break
      case .send(let event):
        if case .noChange(_, let time) = event { subscriber.noteSentVersion(time.microseconds) }
        try requireServing(event)
        guard try emit(event) else { return .more }
      case .change(let target, let key, let change, let version):
        left -= 1
        guard try send(key, change.map(DocumentState.shared), of: target, at: version, emit) else { return .more }
      case .catchUp(let plan):
        // A slice takes a while: let other clients have their turn after it.
        left = 0
        guard try slice(plan, emit) else { return .more }
        if !stream.hasEvents, let wake, catchUp?.wait(wake) == true { return .waiting }
      case .takeFromHub:
        left -= 1
        guard let event = subscriber.take() else { return .waiting }
        advance()
        if case .needsCallerCheck = event {
          try checkCaller()
          break
        }
        do { try stream.receive(event) } catch { throw Status(error, database: database.id) }
      }
    } while left > 0 || stream.hasEvents
    return .more
  }

  /// Checks that an event does not end a target because this node can serve nothing any more. Clients give up a target that
  /// ends with an error, but after the end of a stream they connect again, perhaps to another node.
  /// - Throws: `UNAVAILABLE` if it does.
  private func requireServing(_ event: WatchEvent) throws {
    guard case .remove(_, let cause?) = event else { return }
    let status = Status(cause, database: database.id)
    if status.code == .unavailable { throw status }
  }

  /// Continues a catch-up. Returns `false` if `emit` did.
  private func slice(_ plan: CatchUp.Plan, _ emit: (WatchEvent) throws -> Bool) throws -> Bool {
    let catchUp = catchUp ?? CatchUp(database, plan)
    self.catchUp = catchUp
    var wantsMore = true
    var emitError: (any Error)?
    do {
      let progress = try catchUp.slice { key, change in
        wantsMore = try send(key, change.map(DocumentState.stored), of: plan.target, at: plan.version) { event in
          do { return try emit(event) } catch {
            emitError = error
            throw error
          }
        }
        return wantsMore && stream.target(plan.target) != nil
      }
      if progress == .reset { service.counters.add(to: .listenerResets) }
      stream.caughtUp(progress)
      if progress == .done || stream.target(plan.target) == nil { self.catchUp = nil }
    } catch {
      if let emitError { throw emitError }
      stream.catchUpFailed(error)
      self.catchUp = nil
    }
    return wantsMore
  }

  /// Sends the change of a document in a target, as far as the caller may see it. Returns `false` if `emit` did.
  private func send(
    _ key: DocumentKey, _ change: DocumentChange<DocumentState>, of target: Int, at version: Int64,
    _ emit: (WatchEvent) throws -> Bool
  ) throws -> Bool {
    authorize(key, change, of: target)
    guard let (id, selection) = stream.target(target) else { return true }
    var visible = change
    switch change {
    case .modified(.stored(let document)):
      if let mask = selection.projection {
        visible = .modified(.shared(try WatchedDocument(key, document, keptBy: mask)))
      }
    case .removed(let document?):
      visible = .removed(isReadable(key, document) ? try? document.kept(key, by: selection.projection) : nil)
    // Views have projected the documents that they share.
    case .modified(.shared), .removed(nil), .deleted: break
    }
    unchargedReads += 1
    return try emit(
      .document(key, visible, target: id, readTime: Timestamp(uncheckedMicroseconds: version)))
  }

  // MARK: Actions

  private func act() {
    while let action = stream.nextAction() {
      switch action {
      case .authorize(let target, let selection):
        do {
          try requireReads(for: target, selection)
          try authorize(target, selection)
        } catch { stream.end(target, because: error) }
      case .request(let request):
        // The operands of a query are kept as long as the target exists.
        if !settleMemory(), case .join(let target, _, _, _) = request {
          let text = "The queries of all listeners take too much memory. Try again later."
          stream.end(target, because: Status(.resourceExhausted, text))
        } else {
          hub.handle(request, from: subscriber)
        }
      }
    }
  }

  /// Reserves or releases memory for the operands of all queries. Returns `false` if the limit of all listeners is
  /// reached.
  private func settleMemory() -> Bool {
    let bytes = stream.operandBytes - reservedBytes
    if bytes > 0, !service.watchHubs.reserve(bytes) { return false }
    if bytes < 0 { service.watchHubs.release(-bytes) }
    reservedBytes += bytes
    return true
  }

  // MARK: Limits

  /// Checks that the caller may read more documents in this minute, if the target is new. A query counts as one.
  /// - Throws: `RESOURCE_EXHAUSTED` if it may not.
  private func requireReads(for target: Int, _ selection: TargetSelection) throws(Status) {
    guard target > newestCheckedTarget else { return }
    newestCheckedTarget = target
    guard case .restricted(let authorizer) = access, let limiter = authorizer.evaluations.limiter else { return }
    let isQuery = if case .query = selection { true } else { false }
    try limiter.take(.userReads, isQuery ? 1 : 0, of: authorizer.auth)
  }

  /// Consumes the allowance of the caller for the documents that were sent. Targets that exist continue even if nothing
  /// is left.
  private func chargeReads() {
    let count = unchargedReads
    unchargedReads = 0
    guard count > 0, case .restricted(let authorizer) = access, let limiter = authorizer.evaluations.limiter else {
      return
    }
    limiter.charge(.userReads, count, of: authorizer.auth)
  }

  // MARK: Rules

  /// Checks the caller as a whole: that its token is valid, and that the rules have not changed. If they have, all
  /// targets are authorized again.
  /// - Throws: `UNAUTHENTICATED` if the token has expired or was revoked; `UNAVAILABLE` if the service ends its streams;
  ///   the errors of ``FirestoreService/accessOfListener(to:as:)`` if the rules have changed.
  private func checkCaller() throws {
    try service.openStreams.requireContinuing()
    try caller.checkToken(database.clock)
    guard case .user = caller else { return }
    switch (service.rules.active(for: database.id), access) {
    case (.ruleset(let ruleset), .restricted(let authorizer)) where authorizer.ruleset === ruleset: break
    case (.none, .restricted(let authorizer)) where authorizer.ruleset === ActiveRuleset.grantingNothing: break
    case (.none, .unrestricted): break
    default:
      access = try service.accessOfListener(to: database.id, as: caller).access
      stream.isRestricted = !access.isUnrestricted
      stream.reauthorize(nil)
      act()
    }
    stream.tick()
  }

  /// Authorizes a target by the newest state.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it; `FAILED_PRECONDITION` if the query lacks a required index.
  private func authorize(_ target: Int, _ selection: TargetSelection) throws {
    var dependencies = AuthorizationDependencies()
    var versions: [DocumentKey: Int64] = [:]
    if !access.isUnrestricted || service.requiresIndexes {
      try database.read { reader in
        switch selection {
        case .query(let query):
          switch access {
          case .unrestricted: break
          case .restricted(let authorizer):
            dependencies = try authorizer.authorizeList(
              query.provable, ofPipeline: query.isOfPipeline, in: database, reader.snapshot)
          }
          // Pipelines need no indexes.
          if !query.isOfPipeline {
            try service.checkIndexes(of: query.resolved, database.edition, database.indexes(&reader))
          }
        case .documents(let keys):
          guard case .restricted(let authorizer) = access else { return }
          for key in keys {
            let document = try reader.document(key)
            dependencies.formUnion(try authorizer.authorizeGet(key, document?.fields, in: database, reader.snapshot))
            versions[key] = document?.updateVersion ?? 0
          }
        }
      }
    }
    stream.authorized(target, dependencies, versions: versions)
  }

  /// Authorizes the new state of a document in a document target. If it is denied, the target ends.
  private func authorize(_ key: DocumentKey, _ change: DocumentChange<DocumentState>, of target: Int) {
    let document: DocumentState?
    switch change {
    case .modified(let state): document = state
    case .deleted: document = nil
    case .removed: return
    }
    let version = document?.updateVersion ?? 0
    guard stream.needsAuthorization(key, version: version, in: target) else { return }
    do {
      let dependencies = try authorizeGet(key, document)
      stream.authorized(key, version: version, in: target, dependencies)
    } catch { stream.end(target, because: error) }
    act()
  }

  /// Whether the caller may read a document that no longer matches a query.
  private func isReadable(_ key: DocumentKey, _ document: DocumentState) -> Bool {
    (try? authorizeGet(key, document)) != nil
  }

  /// Authorizes a state of a document, and its newest state if that is another one: a client that lags behind must not
  /// receive what was made private since.
  private func authorizeGet(_ key: DocumentKey, _ document: DocumentState?) throws -> AuthorizationDependencies {
    guard case .restricted(let authorizer) = access else { return AuthorizationDependencies() }
    return try database.read { reader in
      let newest = try reader.document(key)
      var dependencies = try authorizer.authorizeGet(key, newest?.fields, in: database, reader.snapshot)
      guard document?.updateVersion != newest?.updateVersion else { return dependencies }
      let shown =
        if let document {
          try document.withFields { try authorizer.authorizeGet(key, $0, in: database, reader.snapshot) }
        } else {
          try authorizer.authorizeGet(key, nil, in: database, reader.snapshot)
        }
      dependencies.formUnion(shown)
      return dependencies
    }
  }
}

extension ListenTarget {
  /// Returns the target with the documents that a pipeline finds.
  /// - Throws: `INVALID_ARGUMENT` that names the stage if the pipeline is invalid, or listeners cannot follow it.
  package func following(_ pipeline: StructuredPipeline, in database: DatabaseID) throws(Status) -> ListenTarget {
    var target = self
    let listened: ListenedPipeline
    do throws(PipelineError) { listened = try ListenedPipeline(pipeline, in: database) } catch {
      throw Status(error, database: database)
    }
    switch listened {
    case .query(let query, let provable): target.selection = .pipeline(query, provable: provable)
    case .documents(let keys): target.selection = .documents(keys.map(\.path))
    }
    return target
  }
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
