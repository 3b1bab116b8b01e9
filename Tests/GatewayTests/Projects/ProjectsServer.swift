import Accounts
import DocumentModel
import Foundation
import HearthServer
import Synchronization
import Testing
import TestSupport

/// A production server with several projects, each with the same rules, and the requests that a test sends to it.
final class ProjectsServer: Sendable {
  let directory: TemporaryDirectory
  let server: TestServer
  private let sources: Sources

  /// The configurations that the server loads.
  private final class Sources: Sendable {
    let all: Mutex<[ProjectSource]>
    init(_ all: [ProjectSource]) { self.all = Mutex(all) }
  }

  static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /notes/{id} { allow read, write: if true; }
        match /users/{uid} { allow read, write: if request.auth.uid == uid; }
      }
    }
    """
  static let storageRules = """
    rules_version = '2';
    service firebase.storage {
      match /b/{bucket}/o { match /own/{uid}/{name} { allow read, write: if request.auth.uid == uid; } }
    }
    """

  /// Starts a server with these projects. `standard` is the default project, which may have no folder of its own.
  /// Requests of a project that ends may run for `graceSeconds`.
  init(
    _ ids: [String], standard: String? = nil, graceSeconds: Int = 1,
    change: (inout HearthConfiguration) -> Void = { _ in }
  ) throws {
    let directory = try TemporaryDirectory()
    self.directory = directory
    try directory.write("firestore.rules", Self.rules)
    try directory.write("storage.rules", Self.storageRules)
    let sources = Sources(ids.map { Self.source($0, in: directory) })
    self.sources = sources
    server = try TestServer(.production) {
      $0.storage = .directory(directory.file("data"))
      $0.project = standard
      $0.stopGraceSeconds = graceSeconds
      $0.rules = [HearthConfiguration.RulesFile(directory.file("firestore.rules"))]
      $0.loadProjects = { sources.all.withLock { $0 } }
      change(&$0)
    }
  }

  /// The configuration of a project with the host name `ID.example.com` and the API key `key-of-ID`.
  static func source(
    _ id: String, in directory: TemporaryDirectory, rules: String = "firestore.rules", _ fingerprint: String = "1"
  ) -> ProjectSource {
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.rules = [HearthConfiguration.RulesFile(directory.file(rules))]
    configuration.storageRules = directory.file("storage.rules")
    return ProjectSource(
      id: id, hosts: ["\(id).example.com"], apiKeys: ["key-of-\(id)"], configuration: .success(configuration),
      fingerprint: fingerprint)
  }

  /// Changes the configurations, and makes the server load them.
  func reload(_ change: (inout [ProjectSource]) -> Void) {
    sources.all.withLock { change(&$0) }
    server.server.reload()
  }

  func accounts(_ project: String) throws -> AccountStore {
    try #require(server.server.accounts(of: project), "\(project) is not served")
  }

  /// Returns the header with a token of a project's user.
  func user(_ project: String, _ uid: String = "ann") throws -> (String, String) {
    let accounts = try accounts(project)
    let user = SignedInUser(uid: uid, provider: "custom", authTimeSeconds: accounts.nowSeconds)
    return ("Authorization", "Bearer \(try accounts.mintIDToken(for: user))")
  }

  /// Returns the header with a token of a project's administrator.
  func administrator(_ project: String) throws -> (String, String) {
    ("Authorization", "Bearer \(try accounts(project).serviceKeys.localAccessToken())")
  }

  /// The path of the documents of a project.
  static func documents(_ project: String, _ database: String = "(default)") -> String {
    "/v1/projects/\(project)/databases/\(database)/documents"
  }

  func request(
    _ method: String, _ target: String, _ body: String? = nil, _ headers: (String, String)...
  ) throws -> TestServer.Response {
    try server.request(method, target, body, headers: headers)
  }

  /// Writes the document `notes/n` of a project with its name.
  func write(_ project: String) throws {
    let reply = try request(
      "PATCH", "\(Self.documents(project))/notes/n", #"{"fields": {"of": {"stringValue": "\#(project)"}}}"#)
    #expect(reply.status == 200, "\(reply.text)")
  }

  /// Returns the text of `notes/n`.
  func note(_ project: String, _ headers: (String, String)...) throws -> (status: Int, text: String) {
    let reply = try server.request("GET", "\(Self.documents(project))/notes/n", nil, headers: headers)
    return (reply.status, reply.json("fields", "of", "stringValue") ?? reply.message)
  }
}
