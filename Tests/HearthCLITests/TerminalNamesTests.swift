import Foundation
import Testing
import TestSupport

/// Names and values of other users do not control the terminal that shows them.
@Suite(.needs(.hearth)) struct TerminalNamesTests {
  private static let collection = "c\u{1B}[31mred\u{9B}7m"
  private static let document = "\(collection)/d\u{1B}[32mgreen\u{61C}"
  private static let value = "v\u{1B}]0;title\u{7}\u{9B}7m\u{202E}"
  /// The value as JSON.
  private static let json = #""v\u001b]0;title\u0007\u009b7m\u202e""#

  /// The verbs to run, in order: those that delete are last.
  private static let verbs: [[String]] = [
    ["get"], ["get", collection], ["get", document], ["get", "\(document)\u{1B}[7m"], ["get", "\(document)/none"],
    ["set", document, #"{"t": "a", "n": 1}"#], ["update", document, "t=\(json)"],
    ["update", "\(document)\u{1B}[7m", "t=1"],
    ["query", collection], ["query", collection, "--group"], ["query", collection, "--explain"],
    ["query", collection, "--analyze"], ["query", collection, "--order", "__name__:desc", "--explain"],
    ["query", document], ["watch", collection, "--once"], ["watch", document, "--once"],
    ["rules", "explain", "--rules", "RULES", "get", document],
    ["delete", collection], ["delete", document], ["delete", collection, "--recursive", "--yes"],
  ]

  @Test func outputHasNoControlCharacters() throws {
    let directory = try TemporaryDirectory()
    let rules = try directory.write(
      "names.rules",
      """
      service cloud.firestore {
        match /databases/{database}/documents/{c}/{d} { allow get: if c != d && resource.data.t != d; }
      }
      """)
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory", "--project", "demo", "--quiet"])
    defer { server.process.stop() }
    func run(_ words: [String]) throws -> String {
      let words = words.map { $0 == "RULES" ? rules : $0 }
      return try HearthBinary.run(words + ["--server", "http://127.0.0.1:\(server.port)", "--project", "demo"]).output
    }
    let unwanted: Set<Unicode.Scalar> = ["\u{1B}", "\u{7}", "\u{9B}", "\u{61C}", "\u{202E}"]
    _ = try run(["set", Self.document, "{\"t\": \(Self.json)}"])
    for verb in Self.verbs {
      let output = try run(verb)
      #expect(!output.unicodeScalars.contains { unwanted.contains($0) }, "\(verb): \(output.debugDescription)")
      // A collection without documents shows nothing.
      #expect(verb.last?.hasSuffix("/none") == true || output.contains("\\u{1b}["), "\(verb): \(output)")
    }
  }

  /// Output for programs, and JSON that people copy, keeps the stored names and values.
  @Test func jsonOutputIsExact() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory", "--project", "demo", "--quiet"])
    defer { server.process.stop() }
    func run(_ words: String...) throws -> String {
      try HearthBinary.run(words + ["--server", "http://127.0.0.1:\(server.port)", "--project", "demo"]).output
    }
    func object(_ text: String) throws -> [String: Any] {
      try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
    }
    let page = try run("set", Self.document, "{\"t\": \(Self.json)}")
    #expect(try object(String(page.drop { $0 != "\n" }))["t"] as? String == Self.value)
    let name = "projects/demo/databases/(default)/documents/\(Self.document)"
    for words in [["get", Self.document, "--json"], ["get", Self.collection, "--json"]] {
      #expect(try object(run(words[0], words[1], words[2]))["name"] as? String == name)
    }
    #expect(try object(run("get", "--json"))["collectionIds"] as? [String] == [Self.collection])
  }
}
