import Foundation
import Glibc
import PostgresEngine
import SharedLog
import Synchronization
import Testing
import TestSupport

/// Nodes and configurations in the tables of a cluster.
@Suite(.needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ClusterCatalogTests {
  private let server: PostgresServer

  init() throws { server = try PostgresServer() }

  private func makeCluster(_ name: String) throws -> (ClusterCatalog, url: String, ClusterIdentity) {
    let url = try server.makeDatabase(name)
    let identity = ClusterIdentity(project: "shop", keyCheck: try ClusterKey().check(), acceptsLoss: true)
    try ClusterSchema.create(at: url, identity)
    return (try ClusterCatalog(url), url, identity)
  }

  /// A data directory with a lock file.
  private func makeDirectory() throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    try directory.write("hearth.lock", "")
    return directory
  }

  private func register(
    _ directory: String, _ catalog: ClusterCatalog, address: String = "10.0.0.1:8090"
  ) throws -> NodeRegistration {
    var timing = ClusterTiming()
    (timing.silence, timing.poll) = (500_000, 50_000)
    return try NodeRegistration.register(
      directory: directory, lockFile: "\(directory)/hearth.lock", address: address, software: "1.2.3", in: catalog,
      timing: timing)
  }

  // MARK: Nodes

  @Test func nodesKeepTheirNumbersAndCopiesGetOthers() throws {
    let (catalog, _, identity) = try makeCluster("nodes")
    #expect(try catalog.identity() == identity)
    let (first, second) = (try makeDirectory(), try makeDirectory())
    #expect(try register(first.path, catalog) == NodeRegistration(node: 1, isKnown: false))
    #expect(try register(second.path, catalog) == NodeRegistration(node: 2, isKnown: false))
    #expect(try register(first.path, catalog, address: "10.0.0.9:1") == NodeRegistration(node: 1, isKnown: true))
    #expect(try catalog.state().member(1)?.address == "10.0.0.9:1")
    #expect(try catalog.state().member(1)?.software == "1.2.3")
    // A copy of the directory has another lock file.
    let copy = try makeDirectory()
    try copy.write("cluster-node", try first.text("cluster-node"))
    #expect(try register(copy.path, catalog) == NodeRegistration(node: 3, isKnown: false))
    #expect(try register(copy.path, catalog) == NodeRegistration(node: 3, isKnown: true))
    // A removed node keeps its number, also if it has not begun a session: it may load its data.
    #expect(try catalog.remove(2, lastSeen: nil))
    let third = try makeDirectory()
    #expect(try register(third.path, catalog).node == 4)
    #expect(try register(second.path, catalog) == NodeRegistration(node: 2, isKnown: true))
    let tables = try PostgresTables(server.url("nodes"), secret: 1)
    guard case .sessionOver(last: 1) = tables.perform(.beginSession(node: 2, after: 0, renewal: 1)),
      case .session = tables.perform(.beginSession(node: 2, after: 1, renewal: 1))
    else { throw try #require(tables.lastFailure) }
    // The replica of another cluster is refused.
    let (other, _, _) = try makeCluster("other")
    #expect(throws: NodeRegistrationFailure.otherCluster(first.path)) { try register(first.path, other) }
    #expect(throws: NodeRegistrationFailure.self) {
      try first.write("cluster-node", "damaged")
      return try register(first.path, catalog)
    }
  }

  /// A node is removed if it is silent and does not own the cluster. Its number stays its own.
  @Test func onlySilentNodesAreRemoved() throws {
    let (catalog, url, _) = try makeCluster("removal")
    let (first, second, third) = (try makeDirectory(), try makeDirectory(), try makeDirectory())
    for directory in [first, second, third] { _ = try register(directory.path, catalog) }
    let tables = try PostgresTables(url, secret: 1)
    func begin(_ node: UInt32) throws -> NodeSession {
      guard case .session(let session) = tables.perform(.beginSession(node: node, after: 0, renewal: 1)) else {
        throw try #require(tables.lastFailure)
      }
      return session
    }
    let (owner, follower) = (try begin(1), try begin(2))
    guard case .takenOver = tables.perform(.takeOver(by: owner, from: nil, epoch: 0)) else {
      throw try #require(tables.lastFailure)
    }
    func seen(_ node: UInt32) throws -> RegisteredNode.Session? { try catalog.state().member(node)?.session }
    #expect(try !catalog.remove(1, lastSeen: seen(1)), "it owns the cluster")
    let before = try seen(2)
    #expect(tables.perform(.renew(follower, renewal: 2, confirmed: 0)) == .renewed)
    #expect(try !catalog.remove(2, lastSeen: before), "it has renewed its session")
    #expect(try !catalog.remove(2, lastSeen: nil), "it has begun a session")
    #expect(try catalog.remove(2, lastSeen: seen(2)))
    #expect(try !catalog.remove(2, lastSeen: nil), "it is not registered")
    #expect(try catalog.state().members.map(\.node) == [1, 3])
    // A node that was only paused may have this number.
    let fourth = try makeDirectory()
    #expect(try register(fourth.path, catalog).node == 4)
    #expect(try register(second.path, catalog) == NodeRegistration(node: 2, isKnown: true))
    #expect(tables.perform(.renew(follower, renewal: 3, confirmed: 0)) == .renewed)
  }

  @Test func afterABootANumberIsKeptUnlessItsSessionIsRenewed() throws {
    let (catalog, url, _) = try makeCluster("boots")
    let directory = try makeDirectory()
    #expect(try register(directory.path, catalog).node == 1)
    /// Makes the file and the row say that another boot wrote them.
    func pretendBoot(_ name: String) throws {
      let text = try directory.text("cluster-node")
      let place = try #require(text.split(separator: "\n").last).dropFirst(6)
      let parts = place.split(separator: " ")
      let changed = "\(name) \(parts[1]) \(parts[2])"
      try directory.write("cluster-node", text.replacingOccurrences(of: place, with: changed))
      try server.sql("UPDATE hearth_member SET place = '\(changed)' WHERE node = 1", in: "boots")
    }
    try pretendBoot("boot-a")
    #expect(try register(directory.path, catalog) == NodeRegistration(node: 1, isKnown: true))
    // The session of a machine that crashed is silent.
    let tables = try PostgresTables(url, secret: 1)
    guard case .session(let session) = tables.perform(.beginSession(node: 1, after: 0, renewal: 1)) else {
      throw try #require(tables.lastFailure)
    }
    try pretendBoot("boot-b")
    #expect(try register(directory.path, catalog) == NodeRegistration(node: 1, isKnown: true))
    // The image of a machine was copied while the machine runs: its node renews the session.
    try pretendBoot("boot-c")
    let isDone = Atomic(false)
    let ended = DispatchSemaphore(value: 0)
    let pause = DispatchSemaphore(value: 0)
    Thread {
      var renewal: UInt64 = 2
      while !isDone.load(ordering: .relaxed) {
        _ = tables.perform(.renew(session, renewal: renewal, confirmed: 0))
        renewal += 1
        _ = pause.wait(timeout: .now() + .milliseconds(10))
      }
      ended.signal()
    }.start()
    #expect(try register(directory.path, catalog) == NodeRegistration(node: 2, isKnown: false))
    isDone.store(true, ordering: .relaxed)
    ended.wait()
    // Of two copies that start at once, the second finds that the row has another place.
    try server.sql("UPDATE hearth_member SET place = 'boot-d 1 1' WHERE node = 2", in: "boots")
    #expect(try register(directory.path, catalog) == NodeRegistration(node: 3, isKnown: false))
  }

  @Test func nodesThatStartAtOnceGetDifferentNumbers() throws {
    let (_, url, _) = try makeCluster("race")
    let found = Mutex<[UInt32]>([])
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      guard let directory = try? makeDirectory(), let catalog = try? ClusterCatalog(url),
        let node = try? register(directory.path, catalog).node
      else { return }
      found.withLock { $0.append(node) }
    }
    #expect(found.withLock { $0.sorted() } == Array(1...8))
  }

  // MARK: State

  @Test func stateDrainingAndClockAreReported() throws {
    let (catalog, url, _) = try makeCluster("state")
    let empty = try catalog.state()
    #expect(empty.members.isEmpty && empty.owner == nil && empty.entries == 0 && empty.configuration == 1)
    #expect(try catalog.setDraining(true, node: 1) == false)
    let directory = try makeDirectory()
    _ = try register(directory.path, catalog)
    let tables = try PostgresTables(url, secret: 1)
    #expect(tables.clockDifference == nil)
    guard case .session(let session) = tables.perform(.beginSession(node: 1, after: 0, renewal: 1)),
      case .takenOver = tables.perform(.takeOver(by: session, from: nil, epoch: 0))
    else { throw try #require(tables.lastFailure) }
    for renewal in 2..<5 as Range<UInt64> {
      #expect(tables.perform(.renew(session, renewal: renewal, confirmed: 1)) == .renewed)
    }
    let clock = try #require(tables.clockMeasurement)
    #expect(abs(clock.difference) <= clock.error, "both clocks are the same one")
    #expect(!tables.isDraining)
    #expect(try catalog.setDraining(true, node: 1))
    #expect(tables.perform(.renew(session, renewal: 9, confirmed: 1)) == .renewed)
    #expect(tables.isDraining)
    let state = try catalog.state()
    #expect(state.owner == 1 && state.isOwnerLive && state.epoch == 1)
    #expect(state.entries == 1 && state.head == 1 && state.confirmed == 1 && state.logBytes ?? 0 > 0)
    #expect(state.member(1)?.session == RegisteredNode.Session(number: 1, renewal: 9, isLive: true))
    #expect(state.member(1)?.isDraining == true)
  }

  /// A node does not wait for its caller to notice the difference: it could be the owner by then.
  @Test(arguments: [-3600, 3600]) func aNodeWithAWrongClockTakesNothingOver(seconds: Int64) throws {
    let (_, url, _) = try makeCluster("clock")
    @Sendable func now() -> Int64 { Int64(Date.now.timeIntervalSince1970 * 1_000_000) }
    let wrong = try PostgresTables(url, secret: 1, timeOfDay: { now() + seconds * 1_000_000 })
    guard case .session(let session) = wrong.perform(.beginSession(node: 1, after: 0, renewal: 1)),
      case .observed = wrong.perform(.observe(after: 0))
    else { throw try #require(wrong.lastFailure) }
    #expect(wrong.perform(.takeOver(by: session, from: nil, epoch: 0)) == .notTaken)
    // Its commits would get no time of the future.
    let limit = try #require(wrong.timeLimit)
    #expect(abs(limit - now()) < 60_000_000)
    let right = try PostgresTables(url, secret: 1)
    guard case .observed = right.perform(.observe(after: 0)),
      case .takenOver = right.perform(.takeOver(by: session, from: nil, epoch: 0))
    else { throw try #require(right.lastFailure) }
  }

  @Test func differentClocksAreMeasured() {
    let first = ClockMeasurement(sent: 1000, tables: 601_100, received: 1200, at: 0)
    #expect(first.difference == 600_000 && first.error == 101)
    #expect(first.isBeyond(500_000) && !first.isWithin(600_000) && first.isWithin(601_000))
    #expect(first.latest(at: 1_000_000) == 601_300 + 1_001_000)
    // A worse measurement does not replace a better one, unless it contradicts it.
    let worse = ClockMeasurement(sent: 0, tables: 610_000, received: 40_000, at: 1_000_000)
    #expect(first.improved(by: worse) == first)
    let stepped = ClockMeasurement(sent: 0, tables: 20_000, received: 40_000, at: 1_000_000)
    #expect(first.improved(by: stepped) == stepped)
    // An old one becomes uncertain.
    let late = ClockMeasurement(sent: 0, tables: 610_000, received: 40_000, at: 100_000_000)
    #expect(first.improved(by: late) == late)
  }

  // MARK: Configurations

  @Test func configurationsHaveVersionsInOrder() throws {
    let (catalog, url, _) = try makeCluster("configurations")
    let found = try #require(try catalog.configuration(newerThan: 0))
    #expect(found.version == 1 && found.1 == ClusterConfiguration())
    #expect(try catalog.configuration(newerThan: 1) == nil)
    var configuration = ClusterConfiguration()
    configuration.set(.init(.rules, text: Array("service".utf8)))
    #expect(try catalog.deploy(configuration, after: 1) == 2)
    #expect(try catalog.deploy(configuration, after: 1) == nil)
    #expect(try catalog.deploy(configuration, after: 5) == nil)
    #expect(try catalog.configuration(newerThan: 1)?.1 == configuration)
    // Of two that are deployed at once after the same version, one is refused.
    let winners = Mutex<[Int64]>([])
    let refused = Mutex(0)
    DispatchQueue.concurrentPerform(iterations: 6) { [configuration] _ in
      guard let other = try? ClusterCatalog(url) else { return }
      do {
        if let version = try other.deploy(configuration, after: 2) {
          winners.withLock { $0.append(version) }
        } else {
          refused.withLock { $0 += 1 }
        }
      } catch {}
    }
    #expect(winners.withLock { $0 } == [3])
    #expect(refused.withLock { $0 } == 5)
    try server.sql("UPDATE hearth_config SET body = 'x' WHERE version = 3", in: "configurations")
    #expect(throws: PostgresFailure.damagedConfiguration(3)) { try catalog.configuration(newerThan: 0) }
  }
}
