package import Transport

/// What a gateway needs to tell operators how a server is.
package struct OperationsService: Sendable {
  /// What the loops that serve clients count.
  package var counters: TransportCounters
  /// Says what is not ready, by short names; empty where all is. Called away from loops, as it looks at the disk.
  package var unready: @Sendable () -> [String]
  /// Which version of the program this is.
  package var version: String
  /// Lines that the log did not take.
  package var droppedLogLines: @Sendable () -> Int
  /// Rules files whose last state is not in force, as it does not compile.
  package var staleRulesFiles: @Sendable () -> Int

  /// Joins the parts.
  package init(
    counters: TransportCounters, version: String, unready: @escaping @Sendable () -> [String],
    droppedLogLines: @escaping @Sendable () -> Int = { 0 }, staleRulesFiles: @escaping @Sendable () -> Int = { 0 }
  ) {
    self.counters = counters
    self.version = version
    self.unready = unready
    self.droppedLogLines = droppedLogLines
    self.staleRulesFiles = staleRulesFiles
  }
}
