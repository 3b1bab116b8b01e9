package import Accounts
package import DatabaseService
import DocumentModel
package import FileService
package import GatewayCore
package import Transport
import WireFormat

/// Serves requests with which tools and test suites control a server.
///
/// - `DELETE /emulator/v1/projects/{p}/databases/{d}/documents` clears a database (firestore-api.md, section 11.3).
/// - `POST /emulator/v1/projects/{p}:export` and `:import` write and read Firebase exports; see ``ExportHandler``.
/// - `…:securityRules` after a project or a database loads rules, and `…:ruleCoverage` reports their coverage; see
///   ``RulesHandler``.
/// - `DELETE /hearth/v1/projects/{p}/databases/{d}/documents/{path}` deletes a document or collection with
///   everything below it, up to 5,000 documents per request: `{"deleted": n, "done": false, "last": "…"}`. The next
///   request continues with `?behind=` and the path in `last`.
/// - `GET /hearth/v1/projects/{p}/databases/{d}/history` returns the oldest time at which the database can be read:
///   `{"oldest": "…"}`.
/// - `GET /hearth/v1/projects/{p}/databases/{d}/indexes` lists the indexes of a database and their state.
/// - `POST /hearth/v1/projects/{p}/databases/{d}/indexes:suggest` suggests an index file for the queries served so
///   far. The optional body is an index file to extend.
/// - `GET /hearth/v1/stats` reports statistics of the open databases, accounts and files; see ``StatisticsHandler``.
/// - `GET /hearth/v1/listeners` lists the listeners of the open databases with their targets and their lag.
///
/// The paths under `/emulator/` need no credentials and exist only in emulator mode.
package final class EmulatorHandler: API {
  package let authenticator: Authenticator
  private let service: FirestoreService
  private let rules: RulesHandler
  private let exports: ExportHandler
  private let statistics: StatisticsHandler
  /// The number of documents that one request of a recursive delete deletes. It keeps requests short, and clients
  /// can show progress.
  private static let deletedPerCall = 5000

  /// Creates a handler for a service's databases and, for their statistics, its files and accounts.
  package init(
    _ service: FirestoreService, _ authenticator: Authenticator, files: StorageService?, accounts: AccountStore?
  ) {
    self.service = service
    statistics = StatisticsHandler(service: service, files: files, accounts: accounts)
    self.authenticator = authenticator
    rules = RulesHandler(service: service)
    exports = ExportHandler(service: service)
  }

  /// The requests that the API handles.
  package static var routes: [Route<EmulatorHandler>] {
    let project = "/emulator/v1/projects/{project}"
    let database = "\(project)/databases/{database}"
    let hearth = "/hearth/v1/projects/{project}/databases/{database}"
    return [
      Route(.delete, ["\(database)/documents"], kind: .control, access: .emulator) { try $0.clear($1, $2) },
      Route(.post, ["\(project):export"], kind: .control, access: .emulator) { try $0.exports.export($1, $2) },
      Route(.post, ["\(project):import"], kind: .control, access: .emulator) { try $0.exports.import($1, $2) },
      Route(.put, ["\(project):securityRules"], kind: .control, access: .emulator) {
        try $0.rules.load(try RulesHandler.project($1, $2), $1, $2)
      },
      Route(.put, ["\(database):securityRules"], kind: .control, access: .emulator) {
        try $0.rules.load(try RulesHandler.database($1, $2), $1, $2)
      },
      Route(.get, ["\(project):securityRules"], kind: .control, access: .emulator) {
        try $0.rules.sendRules(try RulesHandler.project($1, $2), $2)
      },
      Route(.get, ["\(database):securityRules"], kind: .control, access: .emulator) {
        try $0.rules.sendRules(try RulesHandler.database($1, $2), $2)
      },
      Route(.get, ["\(project):ruleCoverage"], kind: .control, access: .emulator) {
        try $0.rules.sendCoverage(try RulesHandler.project($1, $2), $2)
      },
      Route(.get, ["\(database):ruleCoverage"], kind: .control, access: .emulator) {
        try $0.rules.sendCoverage(try RulesHandler.database($1, $2), $2)
      },
      Route(.get, ["\(project):ruleCoverage.html"], kind: .control, access: .emulator) {
        try $0.rules.sendCoverage(try RulesHandler.project($1, $2), asPage: true, $2)
      },
      Route(.get, ["\(database):ruleCoverage.html"], kind: .control, access: .emulator) {
        try $0.rules.sendCoverage(try RulesHandler.database($1, $2), asPage: true, $2)
      },
      Route(.get, ["/hearth/v1/stats"], kind: .control, access: .caller) { try $0.statistics.send($1, $2) },
      Route(.get, ["/hearth/v1/listeners"], kind: .control, access: .caller) { try $0.listeners($2) },
      Route(.get, ["\(hearth)/history"], kind: .control, access: .caller) { try $0.history($1, $2) },
      Route(.get, ["\(hearth)/indexes"], kind: .control, access: .caller) { try $0.indexes($1, $2) },
      Route(.post, ["\(hearth)/indexes:suggest"], kind: .control, access: .caller) { try $0.suggestIndexes($1, $2) },
      Route(.delete, ["\(hearth)/documents/{path...}"], kind: .control, access: .caller) {
        try $0.recursiveDelete($1, $2)
      },
    ]
  }

  /// Returns the caller of a request. Test suites need no credentials, so those of other systems are ignored where no
  /// particular caller is needed.
  ///
  /// - Throws: `UNAUTHENTICATED` if the credentials for another route are not valid.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) throws -> Caller {
    guard access == .emulator else { return try authenticator.caller(of: request) }
    return (try? authenticator.caller(of: request)) ?? .unauthenticated
  }

  private func clear(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let responder = call.responder
    try service.clear(try DocumentsPath.database(request, call), as: service.administrator(call.caller)) { result in
      Self.send(result, responder) { _, _ in }
    }
  }

  private func listeners(_ call: RoutedCall) throws {
    let responder = call.responder
    try service.listeners(as: service.administrator(call.caller)) { Self.send(.success($0), responder, Self.append) }
  }

  private func recursiveDelete(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let responder = call.responder
    let target = try DocumentsPath(request, call)
    guard target.segmentCount > 0 else { return responder.sendText(404, "Not Found\n") }
    let parameters = try QueryParameters(request.target.pathAndQuery.query)
    try parameters.allowOnly("behind")
    let path = try ResourcePath(checking: target.path)
    let last = try parameters.value("behind").flatMap { DocumentKey(try ResourcePath($0)) }
    // A position outside of the path would start the walk anywhere.
    if let last, !last.path.isAtOrBelow(path) {
      throw Status(.invalidArgument, "The document in `behind` must be below the path.")
    }
    try service.recursiveDelete(
      path, in: target.database, as: call.caller, after: last, limit: Self.deletedPerCall
    ) { result in
      Self.send(result, responder) { outcome, json in
        json.key("deleted")
        json.number(outcome.deleted)
        json.key("done")
        json.bool(outcome.isDone)
        if let last = outcome.last {
          json.key("last")
          json.string(last.path.text)
        }
      }
    }
  }

  private func indexes(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let reports = try service.indexReports(in: try DocumentsPath.database(request, call), as: call.caller)
    Self.send(.success(reports), call.responder) { $1.append($0) }
  }

  private func history(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let database = try DocumentsPath.database(request, call)
    let oldest = try service.oldestReadTime(in: database, as: call.caller)
    Self.send(.success(oldest), call.responder) { oldest, json in
      json.key("oldest")
      json.timestamp(oldest)
    }
  }

  private func suggestIndexes(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let database = try DocumentsPath.database(request, call)
    let base = try request.body.isEmpty ? nil : FirestoreService.indexConfiguration(Array(request.body))
    let (service, responder, caller) = (service, call.responder, call.caller)
    // Thousands of query shapes are too much work for the loop's thread.
    responder.work {
      let outcome = Result { try service.suggestIndexes(base, in: database, as: caller) }
        .mapError { Status($0, database: database) }
      Self.send(outcome, responder) { suggestions, json in
        json.key("queries")
        json.number(suggestions.queries)
        json.key("added")
        json.number(suggestions.added)
        json.key("complete")
        json.bool(suggestions.isComplete)
        json.key("file")
        json.string(String(decoding: suggestions.file, as: UTF8.self))
      }
    }
  }

  /// Sends the result of work on any thread: an object with the members that `append` writes, or an error.
  static func send<Success: Sendable>(
    _ result: Result<Success, Status>, _ responder: Responder,
    _ append: @escaping @Sendable (Success, inout JSONWriter) -> Void
  ) {
    responder.onLoop {
      switch result {
      case .failure(let status): responder.sendError(status)
      case .success(let success):
        var json = JSONWriter(.pretty)
        json.beginObject()
        append(success, &json)
        json.endObject()
        responder.sendJSON(json.finish())
      }
    }
  }

  @Sendable private static func append(_ listeners: [ListenerDescription], to json: inout JSONWriter) {
    json.key("listeners")
    json.beginArray()
    for listener in listeners {
      json.beginObject()
      json.key("project")
      json.string(listener.database.project)
      json.key("database")
      json.string(listener.database.database)
      json.key("name")
      json.string(listener.name)
      json.key("lagMilliseconds")
      json.number(Int(listener.lag / 1000))
      json.key("queuedBytes")
      json.number(listener.queuedBytes)
      json.key("targets")
      json.beginArray()
      for target in listener.targets { json.string(target) }
      json.endArray()
      json.endObject()
    }
    json.endArray()
  }
}

extension JSONWriter {
  /// Appends the indexes and their state as a member.
  mutating func append(_ reports: [IndexReport]) {
    key("indexes")
    beginArray()
    for report in reports {
      beginObject()
      key("index")
      string(report.text)
      key("state")
      string(report.state.rawValue)
      key("documents")
      number(report.documents)
      endObject()
    }
    endArray()
  }
}
