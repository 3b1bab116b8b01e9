import Foundation
import Glibc
import Testing
import TestSupport

/// Clients of all protocols at the same time see transactions that run one after the other, in an order that agrees with
/// real time and with the times in the responses.
///
/// `HISTORY_SEED` determines what the clients do, `HISTORY_SECONDS` how long (4 seconds by default), and
/// `HISTORY_KILLS` how often the server is killed (3 by default).
@Suite(.serialized) struct SerializabilityTests {
  private static let environment = ProcessInfo.processInfo.environment
  private static let seconds = environment["HISTORY_SECONDS"].flatMap { Double($0) } ?? 4
  private static let kills = environment["HISTORY_KILLS"].flatMap { Int($0) } ?? 3
  private static let seed = TestSeeds.of("HISTORY_SEED", otherwise: [1])[0]

  private static let clients: [(name: String, make: @Sendable (UInt16) throws -> any AppendClient)] =
    Array(repeating: ("REST", { RESTAppendClient(port: $0) }), count: 4)
    + Array(repeating: ("gRPC", { try GRPCAppendClient(port: $0) }), count: 3)
    + Array(repeating: ("channel", { try ChannelAppendClient(port: $0) }), count: 2)

  /// The transactions of all clients and listeners.
  private struct Observations: Sendable {
    var transactions: [AppendHistory.Transaction] = []
    var problems: [String] = []

    mutating func add(_ recorder: AppendRecorder) {
      transactions += recorder.transactions
      problems += recorder.problems
    }

    /// Fails the test if the observations contradict each other.
    func check(seed: UInt64) {
      let anomalies = HistoryChecker.anomalies(of: AppendHistory(transactions))
      #expect(anomalies.isEmpty, "HISTORY_SEED=\(seed)\n\(anomalies.map(\.description).joined(separator: "\n"))")
      #expect(problems.isEmpty, "HISTORY_SEED=\(seed)\n\(problems.prefix(20).joined(separator: "\n"))")
      let committed = transactions.count { $0.outcome == .committed }
      let aborted = transactions.count { $0.outcome == .aborted }
      let unknown = transactions.count - committed - aborted
      #expect(committed > 200 && aborted > 5, "\(committed) committed, \(aborted) aborted")
      for name in ["REST", "gRPC", "channel", "listener over gRPC", "listener over a channel", "listener over a feed"] {
        let count = transactions.count { $0.client.hasPrefix(name) && $0.outcome == .committed }
        #expect(count > 10, "\(name): \(count)")
      }
      print("HISTORY_SEED=\(seed): \(committed) transactions, \(aborted) aborted, \(unknown) of unknown outcome")
    }
  }

  // MARK: - Listeners

  /// One listener of each protocol. That over gRPC resumes from `state`. If there are other nodes, they have one each.
  private static func startListeners(
    _ workload: AppendWorkload, port: UInt16, others: [UInt16] = [], resuming state: ListListener.State
  ) -> () -> [(recorder: AppendRecorder, state: ListListener.State, isComplete: Bool)] {
    startThreads(3) { index in
      let name = ["listener over gRPC", "listener over a channel", "listener over a feed"][index]
      let port = ([port] + others)[index % (others.count + 1)]
      var recorder = AppendRecorder(workload, name)
      var listener = ListListener(index == 0 ? state : ListListener.State())
      do {
        let events: any ListEvents =
          switch index {
          case 0: try GRPCListEvents(port: port, resuming: state.token)
          case 1: try ChannelListEvents(port: port)
          default: try FeedListEvents(port: port)
          }
        try listener.follow(events, &recorder)
        return (recorder, listener.state, true)
      } catch { return (recorder, listener.state, false) }
    }
  }

  /// Reads all lists, and ends the listeners.
  private static func finish(_ workload: AppendWorkload, port: UInt16) throws -> AppendRecorder {
    var recorder = AppendRecorder(workload, "last reader")
    let client = RESTAppendClient(port: port)
    try client.readAll(&recorder)
    try client.append(AppendWorkload.lastKey, &recorder)
    try client.readAll(&recorder)
    return recorder
  }

  // MARK: - Tests

  @Test func clientsOfAllProtocolsSeeOneOrder() async throws {
    let server = try TestServer()
    let port = server.port
    let observations = try await onDedicatedThread {
      let workload = AppendWorkload()
      var observations = Observations()
      let listeners = Self.startListeners(workload, port: port, resuming: ListListener.State())
      let clients = AppendClients(workload, port: port, seed: Self.seed, seconds: Self.seconds, Self.clients)
      for result in clients.results() {
        observations.transactions += result.transactions
        observations.problems += result.problems
      }
      observations.add(try Self.finish(workload, port: port))
      for listener in listeners() {
        observations.add(listener.recorder)
        if !listener.isComplete { observations.problems.append("a listener ended early") }
      }
      return observations
    }
    observations.check(seed: Self.seed)
  }

  /// Acknowledged transactions stay. Each other transaction is stored completely or not at all. Servers with and without
  /// a commit log take turns.
  @Test(.needs(.hearth)) func oneOrderSurvivesKills() async throws {
    let observations = try await onDedicatedThread {
      let directory = try TemporaryDirectory()
      return try Self.killAndRestart(directory, kills: Self.kills, Self.clients) { round in
        (usesLog: round.isMultiple(of: 2), wait: {})
      }
    }
    observations.check(seed: Self.seed)
  }

