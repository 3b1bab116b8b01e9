import Accounts
import DocumentModel
import DocumentStore
import Foundation
import HearthServer
import Synchronization
import Testing
import TestSupport

/// A server with a file of rules, users, and a clock that the test moves.
final class RulesServer {
  /// The lifetime of an ID token.
  static let tokenSeconds = 3600

  let server: TestServer
  let time = SteppedTime()
  /// The log lines of the server.
  let lines = ReportedLines()
  private let directory: TemporaryDirectory

  /// Starts a server.
  /// - Parameters:
  ///   - statements: the rules below the documents root.
  ///   - users: the IDs of its accounts.
  ///   - usesSystemClock: whether the clock is that of the machine instead of ``time``.
  init(
    _ mode: HearthConfiguration.Mode = .production, rules statements: String, users: [String] = [],
    usesSystemClock: Bool = false, change: (inout HearthConfiguration) -> Void = { _ in }
  ) throws {
    directory = try TemporaryDirectory()
    let file = directory.path + "/firestore.rules"
    try """
    rules_version = '2';
    service cloud.firestore { match /databases/{database}/documents { \(statements) } }
    """.write(toFile: file, atomically: true, encoding: .utf8)
    server = try TestServer(mode) { [time, lines] in
      $0.rules = [HearthConfiguration.RulesFile(file)]
      if !usesSystemClock { $0.clock = Clock { time.now } }
      $0.report = { lines.add($0) }
      change(&$0)
    }
    for uid in users { try accounts.users.insert(User(uid: uid, createdAt: accounts.now() / 1000)) }
  }

  var accounts: AccountStore { server.server.accounts }
  var port: UInt16 { server.port }

  /// The token of an administrator that is valid now.
  var admin: String { accounts.serviceKeys.localAccessToken() }

  /// Returns a new token of a user.
  func token(_ uid: String, _ claims: [(String, Value)] = []) throws -> String {
    var user = SignedInUser(uid: uid, provider: "custom", authTimeSeconds: accounts.nowSeconds)
    user.customClaims = MapValue(claims)
    return try accounts.mintIDToken(for: user)
  }

  func call(_ token: String?, _ method: String, _ path: String, _ body: String? = nil) throws -> TestServer.Response {
    try server.call(method, path, body, headers: token.map { [("Authorization", "Bearer \($0)")] } ?? [])
  }

  func get(_ path: String, _ token: String?) throws -> TestServer.Response { try call(token, "GET", path) }

  /// Sets a field of a document to a value in JSON, as an administrator. Returns the commit time.
  @discardableResult
  func set(_ path: String, _ field: String, _ value: String) throws -> String {
    let reply = try call(admin, "PATCH", "/" + path, #"{"fields": {"\#(field)": \#(value)}}"#)
    try #require(reply.status == 200, "\(reply.text)")
    return try #require(reply.json("updateTime") as String?)
  }
}

/// The lines that a server logs.
final class ReportedLines: Sendable {
  private let lines = Mutex<[String]>([])
  var all: [String] { lines.withLock { $0 } }
  func add(_ line: String) { lines.withLock { $0.append(line) } }
}
