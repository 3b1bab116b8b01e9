import Foundation
import HearthServer
import Testing
import TestSupport

/// Reports of the rules that requests evaluated (rules-language.md, section 17.1).
@Suite struct RuleCoverageTests {
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        function isShort(text) {
          let size = text.size();
          return size < 2;
        }
        match /t/{id} {
          allow get: if isShort(id) || resource.data.n > 1;
          allow list, write;
        }
      }
    }
    """
  private static let page = "/emulator/v1/projects/p:ruleCoverage"

  private static func upload(_ server: TestServer, to place: String = "projects/p") throws {
    let body: JSONNode = ["rules": ["files": [["content": .string(rules)]]]]
    #expect(try server.call("PUT", "/emulator/v1/\(place):securityRules", body.text).status == 200)
  }

  /// The report's node of the condition.
  private static func condition(_ server: TestServer, _ path: String = page) throws -> JSONNode {
    let reply = try server.call("GET", path)
    #expect(reply.status == 200, "\(reply.text)")
    let report = try JSONNode(parsing: Array(reply.text.utf8))["report"]?.elements ?? []
    #expect(report.count == 2, "a function and a condition: \(reply.text)")
    return report.last ?? .null
  }

  @Test func reportCountsTheValuesOfExpressions() throws {
    let server = try TestServer()
    #expect(try server.call("GET", Self.page).status == 404)
    try Self.upload(server)
    #expect(try Self.condition(server)["values"] == nil)
    for _ in 0..<3 { #expect(try server.call("GET", "/t/a").status == 404) }
    #expect(try server.call("GET", "/t/long").status == 403)
    let top = try Self.condition(server)
    // Literals have no nodes. The top node has the value of the whole condition, and an error appears as undefined.
    let values = top["values"]?.elements ?? []
    #expect(values.first?["value"]?["boolValue"]?.text == "true")
    #expect(values.first?["count"]?.integerValue == 3)
    #expect(values.last?["value"]?["undefined"]?["causeMessage"]?.stringValue == "Null value error.")
    #expect(top["sourcePosition"]?["line"]?.integerValue == 9)
    #expect(top["sourcePosition"]?["column"]?.integerValue == 21)
    #expect(top["children"]?.elements.count == 2)
    let start = try #require(top["sourcePosition"]?["currentOffset"]?.integerValue)
    let end = try #require(top["sourcePosition"]?["endOffset"]?.integerValue)
    #expect(Array(Self.rules)[start...end] == Array("isShort(id) || resource.data.n > 1")[...])
    let function = try JSONNode(parsing: Array(try server.call("GET", Self.page).text.utf8))["report"]?.elements.first
    #expect(function?["sourcePosition"]?["line"]?.integerValue == 5)
    #expect(function?["children"]?.elements.count == 2)
    // Also by database, and as an HTML page.
    let database = "/emulator/v1/projects/p/databases/(default):ruleCoverage"
    #expect(try Self.condition(server, database)["values"]?.elements.count == 2)
    let html = try server.call("GET", Self.page + ".html")
    #expect(html.status == 200 && html.header("content-type")?.hasPrefix("text/html") == true)
    #expect(html.text.contains("true × 3"), "\(html.text)")
    #expect(try server.call("POST", Self.page, "{}").status == 404)
    // An upload clears the report. An upload for one database clears only that one.
    try Self.upload(server, to: "projects/p/databases/second")
    #expect(try Self.condition(server)["values"]?.elements.count == 2)
    try Self.upload(server)
    #expect(try Self.condition(server)["values"] == nil)
  }

  /// Recording starts with the first request for a report, so that it costs nothing before.
  @Test func recordingStartsWithTheFirstRequest() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/firestore.rules"
    try Self.rules.write(toFile: file, atomically: true, encoding: .utf8)
    let server = try TestServer { $0.rules = [.init(file)] }
    #expect(try server.call("GET", "/t/a").status == 404)
    #expect(try Self.condition(server)["values"] == nil)
    #expect(try server.call("GET", "/t/a").status == 404)
    #expect(try Self.condition(server)["values"]?.elements.first?["count"]?.integerValue == 1)
  }

  @Test func productionHasNoReports() throws {
    let directory = try TemporaryDirectory()
    let file = directory.path + "/firestore.rules"
    try Self.rules.write(toFile: file, atomically: true, encoding: .utf8)
    let server = try TestServer { configuration in
      configuration.mode = .production
      configuration.project = "p"
      configuration.rules = [.init(file)]
    }
    #expect(try server.call("GET", Self.page).status == 403)
  }

  /// Accepting the emulator's unsound proofs needs a setting and emulator mode.
  @Test func unsoundProofsMustBeEnabled() throws {
    let directory = try TemporaryDirectory()
    let rules =
      "rules_version = '2'; service cloud.firestore { match /databases/{d}/documents/t/{id} { "
      + "allow list: if !('secret' in resource.data); } }"
    let file = directory.path + "/firestore.rules"
    try rules.write(toFile: file, atomically: true, encoding: .utf8)
    for (isCompatible, status) in [(false, 403), (true, 200)] {
      let server = try TestServer { configuration in
        configuration.rules = [.init(file)]
        configuration.isEmulatorCompatible = isCompatible
      }
      #expect(try server.call("GET", "/t").status == status)
    }
    #expect(throws: HearthError.self) {
      try TestServer { configuration in
        configuration.mode = .production
        configuration.isEmulatorCompatible = true
      }
    }
  }
}
