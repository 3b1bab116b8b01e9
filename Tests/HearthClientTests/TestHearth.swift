import Foundation
import HearthServer
import Testing
import TestSupport

@testable import HearthClient

/// A server in this process. Creates clients for it.
final class TestHearth: Sendable {
  let server: Server
  let url: String
  private let directory: TemporaryDirectory

  /// Starts a server in emulator mode.
  /// - Parameter rules: security rules. Without them, every request is allowed.
  init(rules: String? = nil, storageRules: String? = nil, change: (inout HearthConfiguration) -> Void = { _ in }) throws
  {
    directory = try TemporaryDirectory()
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.port = 0
    configuration.mode = .emulator
    configuration.project = "demo"
    configuration.mapBytes = 1 << 30
    configuration.stopGraceSeconds = 1
    if let rules {
      let path = directory.path + "/firestore.rules"
      try rules.write(toFile: path, atomically: true, encoding: .utf8)
      configuration.rules = [.init(path)]
    }
    if let storageRules {
      let path = directory.path + "/storage.rules"
      try storageRules.write(toFile: path, atomically: true, encoding: .utf8)
      configuration.storageRules = path
    }
    change(&configuration)
    server = try Server(configuration)
    url = try server.start()
  }

  deinit { server.stop() }

  var port: Int { Int(url.split(separator: ":").last ?? "") ?? 0 }

  func client(_ credentials: Hearth.Credentials = .signedIn) throws -> Hearth {
    Hearth(url: try #require(URL(string: url)), project: "demo", credentials: credentials)
  }
}

/// Returns a client that reaches no server.
func detachedClient() -> Hearth {
  Hearth(transport: ScriptedTransport { _ in throw HearthClientError(.network, "nowhere") }, project: "demo")
}

/// A transport with responses from a closure.
struct ScriptedTransport: HearthTransport {
  let respond: @Sendable (HearthRequest) async throws -> HearthResponse

  init(_ respond: @escaping @Sendable (HearthRequest) async throws -> HearthResponse) { self.respond = respond }

  func send(_ request: HearthRequest) async throws -> HearthResponse { try await respond(request) }
  func open(_ request: HearthRequest) async throws -> HearthStream { throw HearthClientError(.network, "no streams") }
}
