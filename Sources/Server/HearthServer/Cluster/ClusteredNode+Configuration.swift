import Dispatch
import DocumentStore
import GatewayCore
import PostgresEngine
import Replication
import SharedLog
import Synchronization

/// The deployed configuration of a node, and the answer to losses of PostgreSQL.
extension ClusteredNode {
  /// Returns the configuration of the server with the deployed files.
  func configuration(with deployed: ClusterConfiguration) throws(HearthError) -> HearthConfiguration {
    var configuration = configuration
    configuration.project = project
    configuration.clock = Clock { [tables, clock = configuration.clock] in min(clock.now(), tables.timeLimit ?? .max) }
    try self.deployed.apply(deployed, to: &configuration)
    return configuration
  }

  /// Puts a configuration in force that was deployed. If it changes more than the texts of rules, the project is opened
  /// again, and its requests wait meanwhile.
  func reconfigure(_ version: Int64) throws(PostgresFailure) {
    let (epoch, before) = state.withLock { ($0.epoch, $0) }
    guard let epoch, version > before.version, let newest = try catalog.configuration(newerThan: before.version) else {
      return
    }
    do throws(HearthError) {
      try deployed.write(newest.1)
      if Self.changesOnlyRules(before.deployed, newest.1), let stack = owned.stack {
        // Nobody reads by the former rules after a commit was judged by the new ones.
        member.feed.setConfiguration(nil)
        try reloadRules(of: stack)
        state.withLock { ($0.version, $0.deployed) = newest }
        member.feed.setConfiguration(newest.version)
      } else {
        door.serveNothing()
        owner.set(nil)
        try serve(newest, epoch, before.floor)
      }
      configuration.log(.info, "cluster.configured", "configuration \(newest.version) is in force")
    } catch {
      configuration.log(
        .error, "cluster.configuration", "configuration \(newest.version) cannot be used: \(error.description)")
      state.withLock { $0.restsUntil = .now() + .seconds(Self.restSeconds) }
      updateMayOwn()
    }
  }

  static func changesOnlyRules(_ old: ClusterConfiguration, _ new: ClusterConfiguration) -> Bool {
    old.parts.count == new.parts.count
      && zip(old.parts, new.parts).allSatisfy { old, new in
        old.kind == new.kind && old.database == new.database && (old.kind != .indexes || old.text == new.text)
      }
  }

  /// Reads the deployed rules again.
  /// - Throws: ``HearthError/data(_:)`` if some are not in force afterwards.
  func reloadRules(of stack: ProjectStack) throws(HearthError) {
    stack.reloadRules()
    guard stack.staleRulesFiles == 0 else {
      throw .data("the deployed rules cannot be put in force; the log says why")
    }
  }

  /// Stores the configuration of this node again if PostgreSQL has lost it: another one that is deployed would get its number,
  /// and would not be put in force. If that has happened already, which is possible after an outage only, stores the other one
  /// under a number of its own. `newest` is the version that PostgreSQL has.
  func restoreConfiguration(_ newest: Int64, afterOutage: Bool) throws(PostgresFailure) {
    let own = state.withLock { $0.epoch == nil ? $0.followed : ($0.version, $0.deployed) }
    guard let (version, deployed) = own else { return }
    if version == newest, afterOutage, let other = try catalog.configuration(version: version), other != deployed {
      guard try catalog.deploy(other, after: version) != nil else { return }
      configuration.log(
        .error, "cluster.configuration",
        "PostgreSQL lost configuration \(version), and another one was deployed with its number; it is put in force as "
          + "\(version + 1)")
      return
    }
    guard version > newest else { return }
    var wanted = deployed
    for last in newest..<version {
      guard try catalog.deploy(wanted, after: last) == nil else { continue }
      // Another node does the same, or somebody deploys a newer one.
      if let other = try catalog.configuration(version: last + 1) { wanted = other }
    }
    // It has a number that this node takes for known.
    if wanted != deployed { _ = try catalog.deploy(wanted, after: version) }
    configuration.log(
      .error, "cluster.configuration",
      "PostgreSQL lost configuration \(version), which was deployed; "
        + (wanted == deployed
          ? "node \(number) has stored it again" : "another one was deployed meanwhile, and is put in force"))
  }

  // MARK: Losses

  /// If a node reported that the log lost commits, gives each database a new incarnation before it is opened: clients that
  /// have seen a lost commit begin anew.
  func answerLoss() throws(HearthError) {
    do {
      guard let loss = try catalog.state().unansweredLoss else { return }
      for name in replica.databases { try DocumentDatabase.renewIncarnation(try member.store(name)) }
      try catalog.answer(loss)
      configuration.log(
        .error, "cluster.loss",
        "PostgreSQL lost commits that it had acknowledged; node \(loss.node) has noticed it. Listeners and feeds begin anew",
        [("node", .integer(Int(loss.node)))])
    } catch { throw Self.error(error) }
  }

  /// Opens the project again, because the log lost commits.
  func renew() {
    let before = state.withLock { $0 }
    guard let epoch = before.epoch else { return }
    door.serveNothing()
    owner.set(nil)
    do throws(HearthError) { try serve((before.version, before.deployed), epoch, before.floor) } catch {
      configuration.log(.error, "cluster.loss", "the project cannot be opened again: \(error.description)")
      state.withLock { $0.restsUntil = .now() + .seconds(Self.restSeconds) }
      updateMayOwn()
    }
  }
}
