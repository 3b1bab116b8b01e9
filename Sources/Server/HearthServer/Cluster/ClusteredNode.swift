import Dispatch
import Gateway
import GatewayCore
import Glibc
import KeyValue
import OperationsAPI
import PostgresEngine
import Replication
import SharedLog
import Synchronization
import Transport

/// A server as a node of a cluster: its replica and its part in the protocol, its address for other nodes, and its door for
/// requests.
///
/// 1. The node registers its address, applies the log, and relays requests to the owner.
/// 2. If it becomes the owner, it opens the project on its replica (``OwnedProject``), with the deployed configuration.
/// 3. If another node owns the cluster, it closes the project and relays again.
final class ClusteredNode: Sendable {
  /// Handles the requests of clients.
  let door: ClusterDoor
  /// The project while this node owns the cluster.
  let owned: OwnedProject

  private struct State {
    /// The epoch in which the project is open here.
    var epoch: UInt64?
    /// The deployed configuration that the project has, and its version.
    var deployed = ClusterConfiguration()
    var version: Int64 = 0
    /// The time before which this node wants to own nothing, because it could not open the project.
    var restsUntil: DispatchTime?
    var isDraining = false
    var hasWrongClock = false
    /// The floor of the epoch.
    var floor = Int64.min
    var isStopping = false
    /// Why PostgreSQL could not be asked the last time.
    var problem: String?
  }

  private let configuration: HearthConfiguration
  private let project: String
  let member: ClusterMember
  /// The times that this node became the owner.
  let takeovers = Atomic(0)
  private let tables: PostgresTables
  private let catalog: ClusterCatalog
  private let peers: NodeServer
  private let address: NodeAddress
  private let relay: Relay
  private let owner: OwnerAddress
  private let deployed: DeployedFiles
  private let timing: ClusterTiming
  private let state = Mutex(State())
  /// Opens and closes the project, and asks PostgreSQL about the cluster.
  private let queue = DispatchQueue(label: "hearth.cluster.node", qos: .userInitiated)

  /// Joins a cluster: listens for other nodes, registers, and opens the replica. Nothing is served before ``start()``.
  ///
  /// - Parameters:
  ///   - limits: those of the server for clients.
  ///   - operations: the handler of `/healthz` and `/readyz`.
  ///   - makeOwned: makes the project, from a function that ends the requests which other nodes relayed to a stack.
  /// - Throws: ``HearthError`` if PostgreSQL, the key, the address or the directory cannot be used.
  init(
    _ configuration: HearthConfiguration, _ settings: ClusterSettings, _ directory: DataDirectory,
    limits: TransportConfiguration, operations: RequestDispatcher,
    makeOwned: (_ cancel: @escaping @Sendable (ObjectIdentifier) -> Void) -> OwnedProject
  ) throws(HearthError) {
    self.configuration = configuration
    var timing = ClusterTiming()
    // Others notice a handover with their next observation.
    timing.poll = 100_000
    self.timing = timing
    deployed = DeployedFiles(directory: directory.path)
    let events = NodeEvents()
    let owner = OwnerAddress()
    self.owner = owner
    do {
      let catalog = try ClusterCatalog(settings.url)
      self.catalog = catalog
      let identity = try catalog.identity()
      try identity.check(keyCheck: settings.key.check())
      guard configuration.project == nil || configuration.project == identity.project else {
        throw HearthError.configuration(
          "the cluster serves the project \(identity.project), not \(configuration.project ?? ""); omit --project")
      }
      project = identity.project
      guard let key = NodeKey(settings.key.bytes) else { throw ClusterKeyFailure.noDigest }
      var relaying = RelayConfiguration(limits: limits)
      relaying.isRepeatable = { request in HTTPGateway.repeatableRequests.repetition(of: request) != .never }
      relay = try Relay(key: key, configuration: relaying) { owner.target }
      door = ClusterDoor(relay, operations: operations)
      peers = try NodeServer(
        key: key, host: settings.peerAddress.host, port: settings.peerAddress.port, limits: limits,
        handler: door)
      address = try peers.start()
      let registration = try NodeRegistration.register(
        directory: directory.path, lockFile: directory.lockFile, address: address.description,
        software: Server.version, in: catalog, timing: timing)
      let files = ReplicaDirectory(directory: directory, project: project, mapBytes: configuration.mapBytes)
      let replica = try Replica(
        try files.files(), secret: identity.secret, sealed: SealedStores(seal: try AccountsSeal(settings.key)))
      tables = try PostgresTables(settings.url, secret: identity.secret, timing: timing)
      member = ClusterMember(number: registration.node, tables: tables, replica: replica, timing: timing) {
        events.node?.receive($0)
      }
    } catch { throw Self.error(error) }
    owned = makeOwned { [peers] stack in peers.cancelRequests { OwnerRequests.isOwned($0, by: stack) } }
    events.node = self
  }

