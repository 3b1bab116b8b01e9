import Foundation
import Testing
import TestSupport

/// `hearth query` and `hearth indexes` against a running server.
@Suite(.needs(.hearth)) struct QueryTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private final class Session {
    let server: HearthProcess
    init(_ arguments: [String]) throws {
      server = try HearthProcess(arguments: ["--emulator", "--project", "demo", "--quiet"] + arguments)
    }
    deinit { server.process.stop() }

    func run(_ arguments: String...) throws -> (exit: ProcessExit?, output: String) {
      try HearthBinary.run(arguments + ["--server", "http://127.0.0.1:\(server.port)", "--project", "demo"])
    }
  }

  private func shop(_ more: String...) throws -> Session {
    let tree = """
      {"$collections": ["shops", "shops/*/items"], "shops": {
        "s1": {"name": "One", "items": {
          "a": {"price": 3, "tags": ["x"], "sold": {"$timestamp": "2025-03-01T00:00:00Z"}},
          "b": {"price": {"$double": 4.5}, "tags": ["x", "y"], "sold": {"$timestamp": "2025-04-01T00:00:00Z"}},
          "c": {"price": 10, "maker": {"name": "Ann", "city": "Turin"}}}},
        "s2": {"name": "Two", "items": {"a": {"price": 7}}}}}
      """
    return try Session(["--import", directory.write("shop.json", tree)] + more)
  }

  @Test func resultsAreShownAsATable() throws {
    let session = try shop()
    #expect(
      try session.run("query", "shops/s1/items").output == """
        id  maker.city  maker.name  price  sold                  tags
        a                               3  2025-03-01T00:00:00Z  ["x"]
        b                             4.5  2025-04-01T00:00:00Z  ["x", "y"]
        c   Turin       Ann            10
        3 documents

        """)
    #expect(
      try session.run(
        "query", "shops/s1/items", "--where", "sold >= 2025-03-15", "--order", "sold:desc", "--limit", "1"
      ).output
        == """
        id  price  sold                  tags
        b     4.5  2025-04-01T00:00:00Z  ["x", "y"]
        1 document (the limit)

        """)
    #expect(
      try session.run("query", "items", "--group", "--where", "price > 3 and price <= 7", "--select", "price").output
        == """
        path              price
        shops/s1/items/b    4.5
        shops/s2/items/a      7
        2 documents

        """)
    #expect(
      try session.run("query", "items", "--group", "--count", "--sum", "price", "--avg", "price").output == """
        count  sum(price)  avg(price)
            4        24.5       6.125

        """)
    #expect(try session.run("query", "shops", "--where", "name == 'Three'").output == "no documents\n")
    #expect(
      try session.run("query", "shops", "--select", "__name__", "--start-after", "s1").output == "id\ns2\n1 document\n")
  }

  @Test func programsGetJSONLines() throws {
    let session = try shop()
    let lines = try session.run("query", "items", "--group", "--where", "price > 3", "--order", "price:desc", "--json")
      .output
      .split(separator: "\n")
    let names = try lines.map { line in
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
      return (object?["name"] as? String)?.split(separator: "/").suffix(3).joined(separator: "/")
    }
    #expect(names == ["s1/items/c", "s2/items/a", "s1/items/b"])
    #expect(
      try session.run("query", "shops/s1/items", "--count", "--json").output == #"{"count":{"integerValue":"3"}}"#
        + "\n")
    let explained = try session.run("query", "shops/s1/items", "--where", "price > 3", "--analyze", "--json").output
      .split(separator: "\n")
    #expect(explained.count == 3)
    #expect(explained.last?.contains(#""explainMetrics":{"planSummary""#) == true)
  }

  @Test func plansAreShown() throws {
    let session = try shop()
    let plan = try session.run("query", "shops/s1/items", "--where", "price > 3", "--explain").output
    #expect(plan.hasPrefix("scan entries of shops/s1/items: price > …\n"), "\(plan)")
    #expect(plan.hasSuffix("index: Collection (price ASC, __name__ ASC)\n"), "\(plan)")
    let analyzed = try session.run("query", "shops/s1/items", "--where", "price > 3", "--analyze").output
    #expect(analyzed.hasPrefix("id  "))
    #expect(analyzed.contains("\n2 documents\n\nscan entries of "))
    #expect(analyzed.contains("\n2 results in "), "\(analyzed)")
  }

  @Test func longResultsArriveCompletely() throws {
    let lines = (0..<3000).map {
      #"{"path": "load/\#(10000 + $0)", "fields": {"n": \#($0), "pad": "\#(String(repeating: "p", count: 200))"}}"#
    }
    let session = try Session(["--import", directory.write("load.ndjson", lines.joined(separator: "\n"))])
    let table = try session.run("query", "load", "--select", "n", "--order", "n:desc").output.split(separator: "\n")
    #expect(table.count == 3002)
    #expect(table.first == "id        n" && table[1] == "12999  2999" && table.last == "3000 documents")
    #expect(try session.run("query", "load", "--select", "n", "--json").output.split(separator: "\n").count == 3000)
  }

  @Test func failuresSayWhatToDo() throws {
    let session = try shop()
    for (arguments, code, hint) in [
      (["shops/s1"], 64, "show it with `hearth get shops/s1`"),
      (["shops", "--where", "name = 1"], 64, "write == instead of ="),
      (["shops", "--where", "name == {}}"], 64, "expected 'and' or 'or'"),
      (["shops", "--where", #"name == {"$ref": 1}"#], 65, "--where"),
      (["shops", "--where", "a != 1", "--where", "b != 2"], 1, "400 INVALID_ARGUMENT: Only a single 'NOT_EQUAL'"),
      (["shops", "--at", "2001-01-01"], 1, "read_time"),
    ] as [([String], Int32, String)] {
      let result = try HearthBinary.run(
        ["query"] + arguments + ["--server", "http://127.0.0.1:\(session.server.port)", "--project", "demo"])
      #expect(result.exit == .code(code), "\(arguments)")
      #expect(result.output.contains(hint), "\(result.output)")
    }
    let nobody = try HearthBinary.run(["query", "a", "--server", "http://127.0.0.1:1"])
    #expect(nobody.exit == .code(1))
    #expect(nobody.output.contains("start one with `hearth serve`"))
  }

  @Test func aMissingIndexFailsUntilItIsDeclared() throws {
    var session = try shop("--require-indexes")
    let query = ["query", "shops/s1/items", "--where", #"tags contains "x""#, "--order", "price"]
    func run() throws -> (exit: ProcessExit?, output: String) {
      try HearthBinary.run(query + ["--server", "http://127.0.0.1:\(session.server.port)", "--project", "demo"])
    }
    let refused = try run()
    #expect(refused.exit == .code(1))
    #expect(refused.output.contains("400 FAILED_PRECONDITION: The query requires an index."), "\(refused.output)")
    #expect(
      refused.output.contains(
        #"{"fieldPath":"tags","arrayConfig":"CONTAINS"},{"fieldPath":"price","order":"ASCENDING"}"#))
    #expect(try session.run("indexes", "list").output == "no indexes except those on single fields\n")
    let suggested = try session.run("indexes", "suggest").output
    let said = "hearth: 1 kind of query seen, 1 index added\n"
    #expect(suggested.hasSuffix(said) || suggested.hasPrefix(said), "\(suggested)")
    let file = try directory.write("firestore.indexes.json", suggested.replacing(said, with: ""))
    session = try shop("--require-indexes", "--indexes", file)
    #expect(try run().output.hasSuffix("2 documents\n"))
    let list = try session.run("indexes", "list").output
    #expect(list.hasPrefix("items (tags contains, price ascending): "), "\(list)")
    #expect(try session.run("indexes", "suggest", "--merge", file).output.contains("0 indexes added"))
    #expect(try session.run("indexes", "list", "--json").output.contains(#""state": ""#))
    #expect(try session.run("indexes", "sugest").output.contains("did you mean 'suggest'?"))
    #expect(try session.run("indexes", "suggest", "--merge", directory.file("none.json")).exit == .code(65))
  }
}
