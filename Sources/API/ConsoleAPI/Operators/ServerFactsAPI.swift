import Accounts
import DatabaseService
import DocumentModel
package import GatewayCore
import RulesEngine
import Transport
import WireFormat

/// Serves what operators see and do in the console of a production server: the configuration, the backups, the nodes of
/// a cluster, and the rules in force.
///
/// - `GET /hearth/v1/configuration`: the configuration in force, without secrets.
/// - `GET /hearth/v1/backups` lists the backups, and `POST` begins one.
/// - `GET /hearth/v1/cluster`: the nodes and the log of the cluster. A server alone has no nodes.
/// - `GET /hearth/v1/projects/{p}/databases/{d}/rules`: the text of the rules in force.
package final class ServerFactsAPI: API {
  package let authenticator: Authenticator
  private let facts: ConsoleFacts
  private let project: String

  /// Creates the API for a project.
  package init(_ facts: ConsoleFacts, project: String, _ authenticator: Authenticator) {
    self.facts = facts
    self.project = project
    self.authenticator = authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<ServerFactsAPI>] {
    [
      Route(.get, ["/hearth/v1/configuration"], kind: .control, access: .administrator) { api, _, call in
        guard let configuration = try api.ownFacts().configuration else { throw Self.noConfiguration }
        call.responder.sendJSON(configuration, cacheControl: "no-store")
      },
      Route(.get, ["/hearth/v1/backups"], kind: .control, access: .administrator) { try $0.listBackups($2) },
      Route(.post, ["/hearth/v1/backups"], kind: .control, access: .administrator) { try $0.createBackup($2) },
      Route(.get, ["/hearth/v1/cluster"], kind: .control, access: .administrator) { api, _, call in
        call.responder.sendJSON(api.facts.cluster?() ?? Self.noNodes, cacheControl: "no-store")
      },
      Route(
        .get, ["/hearth/v1/projects/{project}/databases/{database}/rules"], kind: .control, access: .administrator
      ) { try $0.sendRules($1, $2) },
    ]
  }

  private static let otherProjects = Status(
    .notFound, "The server has several projects, so operators of one of them do not see the server's own facts.")
  private static let noConfiguration = Status(.notFound, "The server does not show its configuration.")
  private static let noBackups = Status(
    .notFound, "The console shows backups that the server makes itself: start it with --backup-to.")

  private static let noBackupsOfCluster = Status(
    .notFound, "PostgreSQL has the data of the cluster. Back it up with its own tools.")
  private static let noNodes = Array(#"{"nodes": []}"#.utf8)

  /// Returns the facts of the server.
  /// - Throws: `NOT_FOUND` if they concern other projects too.
  private func ownFacts() throws(Status) -> ConsoleFacts {
    guard !facts.hasOtherProjects else { throw Self.otherProjects }
    return facts
  }

  /// Returns the backups of the server.
  /// - Throws: `NOT_FOUND` if it makes none, or if they concern other projects too.
  private func backups() throws(Status) -> BackupActions {
    let facts = try ownFacts()
    guard let backups = facts.backups else { throw facts.cluster == nil ? Self.noBackups : Self.noBackupsOfCluster }
    return backups
  }

  private func listBackups(_ call: RoutedCall) throws {
    let backups = try self.backups()
    let responder = call.responder
    let isTaken = backups.list { list in
      responder.onLoop { responder.sendJSON(list, cacheControl: "no-store") }
    }
    guard isTaken else {
      throw Status(.resourceExhausted, "The server is busy with other requests. Try again in a moment.")
    }
  }

  private func createBackup(_ call: RoutedCall) throws {
    let backups = try self.backups()
    guard backups.create() else {
      throw Status(.failedPrecondition, "A backup is under way. Wait until it has ended.")
    }
    call.responder.sendJSON(Array("{}\n".utf8), cacheControl: "no-store")
  }

  private func sendRules(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let (named, database) = (try call.text(0, of: request), try call.text(1, of: request))
    guard named == project, let id = DatabaseID(project: project, database: database) else {
      throw Status(.notFound, "This server does not have the database.")
    }
    var map = MapValue()
    switch facts.rules.active(for: id) {
    case .none: break
    case .ruleset(let active): map["text"] = .string(String(decoding: active.ruleset.source.bytes, as: UTF8.self))
    case .broken(let reason): map["problem"] = .string(reason)
    }
    if facts.cluster != nil { map["isDeployed"] = .boolean(true) }
    call.responder.sendJSON(map.json, cacheControl: "no-store")
  }
}
