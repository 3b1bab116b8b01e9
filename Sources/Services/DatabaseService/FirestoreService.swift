package import DocumentModel
package import DocumentStore
package import RulesEngine

/// The methods of `google.firestore.v1.Firestore`, one file each, shared by REST, gRPC and WebChannel.
///
/// 1. A method authorizes its caller with ``access(to:as:)``, then checks the request and executes it.
/// 2. Reads are synchronous, on the caller's thread. Commits respond later through a completion handler.
/// 3. Methods throw errors of all layers. The protocol handlers convert them with ``Status/init(_:database:)``.
package final class FirestoreService: Sendable {
  package let databases: DatabaseRegistry
  /// The rules of the databases.
  package let rules: RulesRegistry
  package let mode: ServerMode
  /// The way in which rules authorize queries.
  let proofMode: ProofMode
  /// Whether queries are rejected for which production would lack an index.
  let requiresIndexes: Bool
  /// The shapes of the queries so far, for index suggestions.
  let seenQueries = QueryLog()
  /// Evaluations that are ready for reuse.
  let evaluations = RulesEvaluationPool()
  /// Counters of requests and their results since the start.
  package var counters: ServiceCounters { evaluations.counters }
  /// The hubs of the databases that have listeners.
  package let watchHubs = WatchHubRegistry()

  /// Creates a service. It wakes all listeners whenever rules change.
  package init(
    databases: DatabaseRegistry, mode: ServerMode, rules: RulesRegistry = RulesRegistry(),
    proofMode: ProofMode = .sound,
    requiresIndexes: Bool = false
  ) {
    self.databases = databases
    self.mode = mode
    self.rules = rules
    self.proofMode = proofMode
    self.requiresIndexes = requiresIndexes
    rules.observe { [watchHubs] in watchHubs.wakeAll() }
  }

  /// Returns the edition of a database, even if the database is not served. The edition determines how requests are
  /// decoded.
  package func edition(of id: DatabaseID) -> Edition { databases.edition(of: id) }

  /// Returns the database of a request, with the authorizer of its caller.
  ///
  /// Cost: two short locks.
  /// - Throws: `PERMISSION_DENIED` if the database has no rules and the caller is not admitted without rules;
  ///   `INVALID_ARGUMENT` if the active rules do not compile; `NOT_FOUND` if the database is not served;
  ///   ``StorageError`` if the database cannot be opened.
  package func access(to id: DatabaseID, as caller: Caller) throws -> DatabaseAccess {
    var authorizer: Authorizer?
    if case .user(let auth) = caller {
      switch rules.active(for: id) {
      case .none: try requireDefaultAccess(caller)
      case .broken(let text): throw Status(.invalidArgument, text)
      case .ruleset(let ruleset): authorizer = makeAuthorizer(ruleset, auth)
      }
    }
    return DatabaseAccess(database: try database(id), authorizer: authorizer)
  }

  /// Returns the access of a Listen stream. If the database has no rules and the caller is not admitted, the stream
  /// stays open and each target is denied. Clients take the end of a stream for a fault and retry forever
  /// (listen-and-webchannel.md, section 1.9).
  /// - Throws: The errors of ``access(to:as:)``; `PERMISSION_DENIED` only if the database is not served.
  func accessOfListener(to id: DatabaseID, as caller: Caller) throws -> DatabaseAccess {
    guard case .user(let auth) = caller, !mode.admitsCallersWithoutRules, case .none = rules.active(for: id),
      let nothing = ActiveRuleset.grantingNothing
    else { return try access(to: id, as: caller) }
    guard let database = try databases.database(id) else { throw Status.permissionDenied }
    return DatabaseAccess(database: database, authorizer: makeAuthorizer(nothing, auth))
  }

  private func makeAuthorizer(_ ruleset: ActiveRuleset, _ auth: RulesAuth?) -> Authorizer {
    Authorizer(
      ruleset: ruleset, auth: auth, explains: mode.explainsDenials, proofMode: proofMode,
      evaluations: evaluations)
  }

  /// Checks that a caller may use a database without rules.
  /// - Throws: `PERMISSION_DENIED` if it may not.
  func requireDefaultAccess(_ caller: Caller) throws {
    if case .user = caller, !mode.admitsCallersWithoutRules { throw Status.permissionDenied }
  }

  /// Returns a database without authorizing a caller.
  /// - Throws: `NOT_FOUND` if the database is not served, ``StorageError`` if it cannot be opened.
  package func database(_ id: DatabaseID) throws -> DocumentDatabase {
    guard let database = try databases.database(id) else {
      throw Status(
        .notFound,
        "The database \(id.database) does not exist for project \(id.project). "
          + "In production hearth serves the (default) database of the project that --project names.")
    }
    return database
  }
}

/// A database and the authorizer of a caller's requests to it.
package struct DatabaseAccess: Sendable {
  package let database: DocumentDatabase
  /// Authorizes requests; `nil` if everything is allowed.
  let authorizer: Authorizer?

  /// Checks that the caller is an administrator, or that no rules apply.
  /// - Throws: `PERMISSION_DENIED` if neither is the case.
  func requireAdmin() throws {
    guard let authorizer else { return }
    guard authorizer.explains else { throw Status.permissionDenied }
    throw Status(.permissionDenied, "Only an administrator may make this request; security rules cannot allow it.")
  }
}

extension Status {
  /// A denial without a reason, with the text of production.
  static let permissionDenied = Status(.permissionDenied, "Missing or insufficient permissions.")
}
