import DocumentModel
import RulesEngine
package import WireFormat

extension SuiteRun {
  /// Returns lines that explain why a case failed: the expected result, then the decisions as trees.
  package func explanation(of result: Result) -> [String] {
    let test = result.test
    var lines: [String] = []
    let got = result.verdict.isAllowed
    if got == test.expectsAllow, let line = test.expectedLine {
      lines.append("\(got ? "allowed" : "denied") as expected, but not by line \(line) of the rules")
    } else {
      lines.append("expected \(test.expectsAllow ? "allow" : "deny"), got \(got ? "allow" : "deny")")
    }
    if let refusal = result.verdict.refusal { lines.append("denied: \(refusal)") }
    // If a request was wrongly denied, the last part denied it. If it was wrongly allowed, every part allowed it.
    for part in got ? result.verdict.parts[...] : result.verdict.parts.suffix(1) {
      lines += DecisionText.lines(part, ruleset, file: suite.rulesFile)
    }
    return lines
  }

  /// Returns the runs as JUnit XML. `seconds` is the duration of all runs together.
  package static func junit(_ runs: [SuiteRun], seconds: Double) -> String {
    func attributes(_ cases: Int, _ failures: Int) -> String { "tests=\"\(cases)\" failures=\"\(failures)\"" }
    let cases = runs.reduce(0) { $0 + $1.results.count }
    let failures = runs.reduce(0) { $0 + $1.failures.count }
    var text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    text += "<testsuites \(attributes(cases, failures)) time=\"\(decimal(seconds))\">\n"
    for run in runs {
      let file = HTMLText.escaped(run.suite.file)
      text += "  <testsuite name=\"\(file)\" \(attributes(run.results.count, run.failures.count))>\n"
      for result in run.results {
        let name = HTMLText.escaped(result.test.name)
        text += "    <testcase classname=\"\(file)\" name=\"\(name)\" file=\"\(file)\" line=\"\(result.test.fileLine)\""
        if result.isPassed {
          text += "/>\n"
          continue
        }
        let lines = run.explanation(of: result)
        text += ">\n      <failure message=\"\(HTMLText.escaped(lines.first ?? ""))\">"
        text += lines.map(HTMLText.escaped).joined(separator: "\n") + "</failure>\n    </testcase>\n"
      }
      text += "  </testsuite>\n"
    }
    return text + "</testsuites>\n"
  }

  /// Returns seconds with three decimals.
  private static func decimal(_ seconds: Double) -> String {
    let thousandths = String(Int((seconds * 1000).rounded()) + 1000)
    return "\((Int(thousandths) ?? 1000) / 1000 - 1).\(thousandths.suffix(3))"
  }

  /// Writes the run as an element of an array: its file, its counts, and every case with its outcome.
  package func append(to json: inout JSONWriter) {
    json.beginObject()
    json.key("file")
    json.string(suite.file)
    json.key("rules")
    json.string(suite.rulesFile)
    json.key("passed")
    json.number(passedCount)
    json.key("failed")
    json.number(failures.count)
    json.key("skipped")
    json.number(skippedCount)
    json.key("cases")
    json.beginArray()
    for result in results {
      json.beginObject()
      json.key("it")
      json.string(result.test.name)
      json.key("line")
      json.number(result.test.fileLine)
      json.key("expect")
      json.string(result.test.expectsAllow ? "allow" : "deny")
      json.key("got")
      json.string(result.verdict.isAllowed ? "allow" : "deny")
      json.key("passed")
      json.bool(result.isPassed)
      if let line = result.verdict.parts.last?.decision.line {
        json.key("allowedBy")
        json.number(line)
      }
      if !result.isPassed {
        json.key("why")
        json.beginArray()
        for line in explanation(of: result) { json.string(line) }
        json.endArray()
      }
      json.endObject()
    }
    json.endArray()
    json.endObject()
  }
}
