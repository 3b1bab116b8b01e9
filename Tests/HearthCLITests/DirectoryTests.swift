import Foundation
import Testing
import TestSupport

/// Verbs that use a data directory without a server, run as commands.
@Suite(.needs(.hearth)) struct DirectoryTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func run(_ arguments: String...) throws -> (exit: ProcessExit?, output: String) {
    try HearthBinary.run(arguments + ["--data", directory.file("d"), "--project", "demo"])
  }

  private func check(_ name: String = "d") throws -> (exit: ProcessExit?, output: String) {
    try HearthBinary.run(["check", directory.file(name)])
  }

  @Test(arguments: Fixtures.names)
  func exportedFixturesEqualTheImportedOnes(name: String) throws {
    #expect(try run("import", Fixtures.path(name)).exit == .code(0))
    #expect(try run("export", "--output", directory.file("1.json")).exit == .code(0))
    let other = ["--data", directory.file("e"), "--project", "demo"]
    #expect(try HearthBinary.run(["import", directory.file("1.json")] + other).exit == .code(0))
    #expect(try HearthBinary.run(["export", "--output", directory.file("2.json")] + other).exit == .code(0))
    let text = try directory.text("1.json")
    #expect(text == (try directory.text("2.json")))
    #expect(text.count > 1000)
    // Importing the original over the copy changes nothing.
    let again = try run("import", Fixtures.path(name))
    let parts = again.output.split(separator: " ")
    #expect(again.exit == .code(0))
    #expect(parts.count > 3 && "(" + parts[1] == parts[3], "\(again.output)")
    let checked = try check()
    #expect(checked.exit == .code(0), "\(checked.output)")
  }

  @Test(arguments: [
    ["keys", "list"], ["keys", "revoke", "k"], ["keys", "create", "k", "--output", "-"], ["token", "ann"],
    ["get", "a/b"],
    ["set", "a/b", "{}"], ["accounts", "list"], ["accounts", "export"], ["indexes", "list"], ["listeners"],
    ["files", "ls"], ["export"], ["backups", "create", "/nosuch/x"],
  ])
  func aMisspelledDirectoryIsNotCreated(words: [String]) throws {
    let missing = try HearthBinary.run(words + ["--data", directory.file("typo")])
    #expect(
      missing.exit == .code(1)
        && missing.output.contains("the data directory \(directory.file("typo")) does not exist; correct the path"),
      "\(missing.output)")
    #expect(!FileManager.default.fileExists(atPath: directory.file("typo")))
    try FileManager.default.createDirectory(atPath: directory.file("other"), withIntermediateDirectories: true)
    let other = try HearthBinary.run(words + ["--data", directory.file("other")])
    #expect(other.exit == .code(1) && other.output.contains("it has no file FORMAT"), "\(other.output)")
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.file("other")).isEmpty)
  }

  @Test func aDirectoryThatCannotBeCreatedIsExplained() throws {
    let tree = try directory.write("t.json", #"{"$collections": ["a"], "a": {"1": {}}}"#)
    let failed = try HearthBinary.run(["import", tree, "--data", directory.file("none/d"), "--project", "p"])
    #expect(
      failed.exit == .code(1)
        && failed.output.contains("cannot be created: No such file or directory; create the directory that contains it"),
      "\(failed.output)")
  }

  @Test(.needs(.tool(.script))) func anExportShowsThePartThatIsDone() throws {
    #expect(try run("import", Fixtures.path("journeys")).exit == .code(0))
    let path = try #require(HearthBinary.path)
    let command = "\(path) export --data \(directory.file("d")) --project demo --output \(directory.file("e.json"))"
    let shown = try Tool.script.run(["-qec", command, "/dev/null"], keepsInputOpen: true)
    #expect(shown.output.contains("%"), "\(shown.output)")
  }

  @Test func exportsOfAPathIncludeItsAncestors() throws {
    let tree = """
      {"$collections": ["a", "a/*/b", "c"],
       "a": {"1": {"x": 1, "b": {"2": {"y": 2}}}, "3": {"b": {"4": {}}, "$missing": true}}, "c": {"5": {}}}
      """
    #expect(try run("import", try directory.write("t.json", tree)).exit == .code(0))
    #expect(
      try run("export", "a/3").output == """
        {
          "$collections": ["a", "a/*/b"],
          "a": {
            "3": {
              "$missing": true,
              "b": {
                "4": {}
              }
            }
          }
        }

        """)
    #expect(try run("export", "a/1/b").output.contains(#""2": {"y": 2}"#))
    #expect(try run("export", "c").output.contains(#""$collections": ["c"]"#))
    let nothing = try run("export", "nothing")
    #expect(nothing.exit == .code(1) && nothing.output.contains("no documents at or below nothing"))
  }

  @Test func laterFilesAndLinesReplaceDocuments() throws {
    let tree = try directory.write("a.json", #"{"$collections": ["a"], "a": {"1": {"x": [1, 2]}, "2": {"x": 1}}}"#)
    let lines = try directory.write(
      "b.ndjson",
      """
      {"path": "a/1", "fields": {"x": [2, 3], "y": 1}}
      {"path": "a/3", "fields": {"x": 1}}
      {"path": "a/3", "fields": {"z": 1}}
      """)
    let imported = try run("import", tree, lines)
    #expect(imported.exit == .code(0), "\(imported.output)")
    let export = try run("export").output
    #expect(export.contains(#""1": {"x": [2, 3], "y": 1}"#))
    #expect(export.contains(#""3": {"z": 1}"#))
    let checked = try check()
    #expect(checked.output.contains("ok, 3 documents"), "\(checked.output)")
  }

  @Test(arguments: [
    ("{\"$collections\": [\"a\"],\n \"a\": {\"1\": {\"x\": }}}", "bad.json:2:", "a/1"),
    ("{\"$collections\": [\"a\"],\n \"a\": {\n  \"1\": {},\n  \"2\": {\"x\": [[1]]}}}", "bad.json:4:", "a/2"),
    ("{\"a\": {\"1\": {}}}", "bad.json:1:", "$collections"),
    ("{\"$collections\": [\"a\"], \"a\": {\"1\": {}}", "bad.json:1:", "cut short"),
  ])
  func badDataNamesFileAndLineAndChangesNothing(text: String, place: String, rest: String) throws {
    let bad = try directory.write("bad.json", text)
    for _ in 0..<2 {
      // First without a database, then into a database with documents.
      let result = try run("import", bad)
      #expect(result.exit == .code(65))
      #expect(result.output.contains(place) && result.output.contains(rest), "\(result.output)")
      let left = try FileManager.default.contentsOfDirectory(atPath: directory.file("d/databases/demo/(default)"))
      #expect(!left.contains { $0.contains("importing") })
      #expect(
        try run("import", directory.write("good.json", #"{"$collections": ["g"], "g": {"1": {}}}"#)).exit == .code(0))
    }
    #expect(try check().output.contains("ok, 1 document, "))
  }

  @Test func missingDirectoriesAndDatabasesAreNamed() throws {
    let file = try run("import", directory.file("none.json"))
    #expect(file.exit == .code(65))
    #expect(file.output.contains("none.json: cannot open the file"))
    #expect(try run("export").exit == .code(1))
    #expect(try check("nowhere").exit == .code(1))
    #expect(try HearthBinary.run(["check", directory.path]).exit == .code(1))
  }

  @Test func backupsAreCompleteAndReplaceNothing() throws {
    #expect(try run("import", Fixtures.path("habitual")).exit == .code(0))
    let source = ["--data", directory.file("d")]
    #expect(try HearthBinary.run(["backup", directory.file("b")] + source).exit == .code(0))
    let checked = try check("b")
    #expect(checked.exit == .code(0), "\(checked.output)")
    let again = try HearthBinary.run(["backup", directory.file("b")] + source)
    #expect(again.exit == .code(1))
    #expect(again.output.contains("is not empty"))
    let left = try FileManager.default.contentsOfDirectory(atPath: directory.path).filter { $0.hasSuffix(".part") }
    #expect(left.isEmpty)
    let statistics = try HearthBinary.run(["stats", "--json", "--data", directory.file("b")])
    let json = try JSONSerialization.jsonObject(with: Data(statistics.output.utf8)) as? [String: Any]
    let databases = try #require(json?["databases"] as? [[String: Any]])
    #expect(databases.first?["project"] as? String == "demo")
    #expect((databases.first?["documents"] as? Int ?? 0) > 100)
  }
}
