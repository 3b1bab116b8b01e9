import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// Verbs that call a running server, run as commands.
@Suite(.needs(.hearth)) struct ServerTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// A server and the verbs that call it. The server stops when the session is released.
  private final class Session {
    let server: HearthProcess
    init(_ arguments: [String] = ["--in-memory"]) throws {
      server = try HearthProcess(arguments: ["--emulator", "--project", "demo"] + arguments)
    }
    deinit { server.process.stop() }

    func run(_ arguments: String...) throws -> (exit: ProcessExit?, output: String) {
      try HearthBinary.run(arguments + ["--server", "http://127.0.0.1:\(server.port)", "--project", "demo"])
    }
  }

  @Test func documentsAreWrittenReadChangedAndDeleted() throws {
    let session = try Session()
    let set = try session.run("set", "users/Zoë", #"{"name": "Zoë", "at": {"$timestamp": "2025-03-27T14:30:00Z"}}"#)
    #expect(set.exit == .code(0), "\(set.output)")
    #expect(try session.run("update", "users/Zoë", "a.b=1", #"`x y`="z""#, "--remove", "name").exit == .code(0))
    let get = try session.run("get", "users/Zoë")
    #expect(get.output.hasPrefix("users/Zoë  (updated 2"))
    #expect(get.output.hasSuffix(#"{"a": {"b": 1}, "at": {"$timestamp": "2025-03-27T14:30:00Z"}, "x y": "z"}"# + "\n"))
    let json = try session.run("get", "/users/Zoë/", "--json").output
    let object = try #require(try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any])
    #expect(object["name"] as? String == "projects/demo/databases/(default)/documents/users/Zoë")
    #expect((object["fields"] as? [String: Any])?.keys.sorted() == ["a", "at", "x y"])
    #expect(try session.run("get").output == "users\n")
    #expect(try session.run("delete", "users/Zoë").exit == .code(0))
    let gone = try session.run("get", "users/Zoë")
    #expect(gone.exit == .code(1))
    #expect(gone.output.contains("document users/Zoë does not exist"))
    #expect(try session.run("get", "users", "--json").output.isEmpty)
    let update = try session.run("update", "users/Zoë", "a=1")
    #expect(update.exit == .code(1))
    #expect(update.output.contains("404 NOT_FOUND"), "\(update.output)")
  }

  @Test func aServerRaisesItsLimitOfOpenFiles() throws {
    let session = try Session()
    let limits = try String(contentsOfFile: "/proc/\(session.server.process.processID)/limits", encoding: .utf8)
    let line = try #require(limits.split(separator: "\n").first { $0.hasPrefix("Max open files") })
    let numbers = line.split(separator: " ").compactMap { Int($0) }
    #expect(numbers.count == 2 && numbers.first == numbers.last, "\(line)")
  }

  @Test func collectionsAreListedPageByPage() throws {
    let lines = (0..<700).map { #"{"path": "items/\#(1000 + $0)", "fields": {"n": \#($0)}}"# }
    let session = try Session([
      "--in-memory", "--import", try directory.write("i.ndjson", lines.joined(separator: "\n")),
    ])
    let all = try session.run("get", "items", "--limit", "1000").output.split(separator: "\n")
    #expect(all.count == 700)
    #expect(all.last == #"1699  {"n": 699}"#)
    #expect(try session.run("get", "items", "--limit", "301").output.split(separator: "\n").count == 301)
    #expect(try session.run("get", "items").output.split(separator: "\n").count == 100)
    // The JSON lines can be imported.
    let text = try session.run("get", "items", "--limit", "1000", "--json").output
    let copy = try directory.write("copy.ndjson", text)
    let imported = try HearthBinary.run(["import", copy, "--data", directory.file("d"), "--project", "demo"])
    #expect(imported.output == "imported 700 documents\n")
  }

  @Test func everythingBelowAPathIsDeleted() throws {
    let session = try Session(["--in-memory", "--import", Fixtures.path("well-meing")])
    let before = try session.run("export", "--output", directory.file("1.json"))
    #expect(before.exit == .code(0), "\(before.output)")
    let imported = try session.run("import", directory.file("1.json")).output.split(separator: " ")
    let total = try #require(imported.count > 3 ? Int(imported[1]) : nil)
    #expect(imported[3] == "(\(total)", "\(imported)")
    let user = try session.run("delete", "users/user-id-123456", "--recursive").output.split(separator: " ")
    let deleted = try #require(user.count > 1 ? Int(user[1]) : nil)
    #expect(deleted > 1 && deleted < total)
    #expect(try session.run("delete", "users", "--recursive", "--yes").output.hasPrefix("deleted \(total - deleted) "))
    #expect(try session.run("get").output == "no collections in projects/demo/databases/(default)\n")
    let stats = try session.run("stats").output.split(separator: "\n").map { $0.split(separator: " ") }
    #expect(stats.count == 3 && stats[1][0] == "demo/(default)" && stats[1][1] == "0", "\(stats)")
    #expect(stats.last?.prefix(4) == ["accounts", "of", "demo:", "0"], "\(stats)")
    #expect(try session.run("import", directory.file("1.json")).output == "imported \(total) documents\n")
    #expect(try session.run("export", "--output", directory.file("2.json")).exit == .code(0))
    #expect(try directory.text("1.json") == directory.text("2.json"))
  }

  @Test func aDirectoryHasOneServerAndKeepsItsData() throws {
    let data = ["--data", directory.file("d"), "--import", Fixtures.path("fit-care")]
    var session: Session? = try Session(data)
    #expect(try session?.run("set", "notes/1", "{}").exit == .code(0))
    let second = try HearthBinary.run(["serve", "--emulator", "--port", "0"] + data)
    #expect(second.exit == .code(1))
    #expect(second.output.contains("is in use by hearth, process"), "\(second.output)")
    let direct = try HearthBinary.run(["import", Fixtures.path("fit-care"), "--data", directory.file("d")])
    // The server that uses the directory imports.
    #expect(direct.exit == .code(0), "\(direct.output)")
    #expect(session?.server.process.stop() == .code(0))
    session = try Session(["--data", directory.file("d")])
    #expect(try session?.run("get", "notes/1").exit == .code(0))
    session = nil
    #expect(try HearthBinary.run(["check", directory.file("d")]).exit == .code(0))
  }

  @Test func backupsUnderLoadAreConsistent() throws {
    let lines = (0..<8000).map { #"{"path": "load/\#($0)", "fields": {"n": \#($0), "t": ["a", "b\#($0)"]}}"# }
    let file = try directory.write("load.ndjson", lines.joined(separator: "\n"))
    let session = try Session(["--data", directory.file("d")])
    #expect(try session.run("set", "load/first", "{}").exit == .code(0))
    let load = try HearthBinary.start(
      ["import", file, "--server", "http://127.0.0.1:\(session.server.port)", "--project", "demo"])
    defer { load.stop() }
    for number in 0..<3 {
      let name = "b\(number)"
      let backup = try HearthBinary.run(["backup", directory.file(name), "--data", directory.file("d")])
      #expect(backup.exit == .code(0), "\(backup.output)")
      let check = try HearthBinary.run(["check", directory.file(name)])
      #expect(check.exit == .code(0), "\(check.output)")
    }
    #expect(load.waitForExit(timeoutSeconds: 60) == .code(0), "\(load.output)")
    let export = ["export", "load/first", "--project", "demo", "--data"]
    #expect(try HearthBinary.run(export + [directory.file("b0")]).output.contains(#""first": {}"#))
  }

  @Test func helpIsAligned() throws {
    let overview = HelpText.overview.split(separator: "\n").filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") }
    #expect(overview.count > 20)
    let columns = overview.map { line in
      line.range(of: "  [A-Z]", options: .regularExpression).map {
        line.distance(from: line.startIndex, to: $0.lowerBound)
      }
    }
    #expect(Set(columns).count == 1, "\(HelpText.overview)")
    // The words after the dashes belong to the command.
    #expect(HelpText.text(of: .exec).contains("Usage: hearth exec [OPTIONS] -- COMMAND [ARGUMENT] …\n"))
  }

  @Test(
    arguments: [
      (["sevre"], "did you mean 'serve'?"), (["lst"], "unknown verb 'lst'; did you mean 'ls'?\nSee `hearth help`."),
      (["xyzzy"], "unknown verb 'xyzzy'\nSee `hearth help`."), (["rm", "a/b"], "did you mean 'delete'?"),
      (["--color", "red", "get"], "must be never, auto or always"), (["get", "--color"], "--color never|auto|always"),
      (["get", "--prt", "1"], "did you mean '--project'?"),
      (["set"], "the operands are missing: PATH (JSON | FIELD=VALUE …)"),
      (["serve", "--prot", "1"], "did you mean '--port'?"),
      (["serve", "--port", "x"], "must be a whole number"),
      (["serve", "--data", "d", "--in-memory"], "exclude each other"), (["get", "a", "b"], "unexpected 'b'"),
      (["get", "a//b"], "is not a valid path"), (["set", "a", "{}"], "is a collection"),
      (["delete", "a"], "--recursive"),
      (["import"], "an operand is missing: (FILE | DIR)…"), (["help", "nothing"], "unknown verb"),
      ([], "Usage: hearth VERB"),
    ] as [([String], String)])
  func badUsageIsExplained(arguments: [String], hint: String) throws {
    let result = try HearthBinary.run(arguments)
    #expect(result.exit == .code(64))
    #expect(result.output.contains(hint), "\(result.output)")
  }

  @Test func failuresHaveTheirCodes() throws {
    let nobody = try HearthBinary.run(["get", "a/b", "--server", "http://127.0.0.1:1"])
    #expect(nobody.exit == .code(1))
    #expect(nobody.output.contains("start one with `hearth serve`"))
    let json = try HearthBinary.run(["set", "a/b", #"{"x": }"#])
    #expect(json.exit == .code(65))
    #expect(json.output.contains("the fields:1:7"), "\(json.output)")
    let bad = try directory.write("bad.json", "{\n\"$collections\": [\"a\"],\n\"a\": 1}")
    let serve = try HearthBinary.run(["serve", "--emulator", "--port", "0", "--import", bad])
    #expect(serve.exit == .code(65))
    #expect(serve.output.contains("bad.json:3:") && !serve.output.contains("listening"), "\(serve.output)")
    let remote = try HearthBinary.run(["serve", "--emulator", "--port", "0", "--host", "0.0.0.0"])
    #expect(remote.exit == .code(1))
    #expect(remote.output.contains("--allow-remote-emulator"))
    for word in ["--version", "-v", "-V", "version"] {
      #expect(try HearthBinary.run([word]).output.hasPrefix("hearth "), "\(word)")
    }
    #expect(try HearthBinary.run(["import", "--help"]).exit == .code(0))
  }
}
