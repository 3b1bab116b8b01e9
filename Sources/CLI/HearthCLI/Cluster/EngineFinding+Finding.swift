import PostgresEngine

extension Finding {
  /// Converts a finding about PostgreSQL. Once an operator has accepted the loss of commits, it is a warning.
  init(_ finding: EngineFinding, acceptsLoss: Bool) {
    let level: Level =
      switch finding.level {
      case .ok: .ok
      case .warning: .warning
      case .loss: acceptsLoss ? .warning : .problem
      case .error: .problem
      }
    self.init(level: level, topic: finding.topic, text: TerminalText.line(finding.text), advice: finding.advice)
  }
}
