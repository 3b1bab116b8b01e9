import FixtureTree
import RulesEngine
import RulesTesting
import WireFormat

extension Command {
  /// Says what is wrong with rulesets.
  static let rulesCheck = Command(
    name: "rules check", summary: "Compiles security rules and says what is wrong or looks wrong.",
    operands: "FILE…", operandCount: 1...Int.max,
    options: [.flag("json", "print JSON")],
    details: """
      Errors keep a ruleset from being loaded. Warnings are what Firestore warns of too; lint is what compiles, but is
      hardly meant so: writes for everybody, blocks that never match, names that look misspelt. Exit code 0, or 65 where
      there is an error.
      """,
    examples: [
      ("hearth rules check firestore.rules storage.rules", ""),
      ("hearth rules check rules/*.rules --json", "for programs"),
    ],
    run: { arguments in
      var checks: [(file: String, diagnostics: [Diagnostic])] = []
      for file in arguments.operands {
        checks.append((file, try RulesFile.diagnostics(of: RulesFile.read(file))))
      }
      Terminal.output.write(arguments.has("json") ? json(checks) : Array(text(checks).utf8))
      let hasErrors = checks.contains { $0.diagnostics.contains { $0.severity == .error } }
      return hasErrors ? ExitCode.data : 0
    })

  private static func text(_ checks: [(file: String, diagnostics: [Diagnostic])]) -> String {
    var text = ""
    for (file, diagnostics) in checks {
      for diagnostic in diagnostics { text += diagnostic.rendered(file: file) + "\n" }
      let counts: [(Diagnostic.Severity, String)] = [(.error, "error"), (.warning, "warning"), (.lint, "lint remark")]
      let found = counts.compactMap { severity, name in
        let count = diagnostics.count { $0.severity == severity }
        return count == 0 ? nil : "\(count) \(name)\(count == 1 ? "" : "s")"
      }
      text += "\(file): \(found.isEmpty ? "ok" : found.joined(separator: ", "))\n"
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

/// Files of rules, read and compiled for the command line.
enum RulesFile {
  /// The text of a file.
  static func read(_ file: String) throws -> String {
    // One byte more, so that the compiler says itself what is too long.
    String(decoding: try ByteSource(file: file).readAll(bytesMax: SourceText.bytesMax + 1), as: UTF8.self)
  }

  /// Everything there is to say about a ruleset.
  static func diagnostics(of text: String) -> [Diagnostic] {
    do throws(RulesetError) {
      return try Ruleset(compiling: text).diagnostics
    } catch {
      return error.diagnostics
    }
  }

  /// A ruleset, for files where the text has rules for nothing else.
  /// - Throws: ``CommandFailure`` with every error, as `hearth rules check` shows it.
  static func compile(_ text: String, file: String) throws -> Ruleset {
    do throws(RulesetError) {
      return try Ruleset(compiling: text, service: RuleTestSuite.service(of: text))
    } catch {
      let errors = error.diagnostics.filter { $0.severity == .error }.map { $0.rendered(file: file) }
      throw CommandFailure.data("\(file) does not compile\n\(errors.joined(separator: "\n"))")
    }
  }
}
