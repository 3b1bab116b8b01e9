import ConsoleAPI
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
/// 4. Meanwhile it follows the owner's log over a stream (``LogFollower``), and reads documents from its replica itself
///    (``FollowedProject``).
final class ClusteredNode: Sendable {
  /// Handles the requests of clients.
  let door: ClusterDoor
  /// Handles the requests of operators.
  let console: ClusterConsole
  /// The project while this node owns the cluster.
  let owned: OwnedProject
  /// The project while another node does.
  let followed: FollowedProject

  struct State {
    /// The epoch in which the project is open here.
    var epoch: UInt64?
    /// The deployed configuration that the project has, and its version.
    var deployed = ClusterConfiguration()
    var version: Int64 = 0
    /// The time before which this node wants to own nothing, because it could not open the project, or write to its disk.
    var restsUntil: DispatchTime?
    /// The time before which it does not give the cluster away again because of its disk.
    var ownsUntil: DispatchTime?
    var isDraining = false
    var hasWrongClock = false
    /// The floor of the epoch.
    var floor = Int64.min
    var isStopping = false
    /// Why PostgreSQL could not be asked the last time.
    var problem: String?
    /// The SQLSTATE with which PostgreSQL refuses some requests of this node, although it answers others.
    var refusal: String?
    /// The configuration with which this node follows, and its version.
    var followed: (version: Int64, ClusterConfiguration)?
    /// Why this node does not read documents itself, as it was logged last.
    var obstacle: String?
    /// Whether a failed attempt to put a configuration in force is to be repeated.
    var isRetryDue = false
    /// Whether the replica is being loaded anew.
    var isJoining = false
    /// The cluster as PostgreSQL described it last, and the nodes that were alive.
    var observed: (cluster: ClusterState, alive: Set<UInt32>)?
    /// The addresses of the other nodes that PostgreSQL named last.
    var nodes: [NodeAddress] = []
    /// The latest epoch in which a node said that it is the owner.
    var foundEpoch: UInt64 = 0
  }

  let configuration: HearthConfiguration
  let project: String
  let member: ClusterMember
  /// The times that this node became the owner.
  let takeovers = Atomic(0)
  private let keeper: SnapshotKeeper
  let tables: PostgresTables
  let catalog: ClusterCatalog
  private let peers: NodeServer
  /// The address that other nodes use.
  let address: NodeAddress
  /// The place of the data directory, by which the cluster knows its copies.
  let place: NodePlace
  /// The address that this node itself uses, which its own requests can reach also behind a translation of addresses.
  let ownAddress: NodeAddress
  private let relay: Relay
  private let consoleRelay: Relay
  /// The ways on which the loops ask the owner how far the log is.
  private let lines = LoopParts<IndexLine>()
  let owner: KnownAddress
  let deployed: DeployedFiles
  let replica: Replica
  let follower: LogFollower
  private let channels: ChannelRelays
  let search: NodeQuestion
  let detours: NodeQuestion
  let searching = DispatchQueue(label: "hearth.cluster.search")
  private let watch = Mutex(NodeWatch())
  let timing: ClusterTiming
  let state = Mutex(State())
  /// Opens and closes the project, and asks PostgreSQL about the cluster.
  let queue: DispatchQueue

