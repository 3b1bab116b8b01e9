import Foundation
import Glibc
import Testing
import TestSupport

@testable import HearthCLI

/// Incremental backups whose process is killed.
@Suite(.needs(.hearth)) struct InterruptedBackupTests {
  private static let kills = 12
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private var data: String { directory.file("d") }
  private var place: String { directory.file("places") }

  private func run(_ words: String...) throws -> String {
    let result = try HearthBinary.run(words)
    #expect(result.exit == .code(0), "hearth \(words.joined(separator: " ")): \(result.output)")
    return result.output
  }

  private func write(_ client: TestHTTPClient, _ number: Int) throws {
    for part in 0..<20 {
      let reply = try client.send(
        "PATCH", "/v1/projects/demo/databases/(default)/documents/c/d\(part)",
        headers: [("Authorization", "Bearer owner")],
        body: Array(#"{"fields": {"n": {"integerValue": "\#(number)"}}}"#.utf8))
      try #require(reply.status == 200)
    }
    let file = try client.send(
      "POST", "/v0/b/b/o?name=f\(number)", headers: [("Authorization", "Bearer owner")],
      body: Array("content \(number)".utf8))
    try #require(file.status == 200)
  }

  /// Restores a backup and returns the numbers of its documents.
  private func restore(_ name: String) throws -> Set<Int> {
    let target = directory.file("r-\(UUID())")
    _ = try run("backups", "restore", place, target, "--name", name, "--quiet")
    _ = try run("check", target, "--quiet")
    let text = try run("export", "c", "--data", target, "--project", "demo", "--format", "ndjson")
    try FileManager.default.removeItem(atPath: target)
    return Set(text.matches(of: /"n": ?(\d+)/).compactMap { Int($0.1) })
  }

  /// The process of each second backup is killed, each time a little later. The chain before it stays, and the next
  /// backup continues it and removes what was left.
  @Test(.timeLimit(.minutes(10)), arguments: [true, false]) func aKilledBackupLosesNothing(hasLog: Bool) throws {
    let server = try HearthProcess(
      arguments: ["--emulator", "--data", data, "--project", "demo"], hasLog: hasLog)
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    try write(client, 0)
    _ = try run("backups", "create", place, "--data", data, "--quiet")
    let started = ContinuousClock.now
    try write(client, 1)
    _ = try run("backups", "create", place, "--data", data, "--incremental", "--quiet")
    let usual = ContinuousClock.now - started
    var expected: [String: Int] = [:]
    for (number, name) in try BackupFolder(place).names().enumerated() { expected[name.text] = number }
    try #require(expected.count == 2)
    var interrupted = 0
    for step in 0..<Self.kills {
      let number = 2 + 2 * step
      try write(client, number)
      let process = try HearthBinary.start(["backups", "create", place, "--data", data, "--incremental"])
      // From the first steps of the process to the end of a usual backup.
      _ = process.waitForExit(timeoutSeconds: usual / .seconds(1) * Double(step) / Double(Self.kills))
      process.send(signal: SIGKILL)
      _ = process.waitForExit(timeoutSeconds: 30)
      let names = try BackupFolder(place).names().map(\.text)
      let added = names.filter { expected[$0] == nil }
      #expect(added.count <= 1)
      if added.isEmpty { interrupted += 1 }
      for name in added { expected[name] = number }
      try write(client, number + 1)
      let next = try run("backups", "create", place, "--data", data, "--incremental")
      #expect(next.contains("stored the incremental backup"), "kill \(step): \(next)")
      let newest = try #require(try BackupFolder(place).names().last?.text)
      #expect(expected.updateValue(number + 1, forKey: newest) == nil)
      let left = try FileManager.default.contentsOfDirectory(atPath: place).filter { $0.hasSuffix(".part") }
      #expect(left.isEmpty, "kill \(step): \(left)")
    }
    #expect(interrupted >= 3, "most processes were killed before their end")
    for (name, number) in expected { #expect(try restore(name) == [number], "\(name)") }
  }
}
