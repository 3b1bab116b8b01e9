import DocumentModel
import DocumentStore
import KeyValue
import QueryEngine
import RulesEngine
import Watch

/// Authorizes targets, and converts changes to events. Authorization is repeated when something that it depends on
/// changes.
extension ListenStream {
  /// The age, in microseconds, after which a decision that depends on the time is made again. Listeners are woken at
  /// least every 32 seconds, so no decision is older than a minute.
  private static let reauthorizationInterval: Int64 = 25_000_000

  /// Whether a target must be authorized again before it receives changes, because the decision depends on the time.
  /// Data that was allowed until some time is not sent after it. Cost: one evaluation for each commit that affects
  /// such a target.
  func isStale(_ target: WatchedTarget) -> Bool {
    target.usesTime && database.clock.now() > target.authorizedAt
  }

  /// Checks the caller as a whole: that its token is valid, and that the rules have not changed. If they have, all
  /// targets are authorized again.
  /// - Throws: `UNAUTHENTICATED` if the token has expired or was revoked; the errors of
  ///   ``FirestoreService/accessOfListener(to:as:)`` if the rules have changed.
  func checkCaller() throws {
    try caller.checkToken(database.clock)
    guard case .user = caller else { return }
    switch (service.rules.active(for: database.id), access) {
    case (.ruleset(let ruleset), .restricted(let authorizer)) where authorizer.ruleset === ruleset: break
    case (.none, .restricted(let authorizer)) where authorizer.ruleset === ActiveRuleset.grantingNothing: break
    case (.none, .unrestricted): break
    default:
      access = try service.accessOfListener(to: database.id, as: caller).access
      reauthorize(Set(numbered.keys))
    }
    if access.isUnrestricted { return }
    let now = database.clock.now()
    for target in targets.values where target.usesTime && target.authorizedAt + Self.reauthorizationInterval <= now {
      reauthorize([target.number])
    }
  }

  /// Authorizes targets again, and ends those that are denied.
  func reauthorize(_ numbers: Set<Int>) {
    for number in numbers {
      guard let target = numbered[number] else { continue }
      do {
        let wasGuarded = target.isGuarded
        let dependencies = try authorize(target)
        if wasGuarded || target.isGuarded { hub.setGuards(mailbox, target: number, dependencies.documents) }
      } catch { end(target, because: error) }
    }
  }

  /// Authorizes a target by the newest state.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it; `FAILED_PRECONDITION` if the query lacks a required index.
  func authorize(_ target: WatchedTarget) throws -> AuthorizationDependencies {
    var dependencies = AuthorizationDependencies()
    guard !access.isUnrestricted || service.requiresIndexes else { return dependencies }
    target.authorizedAt = database.clock.now()
    try database.read { reader in
      switch target.selection {
      case .query(let query):
        switch access {
        case .unrestricted: break
        case .restricted(let authorizer):
          dependencies = try authorizer.authorizeList(query.resolved.query, in: database, reader.snapshot)
        }
        try service.checkIndexes(of: query.resolved, database.edition, database.indexes(&reader))
      case .documents(let keys):
        guard case .restricted(let authorizer) = access else { return }
        for key in keys {
          let document = try reader.document(key)
          dependencies.formUnion(try authorizer.authorizeGet(key, document?.fields, in: database, reader.snapshot))
          target.authorizedVersions[key] = document?.updateVersion ?? 0
        }
      }
    }
    target.usesTime = dependencies.usesTime
    target.isGuarded = !dependencies.documents.isEmpty
    return dependencies
  }

  // MARK: Events

  /// Returns the event for a step of catching up, or `nil` if the client must not receive one.
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

  /// Returns the event for a change, or `nil` if the client must not receive one.
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

  /// Authorizes the new state of a document in a document target. If it is denied, the target ends.
  private func mayShow(
    _ key: DocumentKey, _ fields: UnsafeRawBufferPointer?, version: Int64, _ target: WatchedTarget
  ) -> Bool {
    guard case .restricted(let authorizer) = access, case .documents = target.selection,
      target.authorizedVersions[key] != version
    else {
      return true
    }
    do {
      let dependencies = try database.read { reader in
        try authorizer.authorizeGet(key, fields, in: database, reader.snapshot)
      }
      target.authorizedVersions[key] = version
      target.usesTime = target.usesTime || dependencies.usesTime
      if target.isGuarded || !dependencies.documents.isEmpty {
        // Collect the dependencies of the target's other documents too.
        reauthorize([target.number])
      }
      return target.isActive
    } catch {
      end(target, because: error)
      return false
    }
  }

  /// Whether the caller may read a document that no longer matches a query.
  private func isReadable(_ key: DocumentKey, _ fields: UnsafeRawBufferPointer) -> Bool {
    guard case .restricted(let authorizer) = access else { return true }
    let dependencies = try? database.read { reader in
      try authorizer.authorizeGet(key, fields, in: database, reader.snapshot)
    }
    return dependencies != nil
  }
}