  /// Servers with a commit log are killed while large documents fill its tables, which the servers flush to the data file
  /// beside the clients.
  @Test(.needs(.hearth)) func oneOrderSurvivesKillsDuringFlushes() async throws {
    let (observations, bytes) = try await onDedicatedThread {
      let directory = try TemporaryDirectory()
      let large = Observed(0)
      let filler: (name: String, make: @Sendable (UInt16) throws -> any AppendClient) = (
        "filler", { LogFiller(port: $0, large) }
      )
      var bytes = 0
      let observations = try Self.killAndRestart(directory, kills: 2 * Self.kills, Self.clients + [filler]) { _ in
        bytes = LogFiller.dataFileBytes(in: directory.path)
        // After three rounds, the table is full.
        let enough = large.value + 2
        return (usesLog: true, wait: { _ = large.wait(secondsMax: 60) { $0 >= enough } })
      }
      return (observations, bytes)
    }
    observations.check(seed: Self.seed)
    // A server that is killed has moved commits to the data file only because a table was full.
    #expect(bytes > LogFiller.tableBytes, "the data file has \(bytes) bytes")
  }

  /// Kills servers on one data directory, and observes their clients. `plan` is called before each server starts. `wait`
  /// returns when the server may be killed.
  private static func killAndRestart(
    _ directory: TemporaryDirectory, kills: Int,
    _ kinds: [(name: String, make: @Sendable (UInt16) throws -> any AppendClient)],
    plan: (Int) -> (usesLog: Bool, wait: () -> Void)
  ) throws -> Observations {
    var random = SplitMix(seed: seed)
    let workload = AppendWorkload()
    var observations = Observations()
    var state = ListListener.State()
    for round in 0...kills {
      let (usesLog, wait) = plan(round)
      let server = try HearthProcess(
        arguments: [
          "--emulator", "--project", "p", "--data", directory.path, "--commit-log", usesLog ? "on" : "off",
        ])
      defer { server.process.stop() }
      let listeners = startListeners(workload, port: server.port, resuming: state)
      let isLast = round == kills
      let clients = AppendClients(
        workload, port: server.port, seed: seed &+ UInt64(round), seconds: isLast ? 0.5 : 60, kinds)
      if !isLast {
        wait()
        OtherProcess.send(signal: SIGKILL, to: server.process, afterRandom: 200...1200, &random)
      }
      for result in clients.results() {
        observations.transactions += result.transactions
        observations.problems += isLast ? result.problems : result.problems.filter { !$0.hasPrefix("ended: ") }
      }
      if isLast { observations.add(try finish(workload, port: server.port)) }
      for (index, listener) in listeners().enumerated() {
        observations.add(listener.recorder)
        if index == 0 { state = listener.state }
        if isLast, !listener.isComplete { observations.problems.append("a listener ended early") }
      }
    }
    return observations
  }

  // MARK: - Clusters

  /// Clients and listeners at three nodes of a cluster see one order, while owners are killed. Each kind of client uses all
  /// nodes.
  @Test(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv))) func oneOrderAtAllNodesOfACluster() async throws {
    let observations = try await onDedicatedThread {
      let cluster = try ServedCluster(project: "p", serving: ["--emulator"])
      let workload = AppendWorkload()
      var observations = Observations()
      var state = ListListener.State()
      for round in 0...Self.clusterKills {
        let owner = try cluster.owner()
        let ports = cluster.ports
        for index in ports.indices where index != owner { try cluster.waitUntilReading(index) }
        let listeners = Self.startListeners(
          workload, port: ports[round % 3], others: [ports[(round + 1) % 3], ports[(round + 2) % 3]], resuming: state)
        typealias Kind = (String, @Sendable (UInt16) throws -> any AppendClient)
        let kinds = Self.clients.enumerated().map { index, client -> Kind in
          (client.name, { _ in try client.make(ports[index % 3]) })
        }
        let isLast = round == Self.clusterKills
        let clients = AppendClients(
          workload, port: 0, seed: Self.seed &+ UInt64(round), seconds: Self.seconds / 2, kinds)
        if !isLast {
          cluster.nodes[owner].process.send(signal: SIGKILL)
          _ = try cluster.owner(after: owner)
          try cluster.restart(owner)
        }
        for result in clients.results() {
          observations.transactions += result.transactions
          observations.problems += isLast ? result.problems : result.problems.filter { !$0.hasPrefix("ended: ") }
        }
        if isLast { observations.add(try Self.finish(workload, port: ports[(owner + 1) % 3])) }
        if !isLast {
          // Ends the listeners, which wait for the last list.
          for node in cluster.nodes where node.port != ports[owner] { node.process.send(signal: SIGKILL) }
        }
        for (index, listener) in listeners().enumerated() {
          observations.add(listener.recorder)
          if index == 0 { state = listener.state }
          if isLast, !listener.isComplete { observations.problems.append("a listener ended early") }
        }
        if !isLast { for index in ports.indices where index != owner { try cluster.restart(index) } }
      }
      return observations
    }
    observations.check(seed: Self.seed)
  }

  private static let clusterKills = environment["HISTORY_CLUSTER_KILLS"].flatMap { Int($0) } ?? 1
}