  private static func error(_ error: any Error) -> HearthError {
    switch error {
    case let error as HearthError: error
    case let error as PostgresFailure: .configuration("the cluster cannot be used: \(error.description)")
    case let error as TransportError: .listening(error.description)
    case let error as ClusterKeyFailure: .configuration(error.description)
    case let error as NodeRegistrationFailure: .storage(error.description)
    case let error as ReplicaError: .storage(error.description)
    case let error as StorageError: .storage(error.description)
    default: .configuration("\(error)")
    }
  }

  /// The number of this node in the cluster.
  var number: UInt32 { member.number }

  /// The requests that were relayed.
  var relayed: RelayCounts { relay.counts }

  /// Why this node cannot serve clients: `cluster` if no node is known to own the cluster. Otherwise `nil`.
  var unready: String? { owner.target == .none ? "cluster" : nil }

  // MARK: Lifetime

  /// Takes part in the cluster from now on.
  func start() {
    configuration.log(
      .info, "cluster.joined", "node \(number) of the cluster of project \(project), at \(address)",
      [("node", .integer(Int(number))), ("address", .text(address.description))])
    member.start()
    queue.async { self.poll() }
  }

  /// Gives the project away if this node owns it, and waits until that is in the log, at most a few seconds. Requests are
  /// relayed to the next owner.
  func handOver() {
    queue.sync {
      state.withLock { $0.isStopping = true }
      member.setMayOwn(false)
      giveAway()
    }
    let deadline = DispatchTime.now() + .seconds(3)
    while member.status.role != .follower, DispatchTime.now() < deadline { usleep(2_000) }
  }

  /// Leaves the cluster. No client's request is under way any more.
  func stop() {
    peers.stop(graceSeconds: 1)
    queue.sync {}
    owned.close()
    do throws(ReplicaError) { try member.stop() } catch {
      configuration.log(.error, "cluster.replica", "the replica could not be closed: \(error.description)")
    }
  }

  // MARK: Events

  fileprivate func receive(_ event: ClusterMember.Event) {
    switch event {
    case .becameOwner(let epoch, let floor):
      takeovers.add(1, ordering: .relaxed)
      queue.async { self.open(epoch, floor) }
    case .steppedDown: queue.async { self.close() }
    case .ownerChanged(let session): queue.async { self.follow(session?.node) }
    case .broken(let error):
      configuration.log(.error, "cluster.broken", error.description)
      configuration.fail?(error.description)
    }
  }

  /// Opens the project with the newest configuration that was deployed.
  private func open(_ epoch: UInt64, _ floor: Int64) {
    do {
      guard let newest = try catalog.configuration(newerThan: 0) else {
        throw HearthError.data("the cluster has no configuration")
      }
      try deployed.write(newest.1)
      try serve(newest, epoch, floor)
      configuration.log(
        .info, "cluster.owner", "node \(number) owns the cluster (epoch \(epoch)) and serves the project \(project)",
        [("node", .integer(Int(number))), ("epoch", .integer(Int(clamping: epoch)))])
    } catch {
      // Another node may have more luck. If it is the only one, it tries again.
      configuration.log(
        .error, "cluster.refused",
        "node \(number) cannot serve the project, so it gives it away: "
          + Self.error(error).description)
      state.withLock { $0.restsUntil = .now() + .seconds(Self.restSeconds) }
      member.setMayOwn(false)
      giveAway()
    }
  }

  private static let restSeconds = 5

  private func serve(
    _ newest: (version: Int64, ClusterConfiguration), _ epoch: UInt64, _ floor: Int64
  ) throws(HearthError) {
    var configuration = configuration
    configuration.project = project
    try deployed.apply(newest.1, to: &configuration)
    let requests = try owned.open(configuration, .replicas(member, project: project, floor: floor))
    state.withLock { state in
      (state.epoch, state.floor) = (epoch, floor)
      (state.version, state.deployed) = newest
    }
    door.serve(requests)
    owner.set(address)
    relay.targetChanged()
  }

