import Synchronization

/// The outcomes of the scheduled backups of a server, for metrics.
package final class BackupOutcomes: Sendable {
  private let success = Atomic(0)
  private let failed = Atomic(0)

  /// Creates outcomes before the first backup.
  package init() {}

  /// The time of the last complete backup, in seconds since 1970, or 0.
  package var lastSuccessSeconds: Int { success.load(ordering: .relaxed) }
  /// The number of failures since the start of the server.
  package var failures: Int { failed.load(ordering: .relaxed) }

  /// Notes that a backup was completed, or that a recent one exists, at a time in seconds since 1970.
  package func noteSuccess(atSeconds seconds: Int) { success.store(seconds, ordering: .relaxed) }

  /// Notes that a backup failed.
  package func noteFailure() { failed.wrappingAdd(1, ordering: .relaxed) }
}
