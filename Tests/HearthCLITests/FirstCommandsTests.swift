import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// The commands that a person types first, and the responses of the program.
@Suite(.needs(.hearth)) struct FirstCommandsTests {
  @Test func barewordsAndDatesAreValues() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory", "--quiet"])
    defer { server.process.stop() }
    func run(_ words: String...) throws -> (exit: ProcessExit?, output: String) {
      try HearthBinary.run(words + ["--server", "http://127.0.0.1:\(server.port)"])
    }
    let set = try run("set", "users/ann", "name=Ann Lee", "age=37", "since=2025-01-01", "tags=[a, b]")
    #expect(set.exit == .code(0), "\(set.output)")
    for part in [#""name": "Ann Lee""#, #""age": 37"#, #"{"$timestamp": "2025-01-01T00:00:00Z"}"#, #"["a", "b"]"#] {
      #expect(set.output.contains(part), "\(set.output)")
    }
    let update = try run("update", "users/ann", "name=Bob", "address.city=New York")
    #expect(
      update.output.contains(#""name": "Bob""#) && update.output.contains(#""city": "New York""#), "\(update.output)")
    #expect(
      try run("query", "users", "--where", "name == Bob and since == 2025-01-01").output.hasSuffix("1 document\n"))
    let wrong = try run("update", "users/ann", "zip=00123")
    #expect(wrong.exit == .code(64) && wrong.output.contains(#"write 'zip="00123"'"#), "\(wrong.output)")
    let added = try run("add", "users", "name=Zoe")
    #expect(added.exit == .code(0) && added.output.contains(#"{"name": "Zoe"}"#), "\(added.output)")
    let id = try #require(added.output.split(separator: " ").first?.split(separator: "/").last)
    #expect(id.count == 20, "\(added.output)")
    #expect(try run("add", "users/ann", "a=1").exit == .code(64))
    #expect(try run("ls").output == "users\n")
    #expect(try run("list", "users", "--json").output.split(separator: "\n").count == 2)
  }

  @Test func emptyResultsSaySo() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory", "--quiet"])
    defer { server.process.stop() }
    func run(_ words: String...) throws -> (exit: ProcessExit?, output: String) {
      try HearthBinary.run(words + ["--server", "http://127.0.0.1:\(server.port)"])
    }
    for (words, text) in [
      (["get"], "no collections in projects/demo/databases/(default)\n"),
      (["get", "nosuch"], "no documents in nosuch\n"),
      (["accounts", "list"], "no accounts in project demo\n"), (["query", "nosuch"], "no documents\n"),
    ] {
      let result = try HearthBinary.run(words + ["--server", "http://127.0.0.1:\(server.port)"])
      #expect(result.exit == .code(0) && result.output == text, "\(words): \(result.output)")
      let json = try HearthBinary.run(words + ["--json", "--server", "http://127.0.0.1:\(server.port)"])
      let empty = words == ["get"] ? "{\"collectionIds\":[]}\n" : ""
      #expect(json.exit == .code(0) && json.output == empty, "\(words): \(json.output)")
    }
    #expect(try run("get", "nosuch/x").exit == .code(1))
    let created = try run("accounts", "create", "--email", "ann@example.com", "--password", "secret1")
    #expect(created.exit == .code(0), "\(created.output)")
    let list = try run("accounts", "list", "--json")
    #expect(list.output.contains("ann@example.com") && !list.output.contains("passwordHash"), "\(list.output)")
  }

  @Test func colorsCanBeChosen() throws {
    let directory = try TemporaryDirectory()
    let rules = try directory.write(
      "a.rules", "service cloud.firestore {\n  match /databases/{d}/documents/a/{b} { allow raed, write; }\n}\n")
    let plain = try HearthBinary.run(["rules", "check", rules])
    #expect(plain.exit == .code(0) && !plain.output.contains("\u{1B}"), "\(plain.output)")
    for words in [["--color", "always", "rules", "check", rules], ["rules", "check", rules, "--color=always"]] {
      let colored = try HearthBinary.run(words)
      #expect(colored.output.contains("\u{1B}[33mwarning:\u{1B}[0m"), "\(colored.output)")
      #expect(colored.output.contains("\u{1B}[36mlint:\u{1B}[0m"), "\(colored.output)")
      #expect(colored.output.replacing(#/\u{1B}\[\d*m/#, with: "") == plain.output, "\(colored.output)")
    }
    #expect(try HearthBinary.run(["rules", "check", rules, "--color", "never"]).output == plain.output)
    // The words after `--` belong to another program.
    var words = ["exec", "--", "tool", "--color", "red"]
    #expect(try ColorChoice.extract(from: &words) == nil)
    #expect(words.count == 5)
  }

  @Test func strictChecksFailWithWarnings() throws {
    let directory = try TemporaryDirectory()
    let head = "rules_version = '2';\nservice cloud.firestore { match /databases/{d}/documents/{p=**} {\n"
    let expired = try directory.write(
      "expired.rules", head + "allow read, write: if request.time < timestamp.date(2021, 5, 16); } }\n")
    let open = try directory.write("open.rules", head + "allow read, write: if true; } }\n")
    let wrong = try directory.write("wrong.rules", head + "allow read: if a &&;\nallow write: if (b; } }\n")
    let found = try HearthBinary.run(["rules", "check", expired])
    #expect(found.exit == .code(0) && found.output.contains("it is false since 2021-05-16"), "\(found.output)")
    #expect(found.output.hasSuffix("expired.rules: 1 warning\n"), "\(found.output)")
    #expect(try HearthBinary.run(["rules", "check", "--strict", expired]).exit == .code(65))
    // Lint is advice.
    #expect(try HearthBinary.run(["rules", "check", "--strict", open]).exit == .code(0))
    let errors = try HearthBinary.run(["rules", "check", wrong])
    #expect(errors.exit == .code(65) && errors.output.hasSuffix("wrong.rules: 2 errors\n"), "\(errors.output)")
  }

  @Test func emptyConfigurationFilesSetNothing() throws {
    let run = try HearthBinary.run(["serve", "--config", "/dev/null", "--print-config"])
    #expect(run.exit == .code(0) && run.output.contains("\"port\": 8080"), "\(run.output)")
  }

  @Test func countsHaveTheirNouns() {
    #expect([0, 1, 2].map { CountText.of($0, "document") } == ["0 documents", "1 document", "2 documents"])
    #expect(CountText.of(2, "index entry", "index entries") == "2 index entries")
    #expect(CountText.grouped(12_000, "row") == "12,000 rows")
  }
}
