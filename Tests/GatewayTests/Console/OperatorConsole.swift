import Accounts
import Foundation
import HearthServer
import Synchronization
import Testing
import TestSupport

/// A production server whose console has an address of its own, with the operators `viewer`, `editor` and `owner`, and
/// the requests that they send there.
final class OperatorConsole: Sendable {
  static let password = "correct horse battery"
  static let json = ("Content-Type", "application/json")

  let main: TestServer
  let port: UInt16

  init(change: (inout HearthConfiguration) -> Void = { _ in }) throws {
    let list = EventList()
    main = try TestServer(.production) { configuration in
      configuration.consoleAddress = .init(host: "127.0.0.1", port: 0)
      configuration.report = { list.add($0) }
      change(&configuration)
    }
    self.list = list
    let url = try #require(main.server.consoleURL)
    port = try #require(url.firstMatch(of: /:(\d+)\//).flatMap { UInt16($0.output.1) })
    for role in OperatorRole.allCases {
      try main.server.accounts.operators.add(role.rawValue, role: role, password: Self.password, work: .least)
    }
  }

  private final class EventList: Sendable {
    let texts = Mutex<[String]>([])
    func add(_ text: String) { texts.withLock { $0.append(text) } }
  }

  private let list: EventList

  /// The lines of the log so far.
  var log: [String] { list.texts.withLock { $0 } }

  /// Sends a request to the console, as its page does in a browser.
  func request(
    _ method: String, _ target: String, _ body: String? = nil, token: String? = nil,
    headers more: [(String, String)] = []
  ) throws -> TestServer.Response {
    var headers = more
    if !more.contains(where: { $0.0 == "Host" }) { headers.append(("Host", "127.0.0.1:\(port)")) }
    if let token { headers.append(("Authorization", "Bearer \(token)")) }
    if body != nil, !more.contains(where: { $0.0 == "Content-Type" }) { headers.append(Self.json) }
    return try main.request(method, target, body, headers: headers, port: port)
  }

  /// Sends a sign-in.
  func signIn(_ name: String, _ password: String = password, headers: [(String, String)] = []) throws
    -> TestServer.Response
  {
    try request("POST", "/hearth/v1/session", #"{"name": "\#(name)", "password": "\#(password)"}"#, headers: headers)
  }

  /// Signs an operator in, and returns the token.
  func token(_ name: String) throws -> String {
    let reply = try signIn(name)
    return try #require(reply.json("token"), "\(reply.text)")
  }
}
