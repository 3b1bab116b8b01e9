package import GatewayCore
package import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
package import FileService
import Files
package import Transport
import WireFormat

/// Serves requests with which tools and test suites control a server.
///
/// - `DELETE /emulator/v1/projects/{p}/databases/{d}/documents` clears a database (firestore-api.md, section 11.3).
/// - `…:securityRules` after a project or a database loads rules, and `…:ruleCoverage` reports their coverage; see
///   ``RulesHandler``.
/// - `DELETE /hearth/v1/projects/{p}/databases/{d}/documents/{path}` deletes a document or collection with
///   everything below it, up to 5,000 documents per request: `{"deleted": n, "done": false, "last": "…"}`. The next
///   request continues with `?behind=` and the path in `last`.
/// - `GET /hearth/v1/projects/{p}/databases/{d}/indexes` lists the indexes of a database and their state.
/// - `POST /hearth/v1/projects/{p}/databases/{d}/indexes:suggest` suggests an index file for the queries served so
///   far. The optional body is an index file to extend.
/// - `GET /hearth/v1/stats` reports statistics of the open databases, the state of their indexes, and statistics of
///   files.
/// - `GET /hearth/v1/listeners` lists the listeners of the open databases with their targets and their lag.
///
/// The paths under `/emulator/` need no credentials and exist only in emulator mode.
package final class EmulatorHandler: Sendable {
  private let service: FirestoreService
  private let authenticator: Authenticator
  private let rules: RulesHandler
  private let files: StorageService?
  /// The number of documents that one request of a recursive delete deletes. It keeps requests short, and clients
  /// can show progress.
  private static let deletedPerCall = 5000

  package init(_ service: FirestoreService, _ authenticator: Authenticator, files: StorageService?) {
    self.service = service
    self.files = files
    self.authenticator = authenticator
    rules = RulesHandler(service: service)
  }

  /// Handles a request for a path after `/emulator/v1/`.
  package func handleEmulator(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ responder: Responder)
  {
    respond(responder) {
      guard service.defaultAccess == .everybody else {
        throw Status(.permissionDenied, "Missing or insufficient permissions.")
      }
      if let (verb, place) = RulesHandler.target(path) { return try rules.handle(verb, place, request, responder) }
      guard let target = try RESTRoute(path, of: request.method), target.segmentCount == 0, request.method == .delete
      else { return responder.sendText(404, "Not Found\n") }
      try service.clear(target.database, as: .admin) { result in
        Self.send(result, responder) { _, _ in }
      }
    }
  }

  /// Handles a request for a path after `/hearth/v1/`.
  package func handleHearth(
    _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest,
    _ responder: Responder
  ) {
    respond(responder) {
      let caller = try authenticator.caller(of: request)
      if path.elementsEqual("stats".utf8), request.method == .get {
        return try service.statistics(as: caller) { [files] result in
          // This closure does not run on the loop, so it may count files.
          let files = try? files?.statistics()
          Self.send(result, responder) { databases, json in
            Self.append(databases, to: &json)
            if let files { json.append(files) }
          }
        }
      }
      if path.elementsEqual("listeners".utf8), request.method == .get {
        return try service.listeners(as: caller) { Self.send(.success($0), responder, Self.append) }
      }
      if let target = try DatabaseRoute(path) { return try handleIndexes(target, request, responder, as: caller) }
      guard let target = try RESTRoute(path, of: request.method), target.segmentCount > 0, request.method == .delete
      else { return responder.sendText(404, "Not Found\n") }
      let parameters = try QueryParameters(query)
      try parameters.allowOnly("behind")
      let path = try ResourcePath(checking: target.path)
      let last = try parameters.value("behind").flatMap { DocumentKey(try ResourcePath($0)) }
      // A position outside of the path would start the walk anywhere.
      if let last, !last.path.isAtOrBelow(path) {
        throw Status(.invalidArgument, "The document in `behind` must be below the path.")
      }
      try service.recursiveDelete(
        path, in: target.database, as: caller, after: last, limit: Self.deletedPerCall
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
  }

  private func handleIndexes(
    _ target: DatabaseRoute, _ request: borrowing HTTPRequest, _ responder: Responder, as caller: Caller
  ) throws {
    switch (request.method, target.rest) {
    case (.get, "indexes"):
      let reports = try service.indexReports(in: target.database, as: caller)
      Self.send(.success(reports), responder) { $1.append($0) }
    case (.post, "indexes:suggest"):
      let base = try request.body.isEmpty ? nil : FirestoreService.indexConfiguration(Array(request.body))
      // Thousands of query shapes are too much work for the loop's thread.
      let service = service
      DispatchQueue.global(qos: .utility).async {
        let outcome = Result { try service.suggestIndexes(base, in: target.database, as: caller) }
          .mapError { Status($0, database: target.database) }
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
    default: responder.sendText(404, "Not Found\n")
    }
  }

  private func respond(_ responder: Responder, _ work: () throws -> Void) {
    do { try work() } catch { responder.sendError(Status(error, database: nil)) }
  }

  private static func send<Success: Sendable>(
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

  private static func append(_ databases: [DatabaseStatistics], to json: inout JSONWriter) {
    json.key("databases")
    json.beginArray()
    for database in databases { json.append(database) }
    json.endArray()
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
  /// Appends the statistics of a database as an object.
  fileprivate mutating func append(_ statistics: DatabaseStatistics) {
    beginObject()
    key("project")
    string(statistics.id.project)
    key("database")
    string(statistics.id.database)
    for (column, value) in zip(DatabaseStatistics.columns, statistics.values) {
      key(column.name)
      number(value)
    }
    if !statistics.indexes.isEmpty { append(statistics.indexes) }
    endObject()
  }

  /// Appends the statistics of files as a member.
  fileprivate mutating func append(_ files: FilesStatistics) {
    key("files")
    beginObject()
    for (name, value) in zip(FilesStatistics.columns, files.values) {
      key(name)
      number(value)
    }
    endObject()
  }

  /// Appends the indexes and their state as a member.
  fileprivate mutating func append(_ reports: [IndexReport]) {
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
