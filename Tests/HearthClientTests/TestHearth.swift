import Foundation
import HearthServer
import TestSupport
import Testing

@testable import HearthClient

/// A server in this process, and clients of it.
final class TestHearth: Sendable {
  let server: Server
  let url: String
  private let directory: TemporaryDirectory

  /// Starts a server in emulator mode.
  /// - Parameter rules: security rules; without them everybody may do everything.
  init(rules: String? = nil, storageRules: String? = nil, change: (inout HearthConfiguration) -> Void = { _ in }) throws {
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

/// A client that reaches no server, for what needs none.
func detachedClient() -> Hearth {
  Hearth(transport: ScriptedTransport { _ in throw HearthClientError(.network, "nowhere") }, project: "demo")
}

/// A transport whose answers a test makes up.
struct ScriptedTransport: HearthTransport {
  let answer: @Sendable (HearthRequest) async throws -> HearthResponse

  init(_ answer: @escaping @Sendable (HearthRequest) async throws -> HearthResponse) { self.answer = answer }

  func send(_ request: HearthRequest) async throws -> HearthResponse { try await answer(request) }
  func open(_ request: HearthRequest) async throws -> HearthStream { throw HearthClientError(.network, "no streams") }
}

/// Waits until something holds, for a minute at most.
/// - Returns: whether it does.
func eventually(_ condition: () -> Bool) async -> Bool {
  for _ in 0..<6000 where !condition() { try? await Task.sleep(for: .milliseconds(10)) }
  return condition()
}
