import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// The forms of files that `import` reads and `export` writes, run as commands.
@Suite(.needs(.hearth)) struct DataFormsTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    try directory.makeDataDirectory("d")
  }

  private func run(_ arguments: String...) throws -> (exit: ProcessExit?, output: String) {
    try HearthBinary.run(arguments + ["--data", directory.file("d"), "--project", "demo"])
  }

  /// Runs a line of shell, in which `hearth` is the binary.
  private func shell(_ line: String) throws -> (exit: ProcessExit?, output: String) {
    let binary = try #require(HearthBinary.path)
    let process = try ServerProcess(
      executable: "/bin/sh", arguments: ["-c", "cd '\(directory.path)'; hearth() { '\(binary)' \"$@\"; }; \(line)"])
    return (process.waitForExit(timeoutSeconds: 60), process.output)
  }

  private static let array = #"[{"email": "ann@x", "since": {"_seconds": 1, "_nanoseconds": 0}}, {"email": "bob@x"}]"#

  @Test func objectsOfOtherProgramsAreImported() throws {
    let file = try directory.write("users.json", Self.array)
    let imported = try run("import", file, "--collection", "users", "--id", "email")
    #expect(imported.exit == .code(0))
    #expect(
      imported.output == """
        imported 2 documents
        hearth import: read 1 map such as {"_seconds": …, "_nanoseconds": …} as values of Firebase's SDKs; \
        --sdk-values off keeps maps

        """)
    #expect(try run("export", "users/ann@x").output.contains(#""since": {"$timestamp": "1970-01-01T00:00:01Z"}"#))
    let random = try run("import", file, "--collection", "others", "--sdk-values", "off")
    #expect(random.output.contains("2 documents got a random ID"), "\(random.output)")
    #expect(!random.output.contains("warning"), "\(random.output)")
    #expect(try run("import", file, "--collection", "others", "--generate-ids", "--quiet").output == "")
    #expect(try run("export", "others").output.split(separator: "email").count == 5)
    let none = try run("import", file)
    #expect(none.exit == .code(65) && none.output.contains("--collection users"), "\(none.output)")
    let document = try run("import", file, "--collection", "users/ann")
    #expect(document.exit == .code(64) && document.output.contains("must be the path of a collection"))
    let both = try run("import", file, "--collection", "users", "--id", "x", "--generate-ids")
    #expect(both.exit == .code(64), "\(both.output)")
  }

  @Test func everyFormSurvivesTheWayOutAndIn() throws {
    #expect(try run("import", Fixtures.path("journeys")).exit == .code(0))
    #expect(try run("export", "--output", directory.file("1.json")).exit == .code(0))
    let tree = try directory.text("1.json")
    for name in ["a.ndjson", "a.ndjson.gz", "a.json.gz", "a.jsonl.zst", "a.json.zst"] {
      #expect(try run("export", "--output", directory.file(name)).exit == .code(0))
      let copy = ["--data", directory.file("copy of \(name)"), "--project", "demo"]
      let imported = try HearthBinary.run(["import", directory.file(name)] + copy)
      #expect(imported.output == "imported 818 documents\n", "\(name): \(imported.output)")
      #expect(try HearthBinary.run(["export", "--output", directory.file("2.json")] + copy).exit == .code(0))
      #expect(tree == (try directory.text("2.json")), "\(name)")
    }
    let lines = try directory.text("a.ndjson")
    #expect(lines.hasPrefix(#"{"path": ""#) && lines.split(separator: "\n").count == 818)
    // A second import of the same documents changes nothing.
    #expect(try run("import", directory.file("a.ndjson.gz")).output == "imported 818 documents (818 unchanged)\n")
  }

  @Test func tablesSurviveTheWayOutAndIn() throws {
    let tree = """
      {"$collections": ["c", "c/*/d"], "c": {
        "1": {"a": "x,y", "n": 1, "m": {"k": [1, {"$double": 2}]}, "d": {"2": {}}}, "3": {"a": "", "z": {"$bytes": "AA=="}}}}
      """
    #expect(try run("import", try directory.write("t.json", tree)).exit == .code(0))
    let table = try run("export", "c", "--format", "csv")
    #expect(
      table.output == """
        __id__,a,m:json,n:int,z:bytes
        1,"x,y","{""k"": [1, {""$double"": 2}]}",1,
        3,"",,,AA==
        hearth export: 1 document below those of c is not in the CSV file; export each collection, or use --format ndjson

        """)
    #expect(try run("export", "c", "--output", directory.file("c.csv.gz"), "--quiet").output == "")
    let copy = ["--data", directory.file("copy"), "--project", "demo"]
    #expect(
      try HearthBinary.run(["import", directory.file("c.csv.gz"), "--collection", "c"] + copy).output
        == "imported 2 documents\n")
    let again = try HearthBinary.run(["export", "c", "--format", "csv"] + copy)
    #expect(again.output == table.output.split(separator: "hearth export").first.map(String.init))
    let inferred = try run(
      "import", try directory.write("i.csv", "id;n;t\na;1;2025-01-01T00:00:00Z\n"), "--collection", "i", "--types",
      "infer",
      "--delimiter", ";", "--drop-id")
    #expect(inferred.exit == .code(0), "\(inferred.output)")
    #expect(
      try run("export", "i", "--format", "ndjson").output
        == #"{"path": "i/a", "fields": {"n": 1, "t": {"$timestamp": "2025-01-01T00:00:00Z"}}}"# + "\n")
    for (arguments, message) in [
      (["export", "--format", "csv"], "give its path"),
      (["export", "--format", "xml"], "must be tree, ndjson, csv or firebase"),
      (["export", "--compress", "zip"], "must be gzip or zstd"),
      (["import", "x", "--types", "some"], "must be infer or strings"),
      (["import", "x", "--delimiter", ",,"], "must be one ASCII character"),
    ] {
      let result = try HearthBinary.run(arguments + ["--data", directory.file("d")])
      #expect(result.exit == .code(64) && result.output.contains(message), "\(result.output)")
    }
  }

  @Test func standardInputIsReadTwiceIfNecessary() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--project", "demo", "--in-memory"])
    let target = "--server http://127.0.0.1:\(server.port) --project demo"
    _ = try directory.write("users.json", Self.array)
    let sent = try shell("cat users.json | hearth import - \(target) --collection users --id email --quiet")
    #expect(sent.exit == .code(0) && sent.output == "", "\(sent.output)")
    #expect(try shell("gzip -c users.json | hearth import - \(target) --collection zipped --id email").exit == .code(0))
    let csv = try shell(
      "printf 'id,n\\na,1\\n' | hearth import - \(target) --collection table --types infer && hearth get table/a \(target)"
    )
    #expect(csv.output.hasSuffix(#"{"id": "a", "n": 1}"# + "\n"), "\(csv.output)")
    #expect(
      try shell("hearth get users \(target); hearth get zipped \(target)").output
        == String(
          repeating: #"ann@x  {"email": "ann@x", "since": {"$timestamp": "1970-01-01T00:00:01Z"}}"# + "\n"
            + #"bob@x  {"email": "bob@x"}"# + "\n", count: 2))
    // Into a directory with documents, and from a named pipe.
    #expect(try run("import", Fixtures.path("journeys")).exit == .code(0))
    let piped = try shell(
      "mkfifo p; cat users.json > p & hearth import p --data d --project demo --collection users --id email")
    #expect(piped.output.hasPrefix("imported 2 documents\n"), "\(piped.output)")
    server.process.stop()
  }

  @Test func aMissingTemporaryDirectoryIsReported() throws {
    #expect(try run("import", Fixtures.path("journeys")).exit == .code(0))
    let result = try shell(
      "export TMPDIR=/nonexistent; echo '[]' | hearth import - --data d --project demo --collection users")
    #expect(result.exit == .code(65))
    #expect(
      result.output.contains("-: cannot copy the input to a temporary file, to read it twice"), "\(result.output)")
  }

  @Test func theDelimiterOfAHeaderIsFound() throws {
    let file = try directory.write("a.csv", "id;n;born\na;1,5;2025-03-27\n")
    let imported = try run("import", file, "--collection", "found", "--drop-id", "--types", "infer")
    #expect(imported.exit == .code(0), "\(imported.output)")
    #expect(imported.output.contains("the header has no comma, so each ';' separates cells"), "\(imported.output)")
    #expect(
      try run("export", "found", "--format", "ndjson").output
        == #"{"path": "found/a", "fields": {"born": {"$timestamp": "2025-03-27T00:00:00Z"}, "n": "1,5"}}"# + "\n")
  }

  @Test func aRowShowsTheDelimiterOfAHeaderWithCommas() throws {
    let file = try directory.write("a.csv", "id;full, name\na;Ann\n")
    let imported = try run("import", file, "--collection", "found", "--drop-id")
    #expect(imported.exit == .code(0), "\(imported.output)")
    #expect(imported.output.contains("the header and the first row show that each ';' separates cells"))
    #expect(
      try run("export", "found", "--format", "ndjson").output
        == #"{"path": "found/a", "fields": {"full, name": "Ann"}}"# + "\n")
  }

  @Test func fieldsThatOverlapAreRefused() throws {
    #expect(try run("set", "users/ann", "a.b=1", "a.c=2", "d=3").exit == .code(0))
    let before = try run("export")
    for (words, message) in [
      (["update", "users/ann", "a=1", "a.b=2"], "the fields 'a' and 'a.b' overlap"),
      (["update", "users/ann", "a.b=1", "a=2"], "the fields 'a.b' and 'a' overlap"),
      (["update", "users/ann", "a=1", "--remove", "a"], "the field 'a' is named twice"),
      (["update", "users/ann", "a.c=1", "--remove", "a"], "the fields 'a.c' and 'a' overlap"),
      (["update", "users/ann", #"{"d": 1}"#, "--remove", "d"], "the field 'd' is named twice"),
      (["set", "users/ann", "a=1", "a.b=2"], "the fields 'a' and 'a.b' overlap"),
      (["add", "users", "a=1", "a=2"], "the field 'a' is named twice"),
    ] {
      let result = try HearthBinary.run(words + ["--data", directory.file("d"), "--project", "demo"])
      #expect(result.exit == .code(64) && result.output.contains(message), "\(words): \(result.output)")
    }
    #expect(try run("export").output == before.output)
    #expect(try run("update", "users/ann", "a.b=2", "--remove", "a.c", "--remove", "d").exit == .code(0))
    #expect(try run("export").output.contains(#"{"a": {"b": 2}}"#))
  }

  @Test func mistakesInValuesNameNoOtherPath() throws {
    for (words, message) in [
      (["set", "users/ann", #"a={"$timestamp": "x"}"#], #"the value of a:1:16: "x" is not a timestamp"#),
      (
        ["add", "users", #"{"a": {"$timestamp": "x"}}"#], #"the fields:1:22: users: field "a": "x" is not a timestamp"#
      ),
    ] {
      let result = try HearthBinary.run(words + ["--data", directory.file("d"), "--project", "demo"])
      #expect(result.exit == .code(65) && result.output.contains("error: \(message)"), "\(words): \(result.output)")
    }
  }

  @Test func optionsWithoutEffectAreRefused() throws {
    let json = try directory.write("users.json", Self.array)
    let tree = try directory.write("tree.json", #"{"$collections": ["a"], "a": {"b": {}}}"#)
    for (words, code, message) in [
      (["import", json, "--collection", "users", "--types", "strings"], 65, "--types applies to CSV only"),
      (["import", json, "--collection", "users", "--delimiter", ";"], 65, "--delimiter applies to CSV only"),
      (["import", tree, "--only", "firestore"], 64, "tree.json is not an export"),
      (["import", tree, "--connections", "3"], 64, "'--data' and '--connections' exclude each other"),
      (["export", "--read-time", "none"], 64, "'--data' and '--read-time' exclude each other"),
      (["export", "--connections", "3"], 64, "'--data' and '--connections' exclude each other"),
    ] as [([String], Int32, String)] {
      let result = try HearthBinary.run(words + ["--data", directory.file("d"), "--project", "demo"])
      #expect(result.exit == .code(code) && result.output.contains(message), "\(words): \(result.output)")
    }
    let limit = try HearthBinary.run(["import", tree, "--map-size", "1G"])
    #expect(limit.exit == .code(64) && limit.output.contains("'--map-size' needs --data"), "\(limit.output)")
  }

  @Test func archivesThatCannotBeReadAreNamed() throws {
    _ = try directory.write("a.json", "{}")
    let made = try shell("tar cf a.tar a.json && gzip -k a.tar && cp a.json wrong.zip && cp a.json a.tar.xz")
    #expect(made.exit == .code(0), "\(made.output)")
    for command in ["cat a.tar |", "cat a.tar.gz |"] {
      let result = try shell("\(command) hearth import - --data d --project demo --collection c")
      #expect(result.exit == .code(65) && result.output.contains("is an archive, which can be imported only as a file"))
    }
    for (name, message) in [
      ("wrong.zip", "does not contain an archive, despite its name"), ("a.tar.xz", ".tar.xz archives cannot be read"),
    ] {
      let result = try run("import", directory.file(name))
      #expect(result.exit == .code(65) && result.output.contains(message), "\(result.output)")
    }
  }

  @Test func damagedFilesAreNamedAndChangeNothing() throws {
    _ = try directory.write("users.json", Self.array)
    #expect(
      try shell("gzip -k users.json; head -c 60 users.json.gz > cut.gz; (cat users.json.gz; echo x) > more.gz").exit
        == .code(0))
    for (name, message) in [
      ("cut.gz", "the gzip data end too early; the file may be cut short"), ("more.gz", "the gzip data are damaged"),
    ] {
      let result = try run("import", directory.file(name), "--collection", "users")
      #expect(result.exit == .code(65) && result.output.contains("\(name): \(message)"), "\(result.output)")
    }
    let folder = try run("import", directory.path)
    #expect(folder.exit == .code(65) && folder.output.contains("is a folder without a Firebase export"))
  }

  @Test func referencesToOtherDatabasesAreReported() throws {
    let line = #"{"path": "a/1", "fields": {"r": {"$ref": "projects/old/databases/(default)/documents/u/1"}}}"#
    let file = try directory.write("a.ndjson", line)
    let kept = try run("import", file, "--quiet")
    #expect(
      kept.output == """
        hearth import: warning: 1 reference to another project or database, such as \
        projects/old/databases/(default)/documents/u/1; --rewrite-refs changes them to projects/demo/databases/(default)

        """)
    #expect(try run("export").output.contains(#""$ref": "projects/old"#))
    let changed = try run("import", file, "--rewrite-refs").output
    #expect(changed.contains("changed 1 reference to other databases to projects/demo/"), "\(changed)")
    #expect(try run("export").output.contains(#"{"$ref": "u/1"}"#))
  }

  @Test func anExportOfNothingFails() throws {
    #expect(try run("import", Fixtures.path("journeys")).exit == .code(0))
    for format in ["tree", "ndjson", "csv"] {
      let result = try run("export", "nosuch", "--format", format, "--output", directory.file("none"))
      #expect(result.exit == .code(1))
      #expect(result.output.contains("no documents at or below nosuch"), "\(result.output)")
    }
    #expect(!FileManager.default.fileExists(atPath: directory.file("none")))
  }

  @Test func progressShowsThePartDone() {
    #expect(
      ProgressText.line(900_000, "documents imported", fraction: 0.456, milliseconds: 36_540)
        == "900,000 documents imported, 24,630/s, 45%, 43 s left")
    #expect(ProgressText.line(10, "documents", fraction: 0.5, milliseconds: 100) == "10 documents, 100/s, 50%")
    #expect(ProgressText.line(1000, "documents", fraction: nil, milliseconds: 0) == "1,000 documents, 0/s")
    #expect(
      ProgressText.bytes(12 << 20, of: 48 << 20, "copied", milliseconds: 3000)
        == "12 MiB of 48 MiB copied, 4 MiB/s, 25%, 9 s left")
    #expect(ProgressText.bytes(2048, of: nil, "copied", milliseconds: 1000) == "2 KiB copied, 2 KiB/s")
    // A resumed copy estimates the time left by its own speed.
    #expect(ProgressText.speed(100, fraction: 0.5, milliseconds: 10_000, portion: 0.2) == ", 10/s, 50%, 50 s left")
    #expect(ProgressText.number(-1_234_567) == "-1,234,567")
    #expect([59, 70, 7500].map(ProgressText.duration) == ["59 s", "1 min 10 s", "2 h 5 min"])
  }
}
