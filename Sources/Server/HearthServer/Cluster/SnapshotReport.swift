import LogEngine
import Replication
import SharedLog

/// The lines of the log about snapshots of a cluster.
enum SnapshotReport {
  /// Reports a step of loading a replica.
  static func log(_ event: JoinEvent, node: UInt32, _ configuration: HearthConfiguration) {
    switch event {
    case .began(nil):
      configuration.log(
        .info, "cluster.joining", "node \(node) has no data yet, and loads the newest snapshot if there is one")
    case .began(.truncated?):
      configuration.log(
        .warn, "cluster.joining",
        "the log of the cluster no longer has the entries after the data of node \(node), so it loads the newest snapshot"
      )
    case .began(let error?):
      configuration.log(
        .error, "cluster.diverged",
        "the data of node \(node) do not continue the log of the cluster, so they are set aside, and the newest snapshot is "
          + "loaded: \(error.reason)")
    case .loading(let bytes, let total):
      let percent = total > 0 ? Int(Double(bytes) / Double(total) * 100) : 100
      configuration.log(
        .info, "cluster.loading", "\(bytes >> 20) of \(total >> 20) MiB of the snapshot are loaded, \(percent)%",
        [("bytes", .integer(Int(bytes))), ("total", .integer(Int(total)))])
    case .failed(let reason):
      configuration.log(
        .error, "cluster.joining", "the data of node \(node) could not be loaded, which is tried again: \(reason)")
    case .ended(let position, let aside):
      configuration.log(
        .info, "cluster.joining", "node \(node) continues the log after entry \(position.sequence)",
        [("entry", .integer(Int(clamping: position.sequence)))])
      guard let aside else { return }
      configuration.log(
        .error, "cluster.diverged",
        "the former data are in the folder \(aside) of the data directory; they may have commits that were acknowledged and "
          + "that PostgreSQL lost; read them with: hearth export --data")
    }
  }

  /// Reports what a node did about snapshots.
  static func log(_ event: SnapshotKeeper.Event, _ configuration: HearthConfiguration) {
    switch event {
    case .written(let head, let milliseconds):
      configuration.log(
        .info, "cluster.snapshot",
        "wrote a snapshot at entry \(head.position.sequence): \(head.fileBytes >> 20) MiB of data as \(head.bytes >> 20) MiB, "
          + "in \(milliseconds) ms",
        [
          ("entry", .integer(Int(clamping: head.position.sequence))), ("bytes", .integer(Int(head.bytes))),
          ("milliseconds", .integer(Int(milliseconds))),
        ])
    case .failed(let reason):
      configuration.log(.warn, "cluster.snapshot", "work on snapshots failed, and is tried again: \(reason)")
    case .truncated(let sequence):
      configuration.log(
        .info, "cluster.truncated", "the log begins with entry \(sequence)",
        [("entry", .integer(Int(clamping: sequence)))])
    }
  }
}
