import Foundation
import Testing
import TestSupport

/// `hearth export --server`: over several connections, at one moment, and after interruptions.
@Suite(.needs(.hearth)) struct ServerExportTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func succeed(_ words: [String]) throws -> String {
    let (exit, output) = try HearthBinary.run(words, timeoutSeconds: 120)
    #expect(exit == .code(0), "hearth \(words.joined(separator: " ")): \(output)")
    return output
  }

  /// A server in emulator mode with the documents of files, and the text that an export of them must contain.
  private func serve(_ files: [String]) throws -> (server: HearthProcess, expected: String) {
    let data = directory.file("data-\(UUID().uuidString)")
    _ = try succeed(["import"] + files + ["--data", data, "--project", "demo"])
    let expected = directory.file("expected.json")
    _ = try succeed(["export", "--data", data, "--project", "demo", "--output", expected])
    let server = try HearthProcess(arguments: ["--emulator", "--data", data, "--project", "demo"])
    return (server, try directory.text("expected.json"))
  }

  private func export(_ port: UInt16, _ words: [String]) -> [String] {
    ["export", "--server", "http://127.0.0.1:\(port)", "--project", "demo"] + words
  }

  /// Writes documents in two collections, one of them below documents that do not exist.
  private func manyDocuments(_ count: Int) throws -> String {
    var text = #"{"$collections": ["items", "rooms", "rooms/*/notes"]"# + ",\n\"items\": {"
    text += (0..<count).map { "\"i\($0)\": {\"n\": \($0), \"text\": \"\(String(repeating: "x", count: 80))\"}" }
      .joined(separator: ",\n")
    text += "}, \"rooms\": {"
    text += (0..<count / 10).map { "\"r\($0)\": {\"$missing\": true, \"notes\": {\"a\": {\"n\": \($0)}}}" }
      .joined(separator: ",\n")
    return try directory.write("many.json", text + "}}")
  }

  @Test(arguments: Fixtures.names)
  func anExportFromAServerEqualsOneFromItsDirectory(name: String) throws {
    let (server, expected) = try serve([Fixtures.path(name)])
    defer { server.process.stop() }
    for connections in ["1", "7"] {
      let file = directory.file("\(connections).json")
      _ = try succeed(export(server.port, ["--connections", connections, "--output", file]))
      #expect(try directory.text("\(connections).json") == expected)
    }
    #expect(try succeed(export(server.port, ["--quiet"])) == expected)
    #expect(try directory.fileNames.filter { $0.hasSuffix(".parts") }.isEmpty)
  }

  @Test func nothingIsLeftIfTheServerIsDown() throws {
    let run = try HearthBinary.run(export(1, ["--output", directory.file("all.json")]), timeoutSeconds: 120)
    #expect(run.exit == .code(1) && run.output.contains("no Hearth server responds"), "\(run.output)")
    #expect(try directory.fileNames == [])
  }

  @Test func whatAKilledProcessLeftIsRemoved() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    for name in ["all.json.4194303.part", "all.json.x.part", "other.json.4194303.part"] {
      _ = try directory.write(name, "left")
    }
    _ = try succeed(export(server.port, ["--output", directory.file("all.json")]))
    #expect(try directory.fileNames.sorted() == ["all.json", "all.json.x.part", "other.json.4194303.part"])
    // A process that writes holds a lock.
    let locked = try directory.write("all.json.4194302.part", "in use")
    let holder = open(locked, O_RDONLY)
    defer { close(holder) }
    #expect(flock(holder, LOCK_EX) == 0)
    _ = try succeed(export(server.port, ["--output", directory.file("all.json")]))
    #expect(try directory.text("all.json.4194302.part") == "in use")
  }

  @Test func documentsBelowMissingOnesAreExported() throws {
    let (server, expected) = try serve([manyDocuments(3000)])
    defer { server.process.stop() }
    let file = directory.file("all.json")
    _ = try succeed(export(server.port, ["--output", file]))
    #expect(try directory.text("all.json") == expected)
  }

  @Test func aPathLimitsTheExport() throws {
    let files = try directory.write(
      "tree.json",
      #"{"$collections": ["a", "a/*/b", "ab"], "a": {"x": {"n": 1, "b": {"y": {"n": 2}}}, "z": {"$missing": true, "#
        + #""b": {"y": {}}}}, "ab": {"x": {}}}"#)
    let data = directory.file("data")
    _ = try succeed(["import", files, "--data", data, "--project", "demo"])
    let paths = ["a", "a/x", "a/z", "a/x/b", "a/x/b/y", "ab"]
    let expected = try paths.map { try succeed(["export", $0, "--data", data, "--project", "demo"]) }
    let server = try HearthProcess(arguments: ["--emulator", "--data", data, "--project", "demo"])
    defer { server.process.stop() }
    for (path, text) in zip(paths, expected) {
      #expect(try succeed(export(server.port, [path])) == text, "\(path)")
    }
    for path in ["none", "none/x"] {
      for arguments in [["export", path, "--data", data, "--project", "demo"], export(server.port, [path])] {
        let (exit, output) = try HearthBinary.run(arguments)
        #expect(exit == .code(1) && output.contains("no documents at or below \(path)"), "\(output)")
      }
    }
  }

  @Test func anExportShowsTheChosenMoment() throws {
    let server = try HearthProcess.inMemory()
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    let documents = "/v1/projects/demo/databases/(default)/documents"
    func set(_ n: Int) throws -> String {
      let response = try client.send(
        "PATCH", "\(documents)/a/b", headers: [("Authorization", "Bearer owner")],
        body: Array(#"{"fields": {"n": {"integerValue": "\#(n)"}}}"#.utf8))
      let node = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
      return try #require(node?["updateTime"] as? String)
    }
    let moment = try set(1)
    _ = try set(2)
    #expect(try succeed(export(server.port, ["--read-time", moment])).contains(#""b": {"n": 1}"#))
    for words in [[], ["--read-time", "none"]] {
      #expect(try succeed(export(server.port, words)).contains(#""b": {"n": 2}"#))
    }
    let wrong = try HearthBinary.run(export(server.port, ["--read-time", "yesterday"]))
    #expect(wrong.exit == .code(64) && wrong.output.contains("must be a time such as"), "\(wrong.output)")
    let old = try HearthBinary.run(export(server.port, ["--read-time", "2001-01-01T00:00:00Z"]))
    #expect(old.exit == .code(1), "\(old.output)")
  }

  @Test func temporaryFailuresAreRepeated() throws {
    let (server, expected) = try serve([manyDocuments(3000)])
    defer { server.process.stop() }
    // The first connection plans, the others copy.
    let proxy = try CuttingProxy(to: server.port, [.pass, .cut(down: 100_000), .answer(429), .cut(down: 200_000)])
    let file = directory.file("all.json")
    _ = try succeed(export(proxy.port, ["--output", file, "--connections", "1"]))
    #expect(proxy.isThrough)
    #expect(try directory.text("all.json") == expected)
  }

  @Test func anInterruptedExportContinues() throws {
    let (server, expected) = try serve([manyDocuments(3000)])
    defer { server.process.stop() }
    let proxy = try CuttingProxy(to: server.port, [.pass, .cut(down: 400_000), .answer(403)])
    let file = directory.file("all.json")
    let command = export(proxy.port, ["--output", file, "--connections", "1"])
    let broken = try HearthBinary.run(command, timeoutSeconds: 60)
    #expect(broken.exit == .code(1) && broken.output.contains("the same command continues there"), "\(broken.output)")
    #expect(try !directory.fileNames.contains("all.json"))
    let other = try HearthBinary.run(export(server.port, ["--output", file]))
    #expect(other.exit == .code(1) && other.output.contains("contains an unfinished export"), "\(other.output)")
    let before = proxy.downBytes
    #expect(try succeed(command).contains("continuing the export in \(file).parts"))
    #expect(try directory.text("all.json") == expected)
    #expect(try !directory.fileNames.contains("all.json.parts"))
    // The second run does not request the documents of the first one again.
    let whole = directory.file("whole.json")
    let total = proxy.downBytes - before
    let start = proxy.downBytes
    _ = try succeed(export(proxy.port, ["--output", whole, "--connections", "1"]))
    #expect(total < proxy.downBytes - start - 200_000, "\(total) of \(proxy.downBytes - start) bytes")
  }

  @Test func aKilledExportContinues() throws {
    let (server, expected) = try serve([manyDocuments(20_000)])
    defer { server.process.stop() }
    let file = directory.file("all.json")
    let command = export(server.port, ["--output", file, "--connections", "2"])
    let process = try HearthBinary.start(command)
    // Kill the export after its first block is on the disk.
    let hasBegun = OtherProcess.eventually {
      let parts = (try? FileManager.default.contentsOfDirectory(atPath: "\(file).parts")) ?? []
      return parts.contains { name in
        let size = try? FileManager.default.attributesOfItem(atPath: "\(file).parts/\(name)")[.size] as? Int
        return name.hasSuffix(".part") && (size ?? 0) > 1000
      }
    }
    #expect(hasBegun)
    process.send(signal: SIGKILL)
    _ = process.waitForExit(timeoutSeconds: 30)
    _ = try succeed(command)
    #expect(try directory.text("all.json") == expected)
  }

  @Test func aDamagedPlanIsExplained() throws {
    let (server, _) = try serve([Fixtures.path("journeys")])
    defer { server.process.stop() }
    let file = directory.file("all.json")
    try FileManager.default.createDirectory(atPath: "\(file).parts", withIntermediateDirectories: false)
    try directory.write("all.json.parts/plan.json", "{")
    let damaged = try HearthBinary.run(export(server.port, ["--output", file]))
    #expect(damaged.exit == .code(65) && damaged.output.contains("plan.json is damaged"), "\(damaged.output)")
  }

  @Test(.needs(.emulator)) func theOfficialEmulatorIsExported() throws {
    let emulator = try EmulatorProcess()
    defer { emulator.process.stop() }
    let (server, expected) = try serve([Fixtures.path("journeys"), manyDocuments(300)])
    server.process.stop()
    let source = try directory.write("source.json", expected)
    _ = try succeed(["import", source, "--server", "http://127.0.0.1:\(emulator.port)", "--project", "demo"])
    for connections in ["1", "4"] {
      #expect(try succeed(export(emulator.port, ["--quiet", "--connections", connections])) == expected)
    }
  }
}
