import DocumentModel
import Glibc
import RulesEngine
import RulesTesting
import WireFormat

extension Command {
  /// Runs tests of rules.
  static let rulesTest = Command(
    name: "rules test", summary: "Runs tests of security rules, without a server.", operands: "FILE…",
    operandCount: 1...Int.max,
    options: [
      .value("rules", "FILE", "the rules of files that do not name theirs"),
      .value("filter", "TEXT", "only cases whose names contain it"),
      .value("junit", "FILE", "write JUnit's XML"),
      .value("lcov", "FILE", "write coverage in lcov's form"),
      .value("html", "FILE", "write coverage as a web page, with the values of each expression"),
      .flag("json", "print JSON"),
      .flag("mutate", "also weaken each condition in turn, and list the changes that no case notices"),
      .flag("watch", "run again whenever one of the files changes"),
    ],
    details: """
      A file holds the rules (or their path), documents as a fixture tree (or the path of a fixture), and cases:

        {"rules": "chat.rules",
         "documents": {"$collections": ["rooms"], "rooms": {"r1": {"owner": "ann"}}},
         "cases": [
           {"it": "lets the owner rename a room", "as": "ann", "update": "rooms/r1", "data": {"name": "New"},
            "expect": "allow"},
           {"it": "hides it from others", "as": "eve", "get": "rooms/r1", "expect": "deny", "line": 7}]}

      A case asks one of get, list, listGroup, create, set, update, delete and commit; README.md says more. Where the
      rules are for files (service firebase.storage), "files" holds those that are there by name, and a case asks one of
      read, get, list, create, update and delete; "data" is what is said of the file:

        {"it": "takes small pictures", "as": "ann", "create": "avatars/ann",
         "data": {"size": 2048, "contentType": "image/png"}, "expect": "allow"}

      The JSON of Firebase's rules test API (testSuite.testCases) is read as well. Exit code 0; 1 where a case fails; 65
      where a file is not what it should be.
      """,
    examples: [
      ("hearth rules test rules/*.tests.json", ""),
      ("hearth rules test chat.tests.json --watch", "while writing rules"),
      ("hearth rules test rules/*.tests.json --junit results.xml --lcov rules.info", "in CI"),
      ("hearth rules test chat.tests.json --mutate", "what the cases do not notice"),
    ],
    run: { arguments in
      guard arguments.has("watch") else { return try RulesTestRun(arguments).report() }
      return watch(arguments)
    })

  /// Runs until somebody interrupts.
  private static func watch(_ arguments: Arguments) -> Int32 {
    while true {
      var files = arguments.operands
      do {
        let run = try RulesTestRun(arguments)
        files = run.files
        _ = try run.report()
      } catch {
        let message = TerminalText.lines(CommandFailure(error).message)
        Terminal.error.write("hearth rules test: \(Terminal.error.red("error:")) \(message)\n")
        if let rules = arguments.value("rules") { files.append(rules) }
      }
      Terminal.error.write(Terminal.error.faint("watching \(files.count) files\n"))
      FileChange.wait(for: files)
    }
  }
}

/// One run of all files.
struct RulesTestRun {
  private let arguments: Arguments
  private var runs: [SuiteRun] = []
  private var coverages: [Coverage] = []
  private var mutations: [MutationTest] = []
  private let milliseconds: Double

