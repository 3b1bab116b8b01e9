import Testing
import TestSupport

/// A cluster under load whose PostgreSQL ends and starts again, or is replaced by its standby.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterEngineTests {
  /// A restart of PostgreSQL, which waits for the disk before it answers.
  @Test(arguments: [false, true]) func clientsWaitWhilePostgresRestarts(killed: Bool) async throws {
    try await onDedicatedThread {
      let postgres = try PostgresServer(settings: [])
      let run = try FaultRun(ServedCluster(on: postgres))
      for _ in 0..<2 {
        if killed { postgres.kill() } else { postgres.stop() }
        try postgres.restart()
        try run.commit(100)
      }
      try run.finish(killed ? "PostgreSQL killed" : "PostgreSQL restarted")
    }
  }

  /// The primary dies, and its synchronous standby is promoted. The nodes change to it by themselves.
  @Test func aSynchronousStandbyLosesNothing() async throws {
    try await onDedicatedThread {
      let primary = try PostgresServer()
      try primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'", in: "postgres")
      let standby = try PostgresServer(standbyOf: primary)
      try primary.sql("SELECT pg_reload_conf()", in: "postgres")
      let isSynchronous = try OtherProcess.eventually {
        try primary.sql("SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'", in: "postgres") == "1"
      }
      try #require(isSynchronous)
      let run = try FaultRun(ServedCluster(on: primary, standby: standby))
      primary.kill()
      try standby.sql("SELECT pg_promote()", in: "postgres")
      // The new primary waits for a standby of its own: what it writes is visible, but not acknowledged.
      let isWaiting = try OtherProcess.eventually(secondsMax: 30) {
        try standby.sql("SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep'", in: "postgres") == "t"
      }
      #expect(isWaiting)
      try standby.sql("ALTER SYSTEM RESET synchronous_standby_names", in: "postgres")
      try standby.sql("SELECT pg_reload_conf()", in: "postgres")
      try run.commit(100)
      try run.finish("failover to a synchronous standby")
    }
  }

  /// A way in which Patroni changes the primary.
  enum Change: String, CaseIterable {
    case switchover
    case serverKilled
    case machineKilled
  }

  /// Patroni makes the standby the primary, and the former primary its standby. The nodes follow, with the URL that names both.
  @Test(.needs(.tool(.etcd)), .needs(.tool(.patroni)), arguments: Change.allCases)
  func clustersFollowPatroni(change: Change) async throws {
    try await onDedicatedThread {
      let servers = try PatroniServers()
      let run = try FaultRun(ServedCluster(on: servers))
      let former =
        switch change {
        case .switchover: try servers.switchOver()
        case .serverKilled: try servers.killPrimary()
        case .machineKilled: try servers.killPrimaryMachine()
        }
      try servers.waitForStandby(insteadOf: former)
      try run.commit(100)
      try run.finish("Patroni, \(change.rawValue)", gapMax: change == .machineKilled ? 60_000 : 30_000)
    }
  }
}
