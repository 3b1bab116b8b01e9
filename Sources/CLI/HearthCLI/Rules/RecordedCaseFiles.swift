import Glibc
import HearthServer
import RulesEngine
import RulesTesting

/// The test files that `--record-cases FILE` writes when the server ends: one for each ruleset. The second one is named
/// `NAME-2.tests.json` if FILE is `NAME.tests.json`, and so on.
///
/// A file names its rules by path if a rules file with the same text exists: one of the options or of `firebase.json`, or
/// `*.rules` in the working directory. Otherwise the text is written next to it, as `NAME.recorded.rules`.
struct RecordedCaseFiles {
  let recorder = CaseRecorder()
  private let file: String
  private let isQuiet: Bool
  /// The paths of the rules files of the project, those of options first.
  private let rulesFiles: [String]

  /// Returns `nil` if the option is not set.
  /// - Throws: ``CommandFailure`` if the directory of the file cannot be written, or the server is not in emulator mode.
  init?(_ arguments: Arguments, isEmulator: Bool) throws {
    guard let file = arguments.value("record-cases") else { return nil }
    guard isEmulator else {
      throw arguments.refusal(of: ["record-cases"], "records the data of requests; it needs --emulator")
    }
    let directory = file.utf8.lastIndex(of: UInt8(ascii: "/")).map { String(file.utf8[...$0]) ?? "" } ?? "."
    guard access(directory, W_OK) == 0 else {
      throw CommandFailure.failed("\(file) cannot be written: \(String(cString: strerror(errno)))")
    }
    self.file = file
    isQuiet = arguments.has("quiet")
    let settings = try? FirebaseFile.settings(isEmulator: true)
    let named = ["rules", "storage-rules"].flatMap { arguments.values($0) + (settings?[$0]?.values ?? []) }
    rulesFiles = named.map(Self.path) + Self.rulesFilesHere()
  }

  /// Writes the files, and prints a summary to standard error. Without any case, a file of an earlier recording stays.
  /// - Throws: ``CommandFailure`` if a file cannot be written.
  func write() throws {
    let (suites, outcome) = recorder.recording.finish()
    var files: [String] = []
    for (index, suite) in suites.enumerated() {
      let name = Self.name(file, number: index + 1)
      try TextFile.write(
        String(decoding: suite.text(rules: try rules(of: suite, beside: name)), as: UTF8.self), to: name)
      files.append(name)
    }
    for line in Self.problems(outcome) { Terminal.error.write("hearth: \(TerminalText.line(line))\n") }
    guard !isQuiet else { return }
    guard !files.isEmpty else {
      return Terminal.error.write(
        "hearth: no cases recorded: no rules decided a request; pass --rules FILE, or let the tests load rules"
          + "\(access(file, F_OK) == 0 ? "; \(TerminalText.line(file)) of an earlier recording stays as it was" : "")\n"
      )
    }
    let cases = suites.reduce(0) { $0 + $1.count }
    let counts = [
      CountText.of(cases, "case") + " from " + CountText.of(outcome.testCount, "test"),
      CountText.of(suites.count, "ruleset"),
    ]
    Terminal.error.write(
      "hearth: \(counts.joined(separator: ", ")); run: hearth rules test \(files.joined(separator: " "))\n")
  }

  /// Returns lines about the decisions that were left out.
  private static func problems(_ outcome: RecordingOutcome) -> [String] {
    let reasons = outcome.leftOut.sorted { a, b in
      a.value.count != b.value.count ? a.value.count > b.value.count : a.key.utf8.lexicographicallyPrecedes(b.key.utf8)
    }
    var lines = reasons.map { reason, found in
      "left out \(CountText.of(found.count, "decision")): \(reason), such as \(found.example)"
    }
    if outcome.beyondLimits > 0 {
      lines.append(
        "left out \(CountText.of(outcome.beyondLimits, "decision")): the recording reached its limit of "
          + "\(RecordingLimits.casesMax) cases, \(RecordingLimits.bytesMax >> 20) MiB or "
          + "\(RecordingLimits.rulesetsMax) rulesets; record parts of the test suite")
    }
    return lines
  }

  /// Returns the path of the rules relative to a test file. Writes their text if no rules file of the project has it.
  private func rules(of suite: RecordedSuite, beside name: String) throws -> String {
    let text = String(decoding: suite.ruleset.source.bytes, as: UTF8.self)
    let known = rulesFiles.first { file in (try? RulesFile.read(file)).map { $0.utf8.elementsEqual(text.utf8) } ?? false
    }
    if let known { return Self.relative(known, to: name) }
    let own = Self.split(name).stem + Self.ownEnding
    try TextFile.write(text, to: own)
    return Self.relative(own, to: name)
  }

  private static let ownEnding = ".recorded.rules"

  /// Returns the names of rules files in the working directory, without those that an earlier recording wrote.
  private static func rulesFilesHere() -> [String] {
    guard let directory = opendir(".") else { return [] }
    defer { closedir(directory) }
    var names: [String] = []
    while let entry = readdir(directory) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name.hasSuffix(".rules"), !name.hasSuffix(ownEnding) { names.append(name) }
    }
    return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
  }

  // MARK: Paths

  /// Returns the path of `FILE` or `DATABASE=FILE`.
  private static func path(_ value: String) -> String {
    guard !value.hasPrefix("./"), !value.hasPrefix("/") else { return value }
    return value.split(separator: "=", maxSplits: 1).last.map(String.init) ?? value
  }

  /// Returns the name of the file with a number. The first file has no number.
  static func name(_ file: String, number: Int) -> String {
    guard number > 1 else { return file }
    let (stem, ending) = split(file)
    return "\(stem)-\(number)\(ending)"
  }

  /// Splits a name before `.tests.json` or `.json`.
  private static func split(_ file: String) -> (stem: String, ending: String) {
    for ending in [".tests.json", ".json"] where file.hasSuffix(ending) && file.utf8.count > ending.utf8.count {
      return (String(file.dropLast(ending.count)), ending)
    }
    return (file, "")
  }

  /// Returns a path relative to the directory of a file. Both paths are relative to the working directory, or absolute.
  static func relative(_ path: String, to file: String) -> String {
    let (path, directory) = (components(path), components(file).dropLast())
    let common = zip(path, directory).prefix { $0 == $1 }.count
    return (Array(repeating: "..", count: directory.count - common) + path.dropFirst(common)).joined(separator: "/")
  }

  private static func components(_ path: String) -> [String] {
    var absolute = path
    if !path.hasPrefix("/"), let working = getcwd(nil, 0) {
      absolute = String(cString: working) + "/" + path
      free(working)
    }
    var components: [String] = []
    for part in absolute.utf8.split(separator: UInt8(ascii: "/")) where !part.elementsEqual(".".utf8) {
      if part.elementsEqual("..".utf8) { _ = components.popLast() } else { components.append(String(Substring(part))) }
    }
    return components
  }
}