  /// Joins a cluster: listens for other nodes, registers, and opens the replica. Nothing is served before ``start()``.
  ///
  /// - Parameters:
  ///   - limits: those of the server for clients.
  ///   - operations: the handler of `/healthz` and `/readyz`.
  ///   - followed: the project while another node owns the cluster.
  ///   - makeOwned: makes the project, from a function that ends the requests which other nodes relayed to a stack.
  /// - Throws: ``HearthError`` if PostgreSQL, the key, the address or the directory cannot be used.
  init(
    _ configuration: HearthConfiguration, _ settings: ClusterSettings, _ directory: DataDirectory,
    limits: TransportConfiguration, operations: RequestDispatcher, followed: FollowedProject,
    makeOwned: (_ cancel: @escaping @Sendable (ObjectIdentifier) -> Void) -> OwnedProject
  ) throws(HearthError) {
    self.configuration = configuration
    var timing = ClusterTiming()
    // Others notice a handover with their next observation.
    timing.poll = 100_000
    self.timing = timing
    deployed = DeployedFiles(directory: directory.path)
    self.followed = followed
    let queue = DispatchQueue(label: "hearth.cluster.node", qos: .userInitiated)
    self.queue = queue
    let events = NodeEvents()
    let owner = KnownAddress()
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
      relaying.repetition = { request in HTTPGateway.repeatableRequests.repetition(of: request) }
      // The refusal must reach the client before its connection is cut.
      relaying.lastWaitMilliseconds = max(0, min(2_000, configuration.stopGraceSeconds * 1000 - 1_000))
      relay = try Relay(key: key, configuration: relaying) { owner.target }
      channels = ChannelRelays(key: key, relaying)
      door = ClusterDoor(relay, channels, operations: operations, isDetoured: { owner.detour != nil })
      relaying.isForConsole = true
      // Its server has one second to stop.
      relaying.lastWaitMilliseconds = min(500, relaying.lastWaitMilliseconds)
      consoleRelay = try Relay(key: key, configuration: relaying) { owner.target }
      console = ClusterConsole(door, consoleRelay)
      let listen = settings.peerListen ?? settings.peerAddress
      peers = try NodeServer(key: key, host: listen.host, port: listen.port, limits: limits, handler: door)
      ownAddress = try peers.start().reachableHere
      address = settings.peerListen == nil ? ownAddress : NodeAddress(settings.peerAddress, otherwise: ownAddress.port)
      let registration = try NodeRegistration.register(
        directory: directory.path, lockFile: directory.lockFile, address: address.description,
        software: Server.version, in: catalog, timing: timing)
      place = try NodePlace(lockFile: directory.lockFile)
      let files = ReplicaDirectory(directory: directory, project: project, mapBytes: configuration.mapBytes)
      let (folder, snapshots) = (files.folder, try PostgresSnapshots(settings.url))
      try folder.finishReplacement()
      replica = try Replica(
        try files.files(), secret: identity.secret, sealed: SealedStores(seal: try AccountsSeal(settings.key)))
      tables = try PostgresTables(settings.url, secret: identity.secret, timing: timing)
      member = ClusterMember(
        number: registration.node, tables: tables, replica: replica, timing: timing,
        joining: ClusterMember.Joining(tables: snapshots, folder: folder),
        applied: { if !followed.noteApplied($0) { events.node?.readAnew() } }, events: { events.node?.receive($0) })
      keeper = SnapshotKeeper(member, snapshots, settings: settings.snapshots) { event in
        SnapshotReport.log(event, configuration)
      }
      door.join(
        LogStreamHandler(member), ReadIndexHandler(member), DigestHandler(member),
        DetourHandler { events.node?.reachedOwner }, node: UInt16(truncatingIfNeeded: registration.node))
      let client = try NodeClient(key: key)
      search = NodeQuestion(LogStreamHandler.ownerPath, by: client) { events.node?.found($0, $1) }
      detours = NodeQuestion(DetourHandler.path, by: client) { events.node?.found($0, reaching: $1) }
      follower = LogFollower(
        member, client,
        configure: { queue.async { events.node?.configureFollowed() } })
    } catch { throw Self.error(error) }
    owned = makeOwned { [peers] stack in peers.cancelRequests { StackRequests.isOwned($0, by: stack) } }
    events.node = self
  }

  static func error(_ error: any Error) -> HearthError {
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
  var relayed: RelayCounts { relay.counts + consoleRelay.counts }

  /// Why this node cannot serve clients: `cluster` if no node is known to own the cluster, this node does not reach the owner,
  /// or it owned the cluster and its lease is over. Otherwise `nil`.
  var unready: String? {
    if owner.detour != nil { return owner.hasTrustedDetour ? nil : "cluster" }
    guard let address = owner.address else { return "cluster" }
    return (address == ownAddress ? door.isOwner : follower.reachesOwner) ? nil : "cluster"
  }

  // MARK: Lifetime

  /// Takes part in the cluster from now on.
  func start() {
    configuration.log(
      .info, "cluster.joined",
      "node \(number) of the cluster of project \(project), at \(address)"
        + (address == ownAddress ? "" : ", listening for nodes at \(ownAddress)"),
      [("node", .integer(Int(number))), ("address", .text(address.description))])
    member.start()
    keeper.start()
    queue.async { self.poll() }
    searchOwner()
  }

  /// Gives the project away if this node owns it, and waits until that is in the log, at most a few seconds. Requests are
  /// relayed to the next owner.
  func handOver() {
    queue.sync {
      state.withLock { $0.isStopping = true }
      member.setMayOwn(false)
      giveAway()
      follow(nil as NodeAddress?)
    }
    let deadline = DispatchTime.now() + .seconds(3)
    while member.status.role != .follower, DispatchTime.now() < deadline { usleep(2_000) }
  }

  /// Leaves the cluster. No client's request is under way any more.
  func stop() {
    peers.stop(graceSeconds: 1)
    follower.stop()
    queue.sync {}
    owned.close()
    keeper.stop()
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
    case .healed(let count):
      configuration.log(
        .warn, "cluster.healed",
        "PostgreSQL had lost up to \(count) acknowledged entries of the log, and node \(number) has appended them again",
        [("node", .integer(Int(number))), ("entries", .integer(count))])
    case .join(let event):
      SnapshotReport.log(event, node: number, configuration)
      queue.async { self.noteJoin(event) }
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
      owner.set(nil)
      giveAway()
    }
  }

  static let restSeconds = 5

  func serve(
    _ newest: (version: Int64, ClusterConfiguration), _ epoch: UInt64, _ floor: Int64
  ) throws(HearthError) {
    follow(nil as NodeAddress?)
    try answerLoss()
    let configuration = try self.configuration(with: newest.1)
    let stores = ProjectStores.replicas(member, project: project, floor: floor)
    let requests = try owned.open(configuration, stores) { [weak self] in self?.describeForConsole() ?? [] }
    // A recording would lack the decisions of other nodes. That of the former stack is over.
    member.feed.setOwnerOnly(false, in: epoch)
    requests.stack.recording?.onChange { [member] in member.feed.setOwnerOnly($0, in: epoch) }
    state.withLock { state in
      (state.epoch, state.floor) = (epoch, floor)
      (state.version, state.deployed) = newest
    }
    member.feed.setConfiguration(newest.version)
    door.serve(requests, by: member.lease(of: epoch))
    owner.set(ownAddress)
    targetChanged()
  }

  /// Sends the requests that wait to the current owner.
  func targetChanged() {
    relay.targetChanged()
    consoleRelay.targetChanged()
  }

  /// Closes the project, because this node is not the owner any more.
  private func close() {
    guard
      state.withLock({ state in
        defer { state.epoch = nil }
        return state.epoch
      }) != nil
    else { return }
    door.serveNothing()
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

  /// Gives the project away: new requests wait for the next owner, those under way end, then the log gets the handover. A
  /// commit after it would be refused.
  private func giveAway() {
    guard case .owner = member.status.role else { return }
    door.serveNothing()
    owner.set(nil)
    owned.retire(waitingAtMost: Self.lastRequestsMilliseconds)
    member.handOver()
  }

  /// The time that the requests under way have at a handover. Other requests wait meanwhile.
  private static let lastRequestsMilliseconds = 75

  /// Relays requests to another node.
  private func follow(_ node: UInt32?) {
    guard node != number, state.withLock({ $0.epoch }) == nil else { return }
    guard let node else { return owner.set(nil) }
    do throws(PostgresFailure) {
      let found = try catalog.state().member(node).flatMap { NodeAddress(text: $0.address) }
      guard owner.address != found else { return }
      owner.set(found)
      targetChanged()
      // It may refuse requests until it has opened the project. They are sent again soon.
      for pause in Self.resendMilliseconds {
        queue.asyncAfter(deadline: .now() + .milliseconds(pause)) { [weak self] in self?.targetChanged() }
      }
      follow(found)
    } catch {
      // The next poll tries again.
      owner.set(nil)
    }
  }

  private static let resendMilliseconds = [10, 20, 40, 80, 160]

  // MARK: Following

  /// Reads nothing while the replica is loaded anew: its stores are other ones afterwards.
  private func noteJoin(_ event: JoinEvent) {
    switch event {
    case .began:
      state.withLock { $0.isJoining = true }
      follow(nil as NodeAddress?)
    case .ended:
      state.withLock { $0.isJoining = false }
      guard state.withLock({ $0.epoch == nil }), let found = owner.address, found != ownAddress else {
        return
      }
      follow(found)
    case .loading, .failed: break
    }
  }

  /// Follows the log of a node. With `nil`, ends that and everything that this node reads itself.
  func follow(_ address: NodeAddress?) {
    if address == nil {
      door.read(nil)
      followed.retire()
      state.withLock { $0.followed = nil }
    }
    // A replica that is being loaded takes no entries.
    guard address == nil || !state.withLock({ $0.isJoining }) else { return }
    follower.follow(address)
  }

  /// Puts the configuration in force that the owner announced, not a later one: no commit may be judged by older rules than a
  /// read before it. Then this node reads documents itself, unless the owner forbids it.
  private func configureFollowed() {
    let version = follower.announced
    let before = state.withLock { $0.followed }
    guard state.withLock({ $0.epoch == nil && !$0.isStopping }) else { return follower.refuseUnconfigured() }
    if version == EntryFeed.ownerOnly {
      door.read(nil)
      followed.retire()
      return follower.withdrawConfiguration()
    }
    if let before, version >= 0, version <= before.version {
      follower.setConfiguration(before.version)
      if followed.stack == nil { readWhenNewest() }
      return
    }
    guard !state.withLock({ $0.isRetryDue }) else { return follower.refuseUnconfigured() }
    guard version > 0 else { return follower.refuseUnconfigured() }
    do {
      // A question without an answer would only keep this queue busy.
      if isCutOff { throw tables.lastFailure ?? .noAnswer }
      guard let configuration = try catalog.configuration(version: version) else {
        throw HearthError.data("the cluster has no configuration \(version)")
      }
      try deployed.write(configuration)
      if let before, let stack = followed.stack, Self.changesOnlyRules(before.1, configuration) {
        try reloadRules(of: stack)
      } else {
        door.read(nil)
        followed.retire()
      }
      state.withLock { $0.followed = (version, configuration) }
      follower.setConfiguration(version)
      if followed.stack == nil { readWhenNewest() }
    } catch {
      noteObstacle(Self.error(error))
      // Not by older rules than the owner's.
      door.read(nil)
      followed.retire()
      follower.refuseUnconfigured()
      state.withLock { $0.isRetryDue = true }
      queue.asyncAfter(deadline: .now() + .seconds(1)) {
        self.state.withLock { $0.isRetryDue = false }
        self.configureFollowed()
      }
    }
  }

  /// Opens the project for reading when the replica has everything. Before that, it may have a part of a commit.
  private func readWhenNewest() {
    follower.whenNewest { [weak self] isNewest in
      guard isNewest, let self else { return }
      queue.async { self.read() }
    }
  }

  private func read() {
    guard let configuration = state.withLock({ $0.epoch == nil && !$0.isStopping ? $0.followed?.1 : nil }),
      followed.stack == nil, follower.announced != EntryFeed.ownerOnly
    else { return }
    do throws(HearthError) {
      let stores = ProjectStores.followed(replica, node: number, project: project, freshness: follower)
      guard try followed.open(self.configuration(with: configuration), stores) else { return }
      door.read(FreshReads(followed, follower, relay, lines, project: project, replica))
      state.withLock { $0.obstacle = nil }
      self.configuration.log(
        .info, "cluster.reading", "node \(number) reads documents itself", [("node", .integer(Int(number)))])
    } catch { noteObstacle(error) }
  }

  /// Begins to follow the owner again, and opens the project for reading anew: the owner renewed the incarnation of a
  /// database. Open streams end.
  fileprivate func readAnew() {
    queue.async { [self] in
      guard state.withLock({ $0.epoch == nil }), followed.stack != nil else { return }
      follow(nil as NodeAddress?)
      // Otherwise the next owner is followed as soon as it is known.
      if let found = owner.address, found != ownAddress { follow(found) }
    }
  }

  /// Logs why this node does not read documents itself, once for each reason: it tries again every second.
  private func noteObstacle(_ error: HearthError) {
    let isNews = state.withLock { state in
      defer { state.obstacle = error.description }
      return state.obstacle != error.description
    }
    guard isNews else { return }
    configuration.log(
      .warn, "cluster.following", "node \(number) passes reads to the owner, and tries again: \(error.description)")
  }

  // MARK: PostgreSQL

  /// Asks once a second whether to drain, whether a configuration was deployed, and where the owner is.
  private func poll() {
    guard !state.withLock({ $0.isStopping }) else { return }
    queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.poll() }
    checkClock()
    checkDraining()
    checkDisk()
    noteRefusal()
    // It notices that its time is over.
    _ = owned.stack?.recording?.state
    // It could not be opened before.
    if followed.stack == nil, state.withLock({ $0.epoch == nil && $0.followed != nil }) { readWhenNewest() }
    do throws(PostgresFailure) {
      // A question without an answer would only keep this queue busy.
      if isCutOff { throw tables.lastFailure ?? .noAnswer }
      let cluster = try catalog.state()
      let alive = watch.withLock { $0.note(cluster.members, at: BootTime.now()) }
      channels.update(alive)
      state.withLock { $0.observed = (cluster, Set(alive.keys)) }
      try registerAgain(in: cluster)
      let problem = state.withLock { state in
        defer { state.problem = nil }
        return state.problem
      }
      if problem != nil { configuration.log(.info, "cluster.postgres", "PostgreSQL answers again") }
      let others = cluster.members.filter { $0.node != number && $0.session?.isLive == true }
      state.withLock { $0.nodes = others.compactMap { NodeAddress(text: $0.address) } }
      if state.withLock({ $0.epoch }) == nil, let session = member.status.owner,
        let address = cluster.member(session.node).flatMap({ NodeAddress(text: $0.address) }),
        owner.address != address
      {
        follow(session.node)
      }
      // A node that loads its replica does not see who the owner is.
      if member.status.isJoining { follow(cluster.isOwnerLive ? cluster.owner : nil) }
      try restoreConfiguration(cluster.configuration, afterOutage: problem != nil)
      try reconfigure(cluster.configuration)
      if cluster.unansweredLoss != nil { renew() }
    } catch {
      let isNew = state.withLock { state in
        defer { state.problem = error.description }
        return state.problem == nil
      }
      if isNew { configuration.log(.warn, "cluster.postgres", "PostgreSQL does not answer: \(error.description)") }
    }
    updateMayOwn()
  }

  func updateMayOwn() {
    let mayOwn = state.withLock { state in
      !state.isDraining && !state.isStopping && !state.hasWrongClock && state.restsUntil.map { $0 <= .now() } ?? true
    }
    member.setMayOwn(mayOwn)
    if !mayOwn { giveAway() }
  }
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
