import FixtureTree
import RulesEngine
import RulesTesting
import WireFormat

extension Command {
  /// Compiles rulesets and prints their diagnostics.
  static let rulesCheck = Command(
    name: "rules check", summary: "Compiles security rules and reports errors, warnings and probable mistakes.",
    operands: "FILE…", operandCount: 1...Int.max,
    options: [
      .flag("strict", "also exit with 65 if a file has warnings, for CI"),
      .flag("json", "print JSON"),
    ],
    details: """
      With an error, a server does not load the ruleset. Warnings are those that Firestore also reports, and conditions
      that have expired, such as those of the test rules that the Firebase console offers. Lint warns about code that
      compiles but is probably a mistake: writes that any caller may make, blocks that never match, names that look
      misspelled.

      After a syntax error, the verb continues with the next statement or block. It reports warnings and lint only if
      the file has no syntax error.

      The exit code is 65 if a file has an error, and with --strict also if a file has a warning; otherwise it is 0.
      """,
    examples: [
      ("hearth rules check --strict rules/*.rules", "in CI"),
      ("hearth rules check firestore.rules storage.rules", "rules for documents and for files"),
      ("hearth rules check rules/*.rules --json", "for programs"),
    ],
    run: { arguments in
      var checks: [(file: String, diagnostics: [Diagnostic])] = []
      let now = RulesTestRun.now()
      for file in arguments.operands {
        checks.append((file, Ruleset.diagnostics(of: try RulesFile.read(file), at: now)))
      }
      Terminal.output.write(arguments.has("json") ? json(checks) : Array(text(checks).utf8))
      let failing: [Diagnostic.Severity] = arguments.has("strict") ? [.error, .warning] : [.error]
      return checks.contains { $0.diagnostics.contains { failing.contains($0.severity) } } ? ExitCode.data : 0
    })

  private static func text(_ checks: [(file: String, diagnostics: [Diagnostic])]) -> String {
    var text = ""
    for (file, diagnostics) in checks {
      for diagnostic in diagnostics { text += diagnostic.rendered(file: file, mark: RulesFile.mark) + "\n" }
      let counts: [(Diagnostic.Severity, String)] = [(.error, "error"), (.warning, "warning"), (.lint, "lint remark")]
      let found = counts.compactMap { severity, name in
        let count = diagnostics.count { $0.severity == severity }
        return count == 0 ? nil : RulesFile.mark(severity, CountText.of(count, name))
      }
      text += "\(file): \(found.isEmpty ? Terminal.output.green("ok") : found.joined(separator: ", "))\n"
    }
    return text
  }

  private static func json(_ checks: [(file: String, diagnostics: [Diagnostic])]) -> [UInt8] {
    JSONWriter.report { json in
      json.add("files", checks) { check, json in
        json.add("file", check.file)
        json.add("ok", !check.diagnostics.contains { $0.severity == .error })
        json.add("diagnostics", check.diagnostics) { diagnostic, json in
          json.add("severity", diagnostic.severity.rawValue)
          json.add("message", diagnostic.message)
          json.add("suggestion", diagnostic.suggestion)
          json.add("line", diagnostic.line)
          json.add("column", diagnostic.column)
          json.add("start", diagnostic.range.lowerBound)
          json.add("end", diagnostic.range.upperBound)
        }
      }
    }
  }
}

/// Reads and compiles rules files for the command line.
enum RulesFile {
  /// Returns the text of a file.
  /// - Throws: `FixtureTreeError` if the file cannot be read.
  static func read(_ file: String) throws -> String {
    // Read one byte more than the limit, so that the compiler reports a text that is too long.
    String(decoding: try ByteSource(file: file).readAll(bytesMax: SourceText.bytesMax + 1), as: UTF8.self)
  }

  /// Returns a text in the color of a severity.
  static func mark(_ severity: Diagnostic.Severity, _ text: String) -> String {
    switch severity {
    case .error: Terminal.output.red(text)
    case .warning: Terminal.output.yellow(text)
    case .lint: Terminal.output.cyan(text)
    }
  }

  /// Compiles a ruleset: for Firestore, or for files if the text contains rules for files only.
  /// - Throws: ``CommandFailure`` with every error, in the form of `hearth rules check`, if the text does not compile.
  static func compile(_ text: String, file: String) throws -> Ruleset {
    do throws(RulesetError) {
      return try Ruleset(compiling: text, service: RuleTestSuite.service(of: text))
    } catch {
      let all = Ruleset.diagnostics(of: text, at: RulesTestRun.now())
      let errors = all.filter { $0.severity == .error }.map { $0.rendered(file: file) }
      throw CommandFailure.data("\(file) does not compile\n\(errors.joined(separator: "\n"))")
    }
  }
}
