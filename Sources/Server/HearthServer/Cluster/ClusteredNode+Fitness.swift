import Dispatch
import KeyValue
import PostgresEngine
import Replication
import SharedLog
import Synchronization
import Transport

/// The facts that decide whether a node may own the cluster, and that the operator should know.
extension ClusteredNode {
  /// An owner whose clock differs much from those of others would break promises about the times of commits.
  func checkClock() {
    guard let clock = tables.clockMeasurement else { return }
    let isWrong = clock.isBeyond(timing.skew)
    let isNews = state.withLock { state in
      defer { state.hasWrongClock = isWrong }
      return state.hasWrongClock != isWrong
    }
    guard isNews else { return }
    let milliseconds = clock.difference / 1000
    configuration.log(
      isWrong ? .error : .info, "cluster.clock",
      isWrong
        ? "the clock of PostgreSQL's machine is \(milliseconds) ms ahead of this one, so this node cannot own the cluster; "
          + "synchronize the clocks with NTP"
        : "the clocks of this machine and PostgreSQL's agree again")
  }

  func checkDraining() {
    let isDraining = tables.isDraining
    let isNews = state.withLock { state in
      defer { state.isDraining = isDraining }
      return state.isDraining != isDraining
    }
    guard isNews else { return }
    configuration.log(
      .info, "cluster.draining",
      isDraining
        ? "node \(number) drains: another node is to own the cluster" : "node \(number) may own the cluster again")
  }

  /// Registers this node again if an operator removed it. Otherwise other nodes would not find it when it owns the cluster.
  func registerAgain(in cluster: ClusterState) throws(PostgresFailure) {
    guard cluster.member(number) == nil,
      try NodeRegistration.restore(
        number, at: place, address: address.description, software: Server.version, in: catalog)
    else { return }
    configuration.log(
      .warn, "cluster.registered",
      "node \(number) was removed from the cluster, but runs, so it registered again; stop it before you remove it")
  }

  /// An owner that cannot write to its disk would soon refuse commits, so it gives the cluster to another node that lives. The
  /// disks of all nodes may be full, so it owns the cluster again if no node has taken it after ``diskRestSeconds``, and then
  /// keeps it for ``diskPatienceSeconds``. It also keeps the cluster if the map is too small, because other nodes mostly have
  /// the same size.
  func checkDisk() {
    guard case .owner = member.status.role, !isCutOff, let failure = replica.writeFailure else { return }
    if case .storageFull = failure { return }
    let isDue = state.withLock { state in
      let hasOther = state.observed.map { cluster, alive in
        cluster.members.contains { $0.node != number && !$0.isDraining && alive.contains($0.node) }
      }
      guard hasOther == true, state.ownsUntil.map({ $0 <= .now() }) ?? true else { return false }
      state.restsUntil = .now() + .seconds(Self.diskRestSeconds)
      state.ownsUntil = .now() + .seconds(Self.diskPatienceSeconds)
      return true
    }
    guard isDue else { return }
    configuration.log(
      .error, "cluster.disk",
      "node \(number) cannot write its data files, so it gives the cluster to another node: \(failure.description)")
  }

  private static let diskRestSeconds = 10
  private static let diskPatienceSeconds = 600

  /// Logs why PostgreSQL refuses some requests of this node, although it answers others: for example, the role may read the log
  /// and not write to it, or a disk is full.
  func noteRefusal() {
    let refusal = tables.lastingFailure
    let former = state.withLock { state in
      defer { state.refusal = refusal?.state }
      return state.refusal
    }
    guard refusal?.state != former else { return }
    guard let refusal else {
      return configuration.log(.info, "cluster.postgres", "PostgreSQL performs the requests of this node again")
    }
    configuration.log(
      .error, "cluster.postgres", "PostgreSQL refuses requests that node \(number) needs: \(refusal.description)")
  }
}
