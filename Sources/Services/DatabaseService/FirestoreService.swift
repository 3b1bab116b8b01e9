package import Basics
import Callers
package import DocumentModel
package import DocumentStore
package import RulesEngine

/// The methods of `google.firestore.v1.Firestore`, one file each, shared by REST, gRPC and WebChannel.
///
/// 1. A method authorizes its caller with ``access(to:as:)``, then checks the request and executes it. Methods for
///    administrators of the whole server take the proof that ``administrator(_:)`` makes.
/// 2. Reads are synchronous, on the caller's thread. Commits respond later through a completion handler.
/// 3. Methods throw errors of all layers. The protocol handlers convert them with ``Status/init(_:database:)``.
package final class FirestoreService: Sendable {
  private let databases: DatabaseRegistry
  /// The rules of the databases.
  let rules: RulesRegistry
  package let mode: ServerMode
  /// The way in which rules authorize queries.
  private let proofMode: ProofMode
  /// Whether queries are rejected for which production would lack an index.
  let requiresIndexes: Bool
  /// The shapes of the queries so far, for index suggestions.
  let seenQueries = QueryLog()
  /// Evaluations that are ready for reuse.
  private let evaluations: RulesEvaluationPool
  /// Counters of requests and their results since the start.
  package var counters: ServiceCounters { evaluations.counters }
  /// The limits of callers, or `nil` if nothing is limited.
  package var limiter: RateLimiter? { evaluations.limiter }
  /// The hubs of the databases that have listeners.
  let watchHubs = WatchHubRegistry()
  /// The streams whose callers are checked when accounts or rules change.
  let openStreams: OpenStreams
  /// The quotas of the project.
  package let quotas: ProjectQuotas

  /// Creates a service. It checks the callers of all streams whenever rules change. `observer` receives every decision
  /// of rules while `observation` is on; without it in emulator mode only. The registry counts documents in the same
  /// `quotas`.
  package init(
    databases: DatabaseRegistry, mode: ServerMode, rules: RulesRegistry = RulesRegistry(),
    proofMode: ProofMode = .sound,
    requiresIndexes: Bool = false, observer: (any AccessObserver)? = nil, observation: ObservationSwitch? = nil,
    limiter: RateLimiter? = nil, quotas: ProjectQuotas = ProjectQuotas(of: "demo", now: RateLimiter.monotonic)
  ) {
    precondition(
      observer == nil || observation != nil || mode == .emulator,
      "in production, decisions are observed while a switch is on")
    evaluations = RulesEvaluationPool(
      observer: observer, observation: observation ?? ObservationSwitch(isOn: true), limiter: limiter)
    self.databases = databases
    self.quotas = quotas
    openStreams = OpenStreams(quotas.streams)
    self.mode = mode
    self.rules = rules
    self.proofMode = proofMode
    self.requiresIndexes = requiresIndexes
    rules.observe { [openStreams] in openStreams.check(nil) }
    if let observer { rules.observe { observer.noteSetup(of: nil) } }
  }

  /// Creates a service without databases, which only decides whether a caller is an administrator.
  package convenience init(withoutDatabasesIn mode: ServerMode) {
    self.init(databases: DatabaseRegistry(idleSeconds: nil) { _ in nil }, mode: mode)
  }

  /// The observer of decisions, or `nil` if decisions are not recorded.
  var observer: (any AccessObserver)? { evaluations.observer }

  /// Returns the edition of a database, even if the database is not served. The edition determines how requests are
  /// decoded.
  package func edition(of id: DatabaseID) -> Edition { databases.edition(of: id) }

  // MARK: Callers

  /// Returns a database as a caller may use it. Requests that only read pass `false` as `creates`: then a database that
  /// does not exist is empty, and is not created.
  ///
  /// Cost: two short locks.
  /// - Throws: `PERMISSION_DENIED` if the database has no rules and the caller is not admitted without rules;
  ///   `INVALID_ARGUMENT` if the active rules do not compile; `NOT_FOUND` if the database is not served;
  ///   ``StorageError`` if the database cannot be opened.
  package func access(to id: DatabaseID, as caller: Caller, creates: Bool = true) throws -> DatabaseAccess {
    let access = try access(of: caller, to: id)
    return DatabaseAccess(try database(id, creates: creates), access)
  }

  /// Checks that there is room for a commit before its request of this many bytes is decoded.
  /// - Throws: ``CommitError/overloaded(waitingBytesMax:)`` if too many commits are unfinished.
  package func checkRoom(forCommitOf bytes: Int) throws {
    try databases.checkRoom(forCommitOf: bytes)
  }

  private func access(of caller: Caller, to id: DatabaseID) throws(Status) -> Access {
    switch caller {
    case .administrator: return .unrestricted(try administrator(caller))
    case .user(let auth):
      switch rules.active(for: id) {
      case .none: return .unrestricted(try administrator(caller))
      case .broken(let text): throw Status(.invalidArgument, text)
      case .ruleset(let ruleset): return .restricted(makeAuthorizer(ruleset, auth))
      }
    }
  }

  /// Returns the access of a Listen stream. If the database has no rules and the caller is not admitted, the stream
  /// stays open and each target is denied. Clients take the end of a stream for a fault and retry forever
  /// (listen-and-webchannel.md, section 1.9).
  /// - Throws: The errors of ``access(to:as:)``; `PERMISSION_DENIED` only if the database is not served.
  func accessOfListener(to id: DatabaseID, as caller: Caller) throws -> ListenerAccess {
    guard case .user(let auth) = caller, !mode.admitsCallersWithoutRules, case .none = rules.active(for: id),
      let nothing = ActiveRuleset.grantingNothing
    else {
      let access = try access(of: caller, to: id)
      return ListenerAccess(database: try database(id), access: access)
    }
    guard let database = try databases.database(id) else { throw Status.permissionDenied }
    return ListenerAccess(database: database, access: .restricted(makeAuthorizer(nothing, auth)))
  }

  /// Ends the streams of these users whose tokens are no longer valid, with `nil` those of all callers. The streams
  /// check their tokens on their own threads, as soon as these are free.
  package func recheckStreams(of uids: Set<String>?) { openStreams.check(uids) }

  /// Ends all streams, and those that requests under way still open, with UNAVAILABLE. Clients then open them again,
  /// and reach the successor of this service.
  package func endStreams() { openStreams.end() }

  private func makeAuthorizer(_ ruleset: ActiveRuleset, _ auth: RulesAuth?) -> Authorizer {
    Authorizer(
      ruleset: ruleset, auth: auth, explains: mode.explainsDenials, proofMode: proofMode,
      evaluations: evaluations)
  }

  /// Returns a database without authorizing a caller.
  /// - Throws: `NOT_FOUND` if the database is not served, ``StorageError`` if it cannot be opened.
  private func database(_ id: DatabaseID, creates: Bool = true) throws -> DocumentDatabase {
    guard let database = try databases.database(id, creates: creates) else {
      throw Status(
        .notFound,
        "The database \(id.database) does not exist for project \(id.project). "
          + "In production hearth serves the databases that its configuration declares, by default (default).")
    }
    return database
  }

  /// Runs `body` with an evaluation whose rules look up documents in a database if it exists, and with the time that
  /// the rules see. Only the rules see these documents.
  func withEvaluation<R>(
    documentsIn id: DatabaseID?, _ body: (RulesEvaluation, _ now: Timestamp) -> R
  ) throws -> R {
    let evaluation = evaluations.take()
    defer { evaluations.give(evaluation) }
    let now = self.now
    guard let id, let database = try? database(id, creates: false) else { return body(evaluation, now) }
    return try database.read { reader in
      evaluation.begin(reader.snapshot)
      return body(evaluation, now)
    }
  }

  // MARK: Administrators

  /// Returns the proof that a caller may administer the server: it is an administrator, or the server admits every
  /// caller.
  /// - Throws: `PERMISSION_DENIED` if it may not.
  package func administrator(_ caller: Caller) throws(Status) -> Administrator {
    guard caller.isAdmin || mode.admitsCallersWithoutRules else { throw Status.permissionDenied }
    return Administrator()
  }

  /// Returns the rules of the databases, to inspect or replace them.
  package func rules(as _: Administrator) -> RulesRegistry { rules }

  /// The hubs of the databases that have listeners. A hub delivers documents without authorizing them.
  package func watchHubs(as _: Administrator) -> WatchHubRegistry { watchHubs }

  /// Returns a database, or `nil` if it does not exist and a request would have to create it.
  /// - Throws: `NOT_FOUND` if the database is not served, ``StorageError`` if it cannot be opened.
  func existingDatabase(_ id: DatabaseID, as _: Administrator) throws -> DocumentDatabase? {
    guard let database = try databases.existing(id) else { return databases.createsDatabases ? nil : try database(id) }
    return database
  }

  /// Returns a database. In emulator mode, creates it if it does not exist.
  /// - Throws: `NOT_FOUND` if the database is not served, ``StorageError`` if it cannot be opened.
  func database(_ id: DatabaseID, as _: Administrator) throws -> DocumentDatabase { try database(id) }

  /// Returns the databases that are open now, sorted by name.
  func openDatabases(as _: Administrator) -> [DocumentDatabase] { databases.openDatabases }

  /// The time by the server's clock.
  var now: Timestamp { Timestamp(uncheckedMicroseconds: databases.clock.now()) }

  /// The counters of commits to all databases.
  var commitCounters: CommitCounters { databases.counters }
}

/// Proof that a caller may administer the server. Only ``FirestoreService/administrator(_:)`` makes it.
package struct Administrator: Sendable {
  fileprivate init() {}
}

/// A database as a Listen stream uses it. The stream authorizes each target and each document itself.
struct ListenerAccess {
  let database: DocumentDatabase
  let access: Access

  fileprivate init(database: DocumentDatabase, access: Access) {
    self.database = database
    self.access = access
  }
}

extension Status {
  /// A denial without a reason, with the text of production.
  static let permissionDenied = Status(.permissionDenied, "Missing or insufficient permissions.")
}
