import Foundation
import HearthServer
import Testing
import TestSupport

@testable import HearthCLI

/// The output of a server that starts.
@Suite struct StartReportTests {
  private static func configuration(
    _ change: (inout HearthConfiguration) -> Void = { _ in }
  ) -> HearthConfiguration {
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.project = "shop"
    change(&configuration)
    return configuration
  }

  private static func report(_ change: (inout HearthConfiguration) -> Void = { _ in }) -> StartReport {
    let configuration = configuration(change)
    let hasConsole = configuration.mode == .emulator && configuration.hasConsole
    return StartReport(
      configuration, url: "http://127.0.0.1:8080",
      consoleURL: hasConsole ? "http://127.0.0.1:8080/_/console/#/?key=5f" : nil, now: 1_790_000_000_000_000)
  }

  @Test func fourLinesSayWhatTheServerIs() {
    let lines = Self.report {
      $0.tls = .init(certificate: "none", key: "none")
      $0.publicURL = "https://db.example.com"
    }.lines
    #expect(lines.map(\.title) == ["mode", "data", "rules", "address"])
    #expect(lines[0].text == "production: accepts signed tokens only")
    #expect(lines[1].text == "in memory, lost when the server stops; project shop")
    #expect(lines[2].text == "none: only administrators have access; files: none: only administrators")
    #expect(lines[3].text == "http://127.0.0.1:8080 (TLS), public https://db.example.com")
    let emulator = Self.report { $0.mode = .emulator }.lines
    #expect(emulator.map(\.isNotable) == [false, true, true, false, false])
    #expect(emulator[4].title == "console" && emulator[4].text == "http://127.0.0.1:8080/_/console/#/?key=5f")
    #expect(Self.report { ($0.mode, $0.hasConsole) = (.emulator, false) }.lines.count == 4)
    #expect(emulator[0].text.hasPrefix("emulator, for development and tests"))
    #expect(emulator[2].text == "none: every client may read and write all documents; files: none: only administrators")
  }

