package import Basics
package import Transport

/// The parts of a server that a gateway needs to report its state to operators.
package struct OperationsService: Sendable {
  /// The counters of the event loops that serve clients.
  package var counters: TransportCounters
  /// Returns the short names of the parts that are not ready. It reads the disk, so do not call it on a loop.
  package var unready: @Sendable () -> [String]
  /// The program's version.
  package var version: String
  /// Returns the number of lines that the log dropped.
  package var droppedLogLines: @Sendable () -> Int
  /// Returns the number of rules files whose latest version does not compile and is not in force.
  package var staleRulesFiles: @Sendable () -> Int
  /// The outcomes of the scheduled backups, or `nil` if none are scheduled.
  package var backups: BackupOutcomes?
  /// Returns the part of this server in a cluster, or `nil` if it is a server alone.
  package var cluster: @Sendable () -> ClusterReading?
  /// The addresses of the services of an emulator.
  package var hub: EmulatorHub

  package init(
    counters: TransportCounters, version: String, unready: @escaping @Sendable () -> [String],
    droppedLogLines: @escaping @Sendable () -> Int = { 0 }, staleRulesFiles: @escaping @Sendable () -> Int = { 0 },
    backups: BackupOutcomes? = nil, cluster: @escaping @Sendable () -> ClusterReading? = { nil },
    hub: EmulatorHub = EmulatorHub()
  ) {
    self.counters = counters
    self.version = version
    self.unready = unready
    self.droppedLogLines = droppedLogLines
    self.staleRulesFiles = staleRulesFiles
    self.backups = backups
    self.cluster = cluster
    self.hub = hub
  }
}
