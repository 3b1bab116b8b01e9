import Glibc
import HearthServer
import LogEngine
import PostgresEngine
import Replication
import Transport

extension Command {
  /// Compares the replicas of the nodes of a cluster.
  static let clusterCheck = Command(
    name: "cluster check", summary: "Compares the data of all nodes of a cluster, at one position of its log.",
    operands: "[POSTGRES-URL]", operandCount: 0...1,
    options: [
      ClusterAddress.keyOption,
      .flag("json", "print JSON"),
    ],
    details: """
      Each live node reads all of its data at the same entry of the log, and sends a digest. If the digests of two nodes
      differ, one of them is damaged. Clients can commit meanwhile. The verb connects to the addresses that `hearth cluster
      status` shows, so run it on a machine that reaches them.

      A node that has not renewed its session for two seconds takes no part. The exit code is 1 if replicas differ,
      another node does not answer, or only one of several nodes could be read; it is 75 if another comparison was under way
      for two minutes.

      \(ClusterAddress.details)
      """,
    examples: [
      ("hearth cluster check postgres://hearth@pg1,pg2/hearth --key cluster.key", "for people"),
      ("hearth cluster check --json", "for programs, with the URL in HEARTH_CLUSTER"),
    ],
    run: { arguments in
      let url = try ClusterAddress.url(arguments.operands.first)
      let identity = try ClusterSchema.check(at: url)
      let key = try ClusterKey.read(arguments.value("key")).key
      try identity.check(keyCheck: try key.check())
      guard let nodeKey = NodeKey(key.bytes) else { throw ClusterKeyFailure.noDigest }
      let client = try NodeClient(key: nodeKey)
      defer { client.stop() }
      var check = ClusterCheck(try .watched(identity, try ClusterCatalog(url), [], []), client)
      let comparison = try check.run()
      Terminal.output.write(
        arguments.has("json") ? comparison.json() : Array(comparison.text(on: .output).utf8))
      return comparison.isGood ? 0 : ExitCode.failure
    })
}

/// One run of `hearth cluster check`.
private struct ClusterCheck {
  /// The most positions that are tried.
  private static let triesMax = 20
  /// The most waits for another comparison, of about a second each.
  private static let waitsMax = 120
  /// The delays after which a node takes no part.
  private static let delaysMax = 2

  private let identity: ClusterIdentity
  private let owner: UInt32?
  private let client: NodeClient
  private var nodes: [(number: UInt32, address: NodeAddress)] = []
  private var missing: [(node: UInt32, reason: String)] = []
  private var absent: [UInt32] = []
  /// The head of the log in PostgreSQL. The data files of a node that starts are at different positions up to it.
  private let least: UInt64
  /// How often a node did not get to the position in time.
  private var delays: [UInt32: Int] = [:]

  init(_ status: ClusterStatus, _ client: NodeClient) {
    identity = status.identity
    self.client = client
    owner = status.hasOwner ? status.state.owner : nil
    least = status.state.head
    for member in status.state.members {
      guard status.state(of: member) == .live else {
        absent.append(member.node)
        continue
      }
      if let address = NodeAddress(text: member.address) {
        nodes.append((member.node, address))
      } else {
        missing.append((member.node, "its address \(TerminalText.line(member.address)) is not usable"))
      }
    }
  }

  mutating func run() throws -> ReplicaComparison {
    // The entries that the log is expected to get until all nodes have the question.
    var margin: UInt64 = 0
    var (tries, waits) = (0, 0)
    while tries < Self.triesMax, waits < Self.waitsMax {
      let head = max(dropSilent(ask(at: nil)), least)
      guard !nodes.isEmpty else { return comparison([:]) }
      let round = Round(ask(at: head + margin), at: head + margin)
      for (node, reason) in round.failures { drop(node, TerminalText.line(reason)) }
      if !round.digests.isEmpty, round.digests.count == nodes.count { return comparison(round.digests) }
      if round.isBusy {
        waits += 1
        // Another command may wait as well.
        usleep(UInt32.random(in: 500_000...1_500_000))
        continue
      }
      tries += 1
      for (node, sequence) in round.delays where sequence < head {
        delays[node, default: 0] += 1
        // Such as one that loads a snapshot.
        if delays[node] == Self.delaysMax { drop(node, "it is behind the others, at entry \(sequence) of the log") }
      }
      if round.reached > head + margin {
        margin = 4 * (round.reached - head) + 16
      } else if !round.delays.isEmpty {
        margin /= 2
      }
    }
    guard waits < Self.waitsMax else {
      throw CommandFailure(ExitCode.busy, "another comparison of these nodes is under way; try again later")
    }
    throw CommandFailure.failed(
      "the nodes did not stop at the same entry of the log; try again when fewer clients commit")
  }

  private func comparison(_ digests: [UInt32: ReplicaDigest]) -> ReplicaComparison {
    ReplicaComparison(
      identity: identity, owner: owner, digests: digests, missing: missing.sorted { $0.node < $1.node },
      absent: absent)
  }

  private func ask(at sequence: UInt64?) -> [UInt32: ReplicaAnswer] {
    var progress = Progress()
    defer { progress.clear() }
    return ReplicaQuestion.ask(nodes, at: sequence, by: client) { bytes in
      if bytes > 0 { progress.show("\(ByteCount.text(bytes)) read by all nodes") }
    }
  }

  /// Returns the greatest position. Nodes without one take no part any more.
  private mutating func dropSilent(_ answers: [UInt32: ReplicaAnswer]) -> UInt64 {
    var head: UInt64 = 0
    for (number, _) in nodes {
      if case .at(let sequence)? = answers[number] {
        head = max(head, sequence)
      } else {
        drop(number, "it does not answer, or its version of hearth has no digests")
      }
    }
    return head
  }

  private mutating func drop(_ node: UInt32, _ reason: String) {
    nodes.removeAll { $0.number == node }
    missing.append((node, reason))
  }
}

/// The answers to one question.
private struct Round {
  var digests: [UInt32: ReplicaDigest] = [:]
  var failures: [(node: UInt32, reason: String)] = []
  /// The nodes that did not get to the position, and where they were.
  var delays: [(node: UInt32, sequence: UInt64)] = []
  /// The greatest position of the nodes that were after it.
  var reached: UInt64 = 0
  var isBusy = false

  init(_ answers: [UInt32: ReplicaAnswer], at sequence: UInt64) {
    for (node, answer) in answers {
      switch answer {
      case .digest(let digest) where digest.position.sequence == sequence: digests[node] = digest
      case .passed(let later): reached = max(reached, later)
      case .late(let earlier): delays.append((node, earlier))
      case .busy: isBusy = true
      case .failed(let reason): failures.append((node, reason))
      // It ended in the middle, or the question was withdrawn because of another node.
      case .at, .silent, .digest: break
      }
    }
  }
}
