import WireFormat

/// A result of `hearth doctor`.
struct Finding: Equatable {
  /// The importance of a finding.
  enum Level: String {
    /// Nothing to do.
    case ok
    /// It works, but is probably a mistake, or will soon fail.
    case warning
    /// The server would not start, would lose data, or would give unauthorized callers access.
    case problem
  }

  var level: Level
  /// The subject, in one or two words.
  var topic: String
  /// The finding.
  var text: String
  /// The remedy; `nil` if nothing is to be done.
  var advice: String?

  static func ok(_ topic: String, _ text: String) -> Finding {
    Finding(level: .ok, topic: topic, text: text)
  }

  static func warning(_ topic: String, _ text: String, _ advice: String) -> Finding {
    Finding(level: .warning, topic: topic, text: text, advice: advice)
  }

  static func problem(_ topic: String, _ text: String, _ advice: String) -> Finding {
    Finding(level: .problem, topic: topic, text: text, advice: advice)
  }
}

extension [Finding] {
  /// Returns a line for each finding, followed by its remedy, and a summary.
  func table(on terminal: Terminal) -> String {
    let width = map(\.topic.count).max() ?? 0
    var text = ""
    for finding in self {
      let level = finding.level.rawValue + String(repeating: " ", count: 9 - finding.level.rawValue.count)
      let shown =
        switch finding.level {
        case .ok: terminal.green(level)
        case .warning: terminal.yellow(level)
        case .problem: terminal.red(level)
        }
      let topic = finding.topic + String(repeating: " ", count: width - finding.topic.count)
      text += "\(shown)\(topic)  \(finding.text)\n"
      if let advice = finding.advice {
        text += String(repeating: " ", count: 11 + width) + terminal.faint(advice) + "\n"
      }
    }
    let problems = count { $0.level == .problem }
    let warnings = count { $0.level == .warning }
    text += "\(CountText.of(problems, "problem")), \(CountText.of(warnings, "warning"))\n"
    return text
  }

  /// Returns the findings as JSON.
  func json() -> [UInt8] {
    JSONWriter.report { json in
      json.add("ok", !contains { $0.level == .problem })
      json.add("findings", self) { finding, json in
        json.add("level", finding.level.rawValue)
        json.add("topic", finding.topic)
        json.add("text", finding.text)
        json.add("advice", finding.advice)
      }
    }
  }
}
