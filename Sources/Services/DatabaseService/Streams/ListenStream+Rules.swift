import DocumentModel
import DocumentStore
import KeyValue
import QueryEngine
import RulesEngine
import Watch

/// What a listener may see, again and again: design, section 6.
extension ListenStream {
  /// A decision that used the time of day is judged again after so many microseconds. Listeners are woken every 32
  /// seconds at least, so it is never older than a minute.
  private static let reauthorizationInterval: Int64 = 25_000_000

  /// Whether time may have ended the admission of a target that is about to be told something: what was granted until a
  /// moment is not shown behind it. Costs such targets one judgement for each commit that touches them.
  func isStale(_ target: WatchedTarget) -> Bool {
    target.usesTime && database.clock.now() > target.authorizedAt
  }

  /// Checks what concerns the caller as a whole: that its token is not over, and that the rules are still those that
  /// admitted its targets.
  /// - Throws: `UNAUTHENTICATED` for a token that is over; as ``FirestoreService/accessOfListener(to:as:)`` where the rules are
  ///   others.
  func checkCaller() throws {
    guard case .user = caller else { return }
    try caller.checkToken(database.clock)
    switch service.rules.inForce(for: database.id) {
    case .ruleset(let ruleset) where authorizer?.ruleset === ruleset: break
    case .none where authorizer == nil || authorizer?.ruleset === ActiveRuleset.grantingNothing: break
    default:
      authorizer = try service.accessOfListener(to: database.id, as: caller).authorizer
      reauthorize(Set(numbered.keys))
    }
    guard authorizer != nil else { return }
    let now = database.clock.now()
    for target in targets.values where target.usesTime && target.authorizedAt + Self.reauthorizationInterval <= now {
      reauthorize([target.number])
    }
  }

  /// Judges targets, and ends those that are not admitted any more.
  func reauthorize(_ numbers: Set<Int>) {
    for number in numbers {
      guard let target = numbered[number] else { continue }
      do {
        let wasGuarded = target.isGuarded
        let grounds = try admit(target)
        if wasGuarded || target.isGuarded { feed.setGuards(listener, target: number, grounds.documents) }
      } catch { end(target, because: error) }
    }
  }

  /// Judges whether a target is admitted, by the newest state.
  /// - Throws: `PERMISSION_DENIED`; what makes a query impossible to serve.
  func admit(_ target: WatchedTarget) throws -> AuthorizationDependencies {
    var grounds = AuthorizationDependencies()
    guard authorizer != nil || service.requiresIndexes else { return grounds }
    target.authorizedAt = database.clock.now()
    try database.read { reader in
      switch target.selection {
      case .query(let query):
        if let authorizer {
          grounds = try authorizer.admitList(query.resolved.query, in: database, reader.snapshot)
        }
        try service.checkIndexes(of: query.resolved, database, &reader)
      case .documents(let keys):
        guard let authorizer else { return }
        for key in keys {
          let document = try reader.document(key)
          grounds.formUnion(try authorizer.admitGet(key, document?.fields, in: database, reader.snapshot))
          target.authorizedVersions[key] = document?.updateVersion ?? 0
        }
      }
    }
    target.usesTime = grounds.usesTime
    target.isGuarded = !grounds.documents.isEmpty
    return grounds
  }

  // MARK: What is told

  /// What a client is told of a step on the way to a version; `nil` for nothing.
  func event(_ event: CatchUp.Event, of target: WatchedTarget) throws -> ListenEvent? {
    let time = Timestamp(uncheckedMicroseconds: joiningVersion)
    switch event {
    case .reset:
      target.isCurrent = false
      service.counters.add(to: .listenerResets)
      return .targetReset(target.id)
    case .matches(let key, let document):
      guard mayShow(key, document.fields, version: document.updateVersion, target) else { return nil }
      guard let mask = target.projection else { return .found(key, document, targets: [target.id]) }
      return .changed(try WatchedDocument(key, document, keptBy: mask), targets: [target.id], removedTargets: [])
    case .left(let key, let document):
      guard isReadable(key, document.fields) else { return .removed(key, readTime: time, removedTargets: [target.id]) }
      let left = try target.projection.map { try WatchedDocument(key, document, keptBy: $0) }
      return .changed(left ?? WatchedDocument(key, document), targets: [], removedTargets: [target.id])
    case .deleted(let key):
      guard mayShow(key, nil, version: 0, target) else { return nil }
      return .deleted(key, readTime: time, removedTargets: [target.id])
    case .removed(let key): return .removed(key, readTime: time, removedTargets: [target.id])
    }
  }

  /// What a client is told of a change; `nil` for nothing.
  func event(_ change: TargetDocumentChange, of target: WatchedTarget, at version: Int64) -> ListenEvent? {
    let time = Timestamp(uncheckedMicroseconds: version)
    switch change.state {
    case .matches(let document):
      let isAllowed = document.fields.bytes.withUnsafeBytes {
        mayShow(change.key, $0, version: document.updateVersion, target)
      }
      return isAllowed ? .changed(document, targets: [target.id], removedTargets: []) : nil
    case .left(let document):
      guard document.fields.bytes.withUnsafeBytes({ isReadable(change.key, $0) }) else {
        return .removed(change.key, readTime: time, removedTargets: [target.id])
      }
      guard let mask = target.projection else { return .changed(document, targets: [], removedTargets: [target.id]) }
      guard let kept = try? document.kept(by: mask) else {
        return .removed(change.key, readTime: time, removedTargets: [target.id])
      }
      return .changed(kept, targets: [], removedTargets: [target.id])
    case .deleted:
      guard mayShow(change.key, nil, version: 0, target) else { return nil }
      return .deleted(change.key, readTime: time, removedTargets: [target.id])
    case .removed: return .removed(change.key, readTime: time, removedTargets: [target.id])
    }
  }

  /// Judges the new state of a document that a target names. Where it may not be seen the target ends.
  private func mayShow(
    _ key: DocumentKey, _ fields: UnsafeRawBufferPointer?, version: Int64, _ target: WatchedTarget
  ) -> Bool {
    guard let authorizer, case .documents = target.selection, target.authorizedVersions[key] != version else { return true }
    do {
      let grounds = try database.read { reader in
        try authorizer.admitGet(key, fields, in: database, reader.snapshot)
      }
      target.authorizedVersions[key] = version
      target.usesTime = target.usesTime || grounds.usesTime
      if target.isGuarded || !grounds.documents.isEmpty {
        // What the other documents of the target rest on belongs to it too.
        reauthorize([target.number])
      }
      return target.isActive
    } catch {
      end(target, because: error)
      return false
    }
  }

  /// Whether the caller may see what became of a document that left a query's results.
  private func isReadable(_ key: DocumentKey, _ fields: UnsafeRawBufferPointer) -> Bool {
    guard let authorizer else { return true }
    let grounds = try? database.read { reader in
      try authorizer.admitGet(key, fields, in: database, reader.snapshot)
    }
    return grounds != nil
  }
}
