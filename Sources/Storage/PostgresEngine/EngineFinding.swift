/// A result of a check of PostgreSQL: a setting, its effect on a cluster, and the remedy.
package struct EngineFinding: Equatable, Sendable {
  /// The importance of a finding.
  package enum Level: Equatable, Sendable {
    case ok
    /// A cluster works, but less well than it could.
    case warning
    /// PostgreSQL may lose commits that it acknowledged. Only an operator can accept that.
    case loss
    /// A cluster cannot work.
    case error
  }

  package let level: Level
  /// The setting or the subject.
  package let topic: String
  package let text: String
  /// The remedy; `nil` if nothing is to be done.
  package let advice: String?

  package init(_ level: Level, _ topic: String, _ text: String, _ advice: String? = nil) {
    self.level = level
    self.topic = topic
    self.text = text
    self.advice = advice
  }
}