  @Test func mistakesAreWarnings() throws {
    let directory = try TemporaryDirectory()
    func rules(_ condition: String) throws -> String {
      try directory.write(
        "\(condition.hashValue).rules",
        """
        rules_version = '2';
        service cloud.firestore { match /databases/{d}/documents { match /{p=**} { allow read, write: if \(condition); } } }
        """)
    }
    let expired = try rules("request.time < timestamp.date(2021, 5, 16)")
    let open = try rules("true")
    #expect(Self.report().warnings.map(\.text) == ["no rules are set: every request of an app is denied"])
    #expect(Self.report { $0.rules = [.init(expired)] }.warnings.first?.text.contains("a date that has passed") == true)
    #expect(Self.report { $0.rules = [.init(open)] }.warnings.first?.text.contains("open to the world") == true)
    #expect(
      Self.report { ($0.rules, $0.host) = ([.init(expired)], "0.0.0.0") }.warnings.last?.text
        == "passwords and tokens are sent to 0.0.0.0 without TLS")
    // Emulators may be open, but expired rules deny everything there too.
    #expect(Self.report { $0.mode = .emulator }.warnings.isEmpty)
    #expect(Self.report { ($0.mode, $0.rules) = (.emulator, [.init(open)]) }.warnings.isEmpty)
    #expect(Self.report { ($0.mode, $0.rules) = (.emulator, [.init(expired)]) }.warnings.count == 1)
  }

  @Test(.needs(.hearth), arguments: [8, 12, 30]) func tooFewFilesAreAnError(count: Int) throws {
    let hearth = try #require(HearthBinary.path)
    let directory = try TemporaryDirectory()
    let data = directory.file("data")
    let tree = try directory.write("tree.json", #"{"$collections": ["notes"], "notes": {"a": {"n": 1}}}"#)
    #expect(try HearthBinary.run(["import", tree, "--data", data, "--project", "demo"]).exit == .code(0))
    for words in ["serve --emulator --in-memory --port 0", "get notes --data \(data) --project demo"] {
      let process = try ServerProcess(
        executable: "/bin/sh", arguments: ["-c", "ulimit -n \(count); exec \(hearth) \(words)"])
      let exit = process.waitForExit(timeoutSeconds: 30)
      if exit == nil { process.stop() }
      #expect(exit == .code(1) && process.output.contains("needs at least 64"), "\(words): \(process.output)")
    }
  }

  @Test(.needs(.hearth)) func productionNeedsAProject() throws {
    let directory = try TemporaryDirectory()
    let data = directory.file("data")
    for storage in [["--in-memory"], ["--data", data], ["--in-memory", "--import", "x.json"]] {
      let refused = try HearthBinary.run(["serve", "--port", "0"] + storage)
      #expect(refused.exit == .code(64) && refused.output.contains("--project ID, or \"project\" in hearth.json"))
      #expect(refused.output.contains("add --emulator"), "\(refused.output)")
    }
    // A directory with one project names it.
    let tree = try directory.write("tree.json", #"{"$collections": ["notes"], "notes": {"a": {"n": 1}}}"#)
    #expect(try HearthBinary.run(["import", tree, "--data", data, "--project", "shop"]).exit == .code(0))
    let server = try HearthProcess(arguments: ["--data", data])
    #expect(try HearthBinary.run(["get", "notes/a", "--data", data]).output.contains("\"n\": 1"))
    server.process.stop()
    #expect(try HearthBinary.run(["import", tree, "--data", data, "--project", "blog"]).exit == .code(0))
    let ambiguous = try HearthBinary.run(["serve", "--port", "0", "--data", data])
    #expect(ambiguous.exit == .code(64) && ambiguous.output.contains("contains blog, shop"), "\(ambiguous.output)")
    let other = try HearthProcess(arguments: ["--data", data, "--project", "forum"])
    defer { other.process.stop() }
    #expect(
      other.process.output.contains("the server serves project forum, but \(data) contains data of blog, shop"),
      "\(other.process.output)")
  }

  @Test(.needs(.hearth)) func aNewerDirectoryIsExplainedOnOneLine() throws {
    let directory = try TemporaryDirectory()
    try directory.write("FORMAT", "99\n")
    let refused = try HearthBinary.run(["serve", "--port", "0", "--project", "p", "--data", directory.path])
    #expect(refused.exit == .code(1) && refused.output.contains("has format 99, but this version"), "\(refused.output)")
  }

  @Test(.needs(.hearth), arguments: ["json", "text"]) func programsGetEvents(format: String) throws {
    let server = try HearthProcess(arguments: ["--in-memory", "--project", "shop", "--log", format])
    defer { server.process.stop() }
    let lines = server.process.output.split(separator: "\n").filter { !$0.hasPrefix("hearth: listening") }
    #expect(lines.count == 2, "\(server.process.output)")
    for part in ["server.listening", "production", "shop", "configuration.warning", "no rules are set"] {
      #expect(server.process.output.contains(part), "\(part)")
    }
    guard format == "json" else { return }
    for line in lines { _ = try JSONSerialization.jsonObject(with: Data(line.utf8)) }
  }

  @Test(.needs(.hearth)) func programsGetALineOfJSONInThePlainFormat() throws {
    let directory = try TemporaryDirectory()
    let data = directory.file("data")
    for quiet in [[], ["--quiet"]] as [[String]] {
      let server = try HearthProcess(arguments: ["--data", data, "--project", "shop"] + quiet)
      defer { server.process.stop() }
      let lines = server.process.output.split(separator: "\n").filter { $0.hasPrefix("{") }
      guard quiet.isEmpty else {
        #expect(lines.isEmpty, "\(server.process.output)")
        continue
      }
      let line = try #require(lines.first, "\(server.process.output)")
      let facts = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      #expect(facts["event"] as? String == "server.listening" && facts["mode"] as? String == "production")
      #expect(facts["data"] as? String == data && facts["project"] as? String == "shop")
      #expect(facts["rules"] as? String == "" && facts["url"] as? String == "http://127.0.0.1:\(server.port)")
      #expect(server.process.output.contains("\nhearth: listening on http://127.0.0.1:\(server.port)\n"))
    }
  }

  @Test(.needs(.hearth), .needs(.tool(.script))) func peopleGetLinesInColor() throws {
    let directory = try TemporaryDirectory()
    let path = try #require(HearthBinary.path)
    // script(1) gives the program a terminal. `timeout` ends the server.
    let command =
      "cd \(directory.path) && TERM=xterm NO_COLOR= timeout -s INT --foreground 8 \(path) serve --port 0 --project shop"
    let outcome = try Tool.script.run(["-qec", command, "/dev/null"], keepsInputOpen: true)
    let text = outcome.output
    #expect(text.contains("\u{1B}[1mmode\u{1B}[0m     production: accepts signed tokens only"), "\(text)")
    #expect(text.contains("./hearth-data, project shop"))
    #expect(text.contains("\u{1B}[33mwarning: \u{1B}[0mno rules are set: every request of an app is denied"))
    #expect(text.contains("hearth: listening on http://127.0.0.1:"))
  }
}