  /// Closes the project, because this node is not the owner any more.
  private func close() {
    guard
      state.withLock({ state in
        defer { state.epoch = nil }
        return state.epoch
      }) != nil
    else { return }
    door.serve(nil)
    owner.set(nil)
    owned.retire()
    closeRetired()
    configuration.log(
      .warn, "cluster.follower", "node \(number) no longer owns the cluster", [("node", .integer(Int(number)))])
  }

  private func closeRetired() {
    guard !owned.closeRetired() else { return }
    queue.asyncAfter(deadline: .now() + .milliseconds(50)) { self.closeRetired() }
  }

  /// Gives the project away: new requests wait for the next owner, then the log gets the handover.
  private func giveAway() {
    guard case .owner = member.status.role else { return }
    door.serve(nil)
    owner.set(nil)
    member.handOver()
  }

  /// Relays requests to another node.
  private func follow(_ node: UInt32?) {
    guard node != number, state.withLock({ $0.epoch }) == nil else { return }
    guard let node else { return owner.set(nil) }
    do throws(PostgresFailure) {
      let found = try catalog.state().member(node).flatMap { NodeAddress(text: $0.address) }
      guard owner.target != found.map(RelayTarget.node) ?? .none else { return }
      owner.set(found)
      relay.targetChanged()
    } catch {
      // The next poll tries again.
      owner.set(nil)
    }
  }

  // MARK: PostgreSQL

  /// Asks once a second whether to drain, whether a configuration was deployed, and where the owner is.
  private func poll() {
    guard !state.withLock({ $0.isStopping }) else { return }
    queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.poll() }
    checkClock()
    checkDraining()
    do throws(PostgresFailure) {
      let cluster = try catalog.state()
      let problem = state.withLock { state in
        defer { state.problem = nil }
        return state.problem
      }
      if problem != nil { configuration.log(.info, "cluster.postgres", "PostgreSQL answers again") }
      if state.withLock({ $0.epoch }) == nil, owner.target == .none, let session = member.status.owner {
        follow(session.node)
      }
      try reconfigure(cluster.configuration)
    } catch {
      let isNew = state.withLock { state in
        defer { state.problem = error.description }
        return state.problem == nil
      }
      if isNew { configuration.log(.warn, "cluster.postgres", "PostgreSQL does not answer: \(error.description)") }
    }
    updateMayOwn()
  }

  /// An owner whose clock differs much from those of others would break promises about the times of commits.
  private func checkClock() {
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

  private func checkDraining() {
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

  private func updateMayOwn() {
    let mayOwn = state.withLock { state in
      !state.isDraining && !state.isStopping && !state.hasWrongClock && state.restsUntil.map { $0 <= .now() } ?? true
    }
    member.setMayOwn(mayOwn)
    if !mayOwn { giveAway() }
  }

  /// Puts a configuration in force that was deployed. If it changes more than the texts of rules, the project is opened
  /// again, and its requests wait meanwhile.
  private func reconfigure(_ version: Int64) throws(PostgresFailure) {
    let (epoch, before) = state.withLock { ($0.epoch, $0) }
    guard let epoch, version > before.version, let newest = try catalog.configuration(newerThan: before.version) else {
      return
    }
    do throws(HearthError) {
      try deployed.write(newest.1)
      if Self.changesOnlyRules(before.deployed, newest.1), let stack = owned.stack {
        stack.reloadRules()
        state.withLock { ($0.version, $0.deployed) = newest }
      } else {
        door.serve(nil)
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

  private static func changesOnlyRules(_ old: ClusterConfiguration, _ new: ClusterConfiguration) -> Bool {
    old.parts.count == new.parts.count
      && zip(old.parts, new.parts).allSatisfy { old, new in
        old.kind == new.kind && old.database == new.database && (old.kind != .indexes || old.text == new.text)
      }
  }
}

/// The address of the node that owns the cluster.
final class OwnerAddress: Sendable {
  private let address = Mutex<NodeAddress?>(nil)

  /// The target of a relay.
  var target: RelayTarget { address.withLock { $0.map(RelayTarget.node) ?? .none } }

  /// Sets the address, or `nil` if no owner is known.
  func set(_ owner: NodeAddress?) { address.withLock { $0 = owner } }
}

/// Passes the events of a member to its node, which is made after the member.
private final class NodeEvents: Sendable {
  private struct Reference: Sendable { weak var node: ClusteredNode? }

  private let reference = Mutex(Reference())

  var node: ClusteredNode? {
    get { reference.withLock { $0.node } }
    set { reference.withLock { $0.node = newValue } }
  }
}
