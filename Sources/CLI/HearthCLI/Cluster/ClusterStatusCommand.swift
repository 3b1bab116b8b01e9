import PostgresEngine
import SharedLog

extension Command {
  /// Shows the nodes and the log of a cluster.
  static let clusterStatus = Command(
    name: "cluster status", summary: "Shows the nodes, the owner and the log of a cluster.", operands: "[POSTGRES-URL]",
    operandCount: 0...1, options: [.flag("json", "print JSON")],
    details: """
      Each node renews its session once a second. The verb watches for up to two seconds. A node is live if it renewed
      its session in that time, silent if not, and dead if other nodes have ended its session. The verb also shows what
      `hearth cluster init` checks in PostgreSQL.

      The exit code is 1 if no live node owns the cluster.

      \(ClusterAddress.details)
      """,
    examples: [
      ("hearth cluster status postgres://hearth@pg1,pg2/hearth", "for people"),
      ("hearth cluster status --json", "for programs, with the URL in HEARTH_CLUSTER"),
    ],
    run: { arguments in
      let url = try ClusterAddress.url(arguments.operands.first)
      let identity = try ClusterSchema.check(at: url)
      let findings = try EngineCheck.findings(at: url).map { Finding($0, acceptsLoss: identity.acceptsLoss) }
      let snapshots: [SnapshotHead]
      let tables = try PostgresSnapshots(url)
      do throws(SnapshotFailure) { snapshots = try tables.snapshots() } catch {
        throw CommandFailure.failed(error.text)
      }
      let status = try ClusterStatus.watched(identity, try ClusterCatalog(url), snapshots, findings)
      Terminal.output.write(arguments.has("json") ? status.json() : Array(status.text(on: .output).utf8))
      return status.hasOwner ? 0 : ExitCode.failure
    })
}
