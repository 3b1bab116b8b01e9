package import Accounts
package import DatabaseService

/// The facts and actions of the console of a production server besides the APIs of the project.
package struct ConsoleFacts: Sendable {
  /// The sessions of the project's operators.
  package let sessions: OperatorSessions
  /// The rules in force.
  package let rules: RulesRegistry
  /// Whether the server has other projects, so that operators of this one must not see the server's own facts.
  package let hasOtherProjects: Bool
  /// The configuration in force as JSON, without secrets, or `nil`.
  package let configuration: [UInt8]?
  /// The backups of the data directory, or `nil` if the server makes none.
  package let backups: BackupActions?
  /// The recording of decisions.
  package let recording: DecisionRecording
  /// Returns the nodes of the cluster as JSON, or `nil` if the server is alone.
  package let cluster: (@Sendable () -> [UInt8])?

  /// Creates the facts of a project.
  package init(
    sessions: OperatorSessions, rules: RulesRegistry, hasOtherProjects: Bool, configuration: [UInt8]?,
    backups: BackupActions?, recording: DecisionRecording, cluster: (@Sendable () -> [UInt8])? = nil
  ) {
    self.sessions = sessions
    self.rules = rules
    self.hasOtherProjects = hasOtherProjects
    self.configuration = configuration
    self.backups = backups
    self.recording = recording
    self.cluster = cluster
  }
}

/// The backups that a running server makes.
package struct BackupActions: Sendable {
  /// Passes the backups and the result of the last one as JSON to `take`, later and on another thread. Returns `false` if
  /// too many callers wait. It does not block.
  package let list: @Sendable (_ take: @escaping @Sendable ([UInt8]) -> Void) -> Bool
  /// Begins a backup in the background. Returns `false` if one is under way.
  package let create: @Sendable () -> Bool

  /// Creates the actions.
  package init(
    list: @escaping @Sendable (_ take: @escaping @Sendable ([UInt8]) -> Void) -> Bool,
    create: @escaping @Sendable () -> Bool
  ) {
    self.list = list
    self.create = create
  }
}
