import Foundation
import Testing
import TestSupport

/// `hearth watch` and `hearth listeners` against a running server.
@Suite(.needs(.hearth)) struct WatchTests {
  private final class Session {
    let server: HearthProcess
    init() throws {
      server = try HearthProcess(arguments: ["--emulator", "--in-memory", "--project", "demo", "--quiet"])
    }
    deinit { server.process.stop() }

    private var place: [String] { ["--server", "http://127.0.0.1:\(server.port)", "--project", "demo"] }

    @discardableResult
    func run(_ arguments: String...) throws -> (exit: ProcessExit?, output: String) {
      try HearthBinary.run(arguments + (arguments[0] == "listeners" ? Array(place.prefix(2)) : place))
    }

    func start(_ arguments: String...) throws -> ServerProcess { try HearthBinary.start(arguments + place) }
  }

  /// Waits until a program writes a line.
  private func wait(_ process: ServerProcess, for line: String) throws {
    _ = try process.waitForLine(prefix: line, timeoutSeconds: 30)
  }

  @Test func changesAreShownAsLines() throws {
    let session = try Session()
    try session.run("set", "users/ann", #"{"name": "Ann", "age": 37}"#)
    let watch = try session.start("watch", "users")
    defer { watch.stop() }
    try wait(watch, for: "+ users/ann")
    try session.run("update", "users/ann", "age=38", #"nick="An""#, "--remove", "name")
    try wait(watch, for: "~ users/ann")
    try session.run("set", "users/bob", #"{"since": {"$timestamp": "2025-03-27T14:30:00Z"}}"#)
    try wait(watch, for: "+ users/bob")
    try session.run("delete", "users/ann")
    try wait(watch, for: "- users/ann")
    #expect(
      watch.output == """
        + users/ann  {"age": 37, "name": "Ann"}
        ~ users/ann  age: 37 → 38, nick: An (new), name: (gone)
        + users/bob  {"since": {"$timestamp": "2025-03-27T14:30:00Z"}}
        - users/ann

        """)
  }

  @Test func limitedQueriesCanBeWatched() throws {
    let session = try Session()
    for (id, n) in [("a", 1), ("b", 2), ("c", 3)] { try session.run("set", "notes/\(id)", #"{"n": \#(n)}"#) }
    let watch = try session.start("watch", "notes", "--where", "n > 0", "--order", "n", "--limit", "2")
    defer { watch.stop() }
    try wait(watch, for: "+ notes/b")
    try session.run("update", "notes/a", "n=9")
    try wait(watch, for: "+ notes/c")
    try wait(watch, for: "- notes/a")
    #expect(!watch.output.contains("~"))
  }

  @Test func programsGetMessagesAndTokens() throws {
    let session = try Session()
    try session.run("set", "users/ann", #"{"name": "Ann"}"#)
    let first = try session.run("watch", "users", "--once", "--json")
    #expect(first.exit == .code(0))
    let messages = first.output.split(separator: "\n").compactMap { line in
      (try? JSONSerialization.jsonObject(with: Data(line.utf8))) as? [String: [String: Any]]
    }
    #expect(messages.contains { $0["documentChange"] != nil })
    let tokens = messages.compactMap { $0["targetChange"]?["resumeToken"] as? String }
    let token = try #require(tokens.last)
    #expect(try session.run("watch", "users", "--once", "--since", token).output.isEmpty)
    try session.run("update", "users/ann", "age=1")
    try session.run("set", "users/bob", "{}")
    #expect(
      try session.run("watch", "users", "--once", "--since", token).output == """
        ~ users/ann  {"age": 1, "name": "Ann"}
        + users/bob  {}

        """)
    // Watch one document, then with an invalid token.
    #expect(
      try session.run("watch", "users/ann", "--once", "--since", "AAAA").output
        == "+ users/ann  {\"age\": 1, \"name\": \"Ann\"}\n")
    #expect(try session.run("watch", "users/none", "--once").output == "- users/none\n")
  }

  @Test func everyChangeOfADatabaseIsShown() throws {
    let session = try Session()
    try session.run("set", "users/ann", #"{"n": 1}"#)
    let watch = try session.start("watch", "--all", "--json")
    defer { watch.stop() }
    try wait(watch, for: #"{"readTime""#)
    let lines = try session.start("watch", "--all")
    defer { lines.stop() }
    // The feed prints nothing at the start, so write until it shows a change.
    var number = 1
    while !lines.output.contains("~ users/ann  n: "), number < 200 {
      number += 1
      try session.run("update", "users/ann", "n=\(number)")
    }
    try session.run("delete", "users/ann")
    try wait(lines, for: "- users/ann")
    try wait(watch, for: #"{"commitTime""#)
    #expect(watch.output.contains(#""before":{"name":"projects/demo/databases/(default)/documents/users/ann""#))
  }

  @Test func listenersAreListed() throws {
    let session = try Session()
    #expect(try session.run("listeners").output == "no listeners\n")
    try session.run("set", "users/ann", #"{"n": 1}"#)
    let watch = try session.start("watch", "users")
    defer { watch.stop() }
    try wait(watch, for: "+ users/ann")
    let table = try session.run("listeners").output.split(separator: "\n")
    #expect(table.count == 2, "\(table)")
    #expect(table.first?.hasPrefix("database") == true)
    #expect(table.last?.contains("demo/(default)") == true && table.last?.contains("users") == true, "\(table)")
    let json = try session.run("listeners", "--json").output
    let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: [[String: Any]]]
    #expect(object?["listeners"]?.first?["database"] as? String == "(default)")
  }

  @Test(arguments: [
    (["watch"], 64, "give the path of a document or a collection"),
    (["watch", "--all", "users"], 64, "'--all' shows every change"),
    (["watch", "users/ann", "--limit", "3"], 64, "works with collections only"),
    (["watch", "users", "--where", "n ~ 3"], 64, "expected an operator"),
  ]) func mistakesAreExplained(arguments: [String], code: Int, text: String) throws {
    let run = try HearthBinary.run(arguments)
    #expect(run.exit == .code(Int32(code)), "\(run.output)")
    #expect(run.output.contains(text), "\(run.output)")
  }

  @Test func aMissingServerIsReportedAtOnce() throws {
    let run = try HearthBinary.run(["watch", "users", "--server", "http://127.0.0.1:1"])
    #expect(run.exit == .code(1))
    #expect(run.output.contains("no Hearth server responds"))
  }
}