  /// Reads and runs everything.
  /// - Throws: ``CommandFailure`` and `FixtureTreeError` for files that are not what they should be.
  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    let started = Self.microseconds()
    let reader = SuiteReader(rulesFile: arguments.value("rules"), now: Self.now())
    var rulesets: [(file: String, text: String, ruleset: Ruleset)] = []
    let isCovered = arguments.has("lcov") || arguments.has("html")
    for file in arguments.operands {
      let suite = try reader.read(file: file)
      let known = rulesets.firstIndex { $0.file == suite.rulesFile && $0.text.utf8.elementsEqual(suite.rules.utf8) }
      let place = known ?? rulesets.count
      if known == nil {
        let ruleset = try RulesFile.compile(suite.rules, file: suite.rulesFile)
        rulesets.append((suite.rulesFile, suite.rules, ruleset))
        if isCovered { coverages.append(Coverage(file: suite.rulesFile, ruleset)) }
      }
      var coverage = isCovered ? coverages[place] : nil
      runs.append(
        SuiteRun(suite, by: rulesets[place].ruleset, filter: arguments.value("filter"), coverage: &coverage))
      if let coverage { coverages[place] = coverage }
    }
    milliseconds = Double(Self.microseconds() - started) / 1000
    guard arguments.has("mutate") else { return }
    for (file, text, ruleset) in rulesets {
      let own = runs.filter { $0.suite.rulesFile == file && $0.suite.rules.utf8.elementsEqual(text.utf8) }
      mutations.append(MutationTest(ruleset, file: file, own))
    }
  }

  /// The files that it depends on.
  var files: [String] { runs.flatMap(\.suite.files) }

  /// Prints and writes what was asked for; returns the exit code.
  func report() throws -> Int32 {
    if let file = arguments.value("junit") {
      try TextFile.write(SuiteRun.junit(runs, seconds: milliseconds / 1000), to: file)
    }
    if let file = arguments.value("lcov") { try TextFile.write(coverages.map(\.lcov).joined(), to: file) }
    if let file = arguments.value("html") { try TextFile.write(Coverage.html(coverages), to: file) }
    if arguments.has("json") { Terminal.output.write(json) } else { Terminal.output.write(text) }
    return failed == 0 ? 0 : ExitCode.failure
  }

  private var passed: Int { runs.reduce(0) { $0 + $1.passedCount } }
  private var failed: Int { runs.reduce(0) { $0 + $1.failures.count } }

  private var text: String {
    var text = ""
    for run in runs {
      for result in run.failures {
        text += "\(run.suite.file):\(result.test.fileLine): \(Terminal.output.red("FAILED:")) "
        text += "\(TerminalText.line(result.test.name))\n"
        for line in run.explanation(of: result) { text += "  \(TerminalText.line(line))\n" }
      }
      var counts = "\(run.passedCount) passed"
      if !run.failures.isEmpty { counts += ", \(run.failures.count) failed" }
      if run.skippedCount > 0 { counts += ", \(run.skippedCount) left out" }
      text += "\(run.suite.file): \(counts)\n"
    }
    for mutation in mutations {
      text += "\(mutation.file): \(mutation.count) changes tried, "
      text += mutation.survivors.isEmpty ? "all noticed\n" : "\(mutation.survivors.count) noticed by no case:\n"
      for survivor in mutation.survivors {
        text += "  \(mutation.file):\(survivor.line): \(TerminalText.line(survivor.change))\n"
      }
    }
    let outcome = failed == 0 ? "all passed" : Terminal.output.red("\(failed) failed")
    let tenths = Int((milliseconds * 10).rounded())
    text += "\(passed + failed) cases, \(outcome) (\(tenths / 10).\(tenths % 10) ms)\n"
    return text
  }

  private var json: [UInt8] {
    JSONWriter.report { json in
      json.add("passed", passed)
      json.add("failed", failed)
      json.key("milliseconds")
      json.double(milliseconds)
      json.key("files")
      json.beginArray()
      for run in runs { run.append(to: &json) }
      json.endArray()
      guard arguments.has("mutate") else { return }
      json.add("mutations", mutations) { mutation, json in
        json.add("rules", mutation.file)
        json.add("tried", mutation.count)
        json.add("survivors", mutation.survivors) { survivor, json in
          json.add("line", survivor.line)
          json.add("change", survivor.change)
        }
      }
    }
  }

  private static func microseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
  }

  static func now() -> Timestamp {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return Timestamp(uncheckedMicroseconds: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
  }
}

/// Files that a verb writes.
enum TextFile {
  /// Writes a file anew.
  /// - Throws: ``CommandFailure`` where that is not possible.
  static func write(_ text: String, to path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard file >= 0 else {
      throw CommandFailure.failed("\(path) cannot be written: \(String(cString: strerror(errno)))")
    }
    defer { close(file) }
    do throws(Terminal.WriteFailure) {
      try Terminal(descriptor: file).writeAll(Array(text.utf8))
    } catch {
      throw CommandFailure.failed("\(path) cannot be written: \(String(cString: strerror(error.code)))")
    }
  }
}

/// Notices when files change.
enum FileChange {
  private static let pollMilliseconds: UInt32 = 200

  /// Returns once one of the files is another than now. Files are looked at by name, since editors replace them.
  static func wait(for files: [String]) {
    let before = files.map(stamp)
    while files.map(stamp) == before { usleep(pollMilliseconds * 1000) }
  }

  private static func stamp(_ file: String) -> [Int] {
    var status = stat()
    guard stat(file, &status) == 0 else { return [] }
    return [Int(status.st_mtim.tv_sec), Int(status.st_mtim.tv_nsec), Int(status.st_size), Int(status.st_ino)]
  }
}
