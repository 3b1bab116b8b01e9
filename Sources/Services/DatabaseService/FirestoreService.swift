package import DocumentModel
package import DocumentStore
package import RulesEngine

/// The calls of `google.firestore.v1.Firestore`, one file each, for every dialect.
///
/// A call is a synchronous function on the caller's thread; only what commits is answered later. Every call says as
/// whom it is made, and begins with ``access(to:as:)``. Errors are ``Status`` once they passed
/// ``Status/init(_:database:)``, which the dialects do at their edge.
package final class FirestoreService: Sendable {
  /// Who is admitted to a database that has no rules, beside administrators.
  package enum Admission: Sendable {
    /// Everybody: emulator mode.
    case everybody
    /// Nobody: production mode.
    case nobody
  }

  /// The databases it serves.
  package let databases: DatabaseRegistry
  /// The rules that guard them.
  package let rules: RulesRegistry
  /// Who is admitted without rules. Where that is everybody, denials say why.
  package let admission: Admission
  /// How rules authorise queries.
  let proofs: ProofMode
  /// Whether queries are refused that production would refuse for want of an index.
  let requiresIndexes: Bool
  /// What queries came, for suggestions of indexes.
  let seenQueries = QueryLog()
  /// Idle judges.
  let evaluations = RulesEvaluationPool()
  /// What it did since the start.
  package var counters: ServiceCounters { evaluations.counters }
  /// Who follows what.
  package let feeds = WatchHubRegistry()

  /// Creates a service.
  package init(
    databases: DatabaseRegistry, admission: Admission, rules: RulesRegistry = RulesRegistry(), proofs: ProofMode = .sound,
    requiresIndexes: Bool = false
  ) {
    self.databases = databases
    self.admission = admission
    self.rules = rules
    self.proofs = proofs
    self.requiresIndexes = requiresIndexes
    rules.observe { [feeds] in feeds.wakeAll() }
  }

  /// The edition of the database a call is for, whether it is served or not. Requests are decoded by its rules.
  package func edition(of id: DatabaseID) -> Edition { databases.edition(of: id) }

  /// The database a call is for, with what its caller may do there.
  ///
  /// Cost: two short locks.
  /// - Throws: `PERMISSION_DENIED` where nobody is admitted, `INVALID_ARGUMENT` where the rules in force do not
  ///   compile, `NOT_FOUND` where the database is not served.
  package func access(to id: DatabaseID, as caller: Caller) throws -> DatabaseAccess {
    var authorizer: Authorizer?
    if case .user(let auth) = caller {
      switch rules.inForce(for: id) {
      case .none: try admit(caller)
      case .broken(let text): throw Status(.invalidArgument, text)
      case .ruleset(let ruleset): authorizer = makeAuthorizer(ruleset, auth)
      }
    }
    return DatabaseAccess(database: try database(id), authorizer: authorizer)
  }

  /// The same for a stream of listeners. Where nobody is admitted the stream stays open and each target is denied:
  /// clients take the end of a stream for a fault, and retry for ever (listen-and-webchannel.md, section 1.9).
  /// - Throws: as ``access(to:as:)``; `PERMISSION_DENIED` where nobody is admitted and the database is not served.
  func accessOfListener(to id: DatabaseID, as caller: Caller) throws -> DatabaseAccess {
    guard case .user(let auth) = caller, admission == .nobody, case .none = rules.inForce(for: id),
      let nothing = ActiveRuleset.grantingNothing
    else { return try access(to: id, as: caller) }
    guard let database = try databases.database(id) else { throw Status.permissionDenied }
    return DatabaseAccess(database: database, authorizer: makeAuthorizer(nothing, auth))
  }

  private func makeAuthorizer(_ ruleset: ActiveRuleset, _ auth: RulesAuth?) -> Authorizer {
    Authorizer(ruleset: ruleset, auth: auth, explains: admission == .everybody, proofs: proofs, evaluations: evaluations)
  }

  /// Lets in who is admitted where there are no rules.
  /// - Throws: `PERMISSION_DENIED`.
  func admit(_ caller: Caller) throws {
    if case .user = caller, admission == .nobody { throw Status.permissionDenied }
  }

  /// The database of that name, for who may do everything.
  /// - Throws: `NOT_FOUND` where it is not served.
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

/// A database, and by what a caller's requests to it are judged.
package struct DatabaseAccess: Sendable {
  /// The database.
  package let database: DocumentDatabase
  /// How requests are judged; `nil` where everything is allowed.
  let authorizer: Authorizer?

  /// Refuses a call that only administrators make, where there are rules.
  /// - Throws: `PERMISSION_DENIED`.
  func requireAdmin() throws {
    guard let authorizer else { return }
    guard authorizer.explains else { throw Status.permissionDenied }
    throw Status(.permissionDenied, "Only an administrator may make this call; rules do not grant it.")
  }
}

extension Status {
  /// A denial that gives no reason, in the service's words.
  static let permissionDenied = Status(.permissionDenied, "Missing or insufficient permissions.")
}
