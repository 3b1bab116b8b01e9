import Foundation
import Synchronization
import Testing
import TestSupport

@testable import HearthServer
@testable import Transport

/// The server logs its internal errors and does not show them to clients.
@Suite struct FailureLogTests {
  private final class Lines: Sendable {
    let texts = Mutex<[String]>([])
  }

  @Test func internalErrorsAreLogged() throws {
    let directory = try TemporaryDirectory()
    let path = directory.path
    let lines = Lines()
    let server = try TestServer(.emulator) {
      $0.storage = .directory(path)
      $0.warn = { line in lines.texts.withLock { $0.append(line) } }
    }
    #expect(try server.call("PATCH", "/c/d", "{}").status == 200)
    // Replaces the directory by a file: root can read a directory without permissions.
    try FileManager.default.removeItem(atPath: path + "/databases")
    try Data().write(to: URL(fileURLWithPath: path + "/databases"))
    let target = "/v1/projects/other/databases/(default)/documents/c/d"
    let reply = try server.request("PATCH", target + "?key=secret#secret", "{}")
    #expect(reply.status == 500)
    #expect(!reply.text.contains(path), "\(reply.text)")
    let logged = lines.texts.withLock { $0 }
    #expect(logged.count == 1, "\(logged)")
    #expect(logged.first?.hasPrefix("PATCH \(target) failed with 500: ") ?? false, "\(logged)")
    #expect(logged.first?.contains(path) ?? false, "\(logged)")
    #expect(logged.first?.contains("secret") == false, "\(logged)")
  }

  /// The client can wait until space is free, and the operator can add space, so both learn about a full database.
  @Test func fullDatabaseIsReportedToClientAndLog() throws {
    let lines = Lines()
    let server = try TestServer(.emulator) {
      $0.mapBytes = 1 << 20
      $0.warn = { line in lines.texts.withLock { $0.append(line) } }
    }
    let body = #"{"fields": {"text": {"stringValue": "\#(String(repeating: "x", count: 200_000))"}}}"#
    var reply = try server.call("POST", "/c", body)
    for _ in 0..<20 where reply.status == 200 { reply = try server.call("POST", "/c", body) }
    #expect(reply.status == 429 && reply.text.contains("RESOURCE_EXHAUSTED"), "\(reply.text)")
    let logged = lines.texts.withLock { $0 }
    #expect(logged.count == 1, "\(logged)")
    #expect(logged.first?.contains(" failed with 429: the database reached its map size of ") ?? false, "\(logged)")
  }

  @Test func logLimitsItsLinesPerSecond() {
    let second = Atomic(0)
    let lines = Lines()
    let log = FailureLog(seconds: { second.load(ordering: .relaxed) }) { line, _ in
      lines.texts.withLock { $0.append(line) }
    }
    let request = FailedRequest(method: .get, path: Array("/a\u{1B}b".utf8), status: 500, message: "x")
    for _ in 0..<25 { log.write(request) }
    #expect(lines.texts.withLock { $0 } == Array(repeating: "GET /a b failed with 500: x", count: FailureLog.loggedMax))
    second.store(1, ordering: .relaxed)
    log.write(request)
    log.write(request)
    #expect(
      lines.texts.withLock { $0.suffix(2) } == [
        "GET /a b failed with 500: x (15 earlier failures were not logged)", "GET /a b failed with 500: x",
      ])
  }
}
