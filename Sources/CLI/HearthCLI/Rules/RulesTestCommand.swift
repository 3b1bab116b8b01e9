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
      .value("rules", "FILE", "the rules for test files that do not name theirs"),
      .value("filter", "TEXT", "run only cases whose names contain TEXT"),
      .value("junit", "FILE", "write the results as JUnit XML"),
      .value("lcov", "FILE", "write the coverage in lcov format"),
      .value("html", "FILE", "write the coverage as a web page, with the values of each expression"),
      .flag("json", "print JSON"),
      .flag("mutate", "also weaken each condition in turn, and list the changes that no case detects"),
      .flag("watch", "run again whenever one of the files changes"),
    ],
    details: """
      A test file contains the rules (or their path), documents as a fixture tree (or the path of a fixture), and
      cases:

          {"rules": "chat.rules",
           "documents": {"$collections": ["rooms"], "rooms": {"r1": {"owner": "ann"}}},
           "cases": [
             {"it": "lets the owner rename a room", "as": "ann", "update": "rooms/r1",
              "data": {"name": "New"}, "expect": "allow"},
             {"it": "hides it from others", "as": "eve", "get": "rooms/r1", "expect": "deny", "line": 7}]}

      A case makes one request: get, list, listGroup, pipeline, create, set, update, delete or commit. For storage
      rules (service firebase.storage), the request is read, get, list, create, update or delete; "files" contains the
      existing files by name, and "data" contains the properties of the upload:

          {"it": "accepts small pictures", "as": "ann", "create": "avatars/ann",
           "data": {"size": 2048, "contentType": "image/png"}, "expect": "allow"}

      docs/rules.md describes the format. The JSON of Firebase's rules test API (testSuite.testCases) is accepted too.

      The exit code is 0 if all cases pass, 1 if a case fails, and 65 if a file is invalid.
      """,
    examples: [
      ("hearth rules test rules/*.tests.json", "all test files of a folder"),
      ("hearth rules test chat.tests.json --watch", "while writing rules"),
      ("hearth rules test rules/*.tests.json --junit results.xml --lcov rules.info", "in CI"),
      ("hearth rules test chat.tests.json --mutate", "the changes to the rules that no case detects"),
    ],
    run: { arguments in
      guard arguments.has("watch") else { return try RulesTestRun(arguments).report() }
      return watch(arguments)
    })

  /// Runs the tests after every change of a file, until the program is interrupted.
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
      Terminal.error.write(Terminal.error.faint("watching \(CountText.of(files.count, "file"))\n"))
      FileChange.wait(for: files)
    }
  }
}

/// One run of all test files.
struct RulesTestRun {
  private let arguments: Arguments
  private var runs: [SuiteRun] = []
  private var coverages: [Coverage] = []
  private var mutations: [MutationTest] = []
  private let milliseconds: Double

  /// Reads the test files and runs their cases.
  /// - Throws: ``CommandFailure`` or `FixtureTreeError` if a file is invalid.
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

  /// The files that the run depends on.
  var files: [String] { runs.flatMap(\.suite.files) }

  /// Prints the results, writes the requested files, and returns the exit code.
  /// - Throws: ``CommandFailure`` if a file cannot be written.
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
      if !run.failures.isEmpty { counts += ", \(Terminal.output.red("\(run.failures.count) failed"))" }
      if run.skippedCount > 0 { counts += ", \(run.skippedCount) skipped" }
      text += "\(run.suite.file): \(counts)\n"
    }
    for mutation in mutations {
      text += "\(mutation.file): \(CountText.of(mutation.count, "mutation")), "
      text += mutation.survivors.isEmpty ? "all detected\n" : "\(mutation.survivors.count) not detected by any case:\n"
      for survivor in mutation.survivors {
        text += "  \(mutation.file):\(survivor.line): \(TerminalText.line(survivor.change))\n"
      }
    }
    let outcome = failed == 0 ? Terminal.output.green("all passed") : Terminal.output.red("\(failed) failed")
    let tenths = Int((milliseconds * 10).rounded())
    let count = passed + failed
    text += "\(CountText.of(count, "case")), \(outcome) (\(tenths / 10).\(tenths % 10) ms)\n"
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

/// Writes the text files that a verb produces.
enum TextFile {
  /// Writes a file, replacing its old content.
  /// - Throws: ``CommandFailure`` if the file cannot be written.
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

/// Waits for changes of files.
enum FileChange {
  private static let pollMilliseconds: UInt32 = 200

  /// Returns as soon as one of the files has changed. It finds files by name, because editors replace them.
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
