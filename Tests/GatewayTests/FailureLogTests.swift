import Foundation
import Synchronization
import Testing

@testable import HearthServer
@testable import Transport

/// Faults of the server's own are told to its log, and only there.
@Suite struct FailureLogTests {
  private final class Lines: Sendable {
    let texts = Mutex<[String]>([])
  }

  @Test func faultsAreTold() throws {
    let path = NSTemporaryDirectory() + "failures-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let lines = Lines()
    let server = try TestServer(.emulator) {
      $0.storage = .directory(path)
      $0.warn = { line in lines.texts.withLock { $0.append(line) } }
    }
    #expect(try server.call("GET", "/c/none").status == 404)
    // A file where the directory was, as not even root is kept from an unreadable one.
    try FileManager.default.removeItem(atPath: path + "/databases")
    try Data().write(to: URL(fileURLWithPath: path + "/databases"))
    let target = "/v1/projects/other/databases/(default)/documents/c/d"
    let reply = try server.request("GET", target + "?key=secret#secret")
    #expect(reply.status == 500)
    #expect(!reply.text.contains(path), "\(reply.text)")
    let told = lines.texts.withLock { $0 }
    #expect(told.count == 1, "\(told)")
    #expect(told.first?.hasPrefix("GET \(target) failed with 500: ") ?? false, "\(told)")
    #expect(told.first?.contains(path) ?? false, "\(told)")
    #expect(told.first?.contains("secret") == false, "\(told)")
  }

  /// What ran out is told to clients, who can wait, and to who can do something about it.
  @Test func whatIsFullIsToldToBoth() throws {
    let lines = Lines()
    let server = try TestServer(.emulator) {
      $0.mapBytes = 1 << 20
      $0.warn = { line in lines.texts.withLock { $0.append(line) } }
    }
    let body = #"{"fields": {"text": {"stringValue": "\#(String(repeating: "x", count: 200_000))"}}}"#
    var reply = try server.call("POST", "/c", body)
    for _ in 0..<20 where reply.status == 200 { reply = try server.call("POST", "/c", body) }
    #expect(reply.status == 429 && reply.text.contains("RESOURCE_EXHAUSTED"), "\(reply.text)")
    let told = lines.texts.withLock { $0 }
    #expect(told.count == 1, "\(told)")
    #expect(told.first?.contains(" failed with 429: the database reached its map size of ") ?? false, "\(told)")
  }

  @Test func aFewASecondAreTold() {
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
        "GET /a b failed with 500: x (and 15 requests before that are not told)", "GET /a b failed with 500: x",
      ])
  }
}
