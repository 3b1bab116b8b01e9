import WireFormat

/// What `hearth doctor` found out about one thing.
struct Finding: Equatable {
  /// How much it matters.
  enum Level: String {
    /// As it should be.
    case ok
    /// Works, but is hardly meant so, or will not work for long.
    case warning
    /// The server would not start, would not keep data safe, or would let strangers in.
    case problem
  }

  var level: Level
  /// What was looked at, in a word or two.
  var topic: String
  /// What was found.
  var text: String
  /// What to do about it; `nil` where nothing is to be done.
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
  /// A line each, and what to do below it.
  func table(on terminal: Terminal) -> String {
    let width = map(\.topic.count).max() ?? 0
    var text = ""
    for finding in self {
      let level = finding.level.rawValue + String(repeating: " ", count: 9 - finding.level.rawValue.count)
      let shown =
        finding.level == .problem
        ? terminal.red(level) : finding.level == .warning ? terminal.bold(level) : level
      let topic = finding.topic + String(repeating: " ", count: width - finding.topic.count)
      text += "\(shown)\(topic)  \(finding.text)\n"
      if let advice = finding.advice {
        text += String(repeating: " ", count: 11 + width) + terminal.faint(advice) + "\n"
      }
    }
    let problems = count { $0.level == .problem }
    let warnings = count { $0.level == .warning }
    text += "\(problems) problem\(problems == 1 ? "" : "s"), \(warnings) warning\(warnings == 1 ? "" : "s")\n"
    return text
  }

  /// The same for programs.
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
