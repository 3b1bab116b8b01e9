import Basics
import DocumentModel
import Glibc
import LogEngine
import PostgresEngine
import SharedLog
import WireFormat

/// The state of a cluster, with what a short watch tells about its nodes.
struct ClusterStatus {
  /// Whether a node renews its session.
  enum NodeState: Equatable {
    /// It did during the watch.
    case live
    /// It did not.
    case silent
    /// Others ended its session.
    case dead
    /// It has not begun a session.
    case starting

    var text: String {
      switch self {
      case .live: "live"
      case .silent: "silent"
      case .dead: "dead"
      case .starting: "starting"
      }
    }
  }

  /// The longest watch, in milliseconds: twice the time between two renewals.
  private static let watchMilliseconds: Int64 = 2000

  let identity: ClusterIdentity
  let state: ClusterState
  /// The snapshots, the newest first.
  let snapshots: [SnapshotHead]
  let findings: [Finding]
  /// The time since the last renewal of each node that renewed its session during the watch, in milliseconds.
  let renewed: [UInt32: Int64]
  /// The time of the watch, in milliseconds.
  let watched: Int64

  /// Watches the nodes until each live one has renewed its session, for at most two seconds.
  /// - Throws: `PostgresFailure`.
  static func watched(
    _ identity: ClusterIdentity, _ catalog: ClusterCatalog, _ snapshots: [SnapshotHead], _ findings: [Finding]
  ) throws -> ClusterStatus {
    let begin = Progress.now()
    let first = try catalog.state()
    var last = first
    var changes: [UInt32: (renewal: UInt64, at: Int64?)] = [:]
    for member in first.members { changes[member.node] = (member.session?.renewal ?? 0, nil) }
    func isComplete() -> Bool {
      last.members.allSatisfy { $0.session?.isLive != true || changes[$0.node]?.at != nil }
    }
    while !isComplete(), Progress.now() - begin < watchMilliseconds {
      usleep(50_000)
      last = try catalog.state()
      for member in last.members {
        guard let session = member.session, changes[member.node]?.renewal != session.renewal else { continue }
        changes[member.node] = (session.renewal, Progress.now())
      }
    }
    let now = Progress.now()
    return ClusterStatus(
      identity: identity, state: last, snapshots: snapshots, findings: findings,
      renewed: changes.compactMapValues { $0.at.map { now - $0 } }, watched: now - begin)
  }

  func state(of member: RegisteredNode) -> NodeState {
    guard let session = member.session else { return .starting }
    guard session.isLive else { return .dead }
    return renewed[member.node] == nil ? .silent : .live
  }

  /// Whether a live node owns the cluster.
  var hasOwner: Bool {
    guard state.isOwnerLive, let owner = state.owner.flatMap(state.member) else { return false }
    return state(of: owner) == .live
  }

  // MARK: Text

  func text(on terminal: Terminal) -> String {
    var text = "project \(identity.project), cluster \(Hexadecimal.text(identity.id))\n"
    text +=
      hasOwner
      ? "node \(state.owner ?? 0) owns the cluster, in epoch \(state.epoch)\n"
      : terminal.red("no live node owns the cluster") + "\n"
    text += state.members.isEmpty ? "\nno node has been started yet\n" : "\n\(nodes(on: terminal))"
    let size = state.logBytes.map { "; \(ByteCount.text(Int(clamping: $0))) in PostgreSQL" } ?? ""
    text += """

      log            \(CountText.grouped(Int(clamping: state.entries), "entry", "entries")) up to \(state.head), confirmed \
      up to \(state.confirmed)\(size)
      snapshots      \(snapshotsText)
      configuration  version \(state.configuration)


      """
    if let loss = state.loss {
      text +=
        terminal.red("PostgreSQL lost acknowledged commits")
        + "; node \(loss.node) noticed it at \(Self.time(loss.seconds * 1_000_000)). They are in the folder replica.diverged-… of that node, and "
        + (state.isLossAnswered ? "listeners have begun anew.\n\n" : "listeners have not begun anew yet.\n\n")
    }
    return text + findings.table(on: terminal)
  }

  private var snapshotsText: String {
    guard !snapshots.isEmpty else { return "none" }
    return snapshots.map { "entry \($0.position.sequence), \(ByteCount.text(Int(clamping: $0.bytes)))" }
      .joined(separator: "; ")
  }

  private func nodes(on terminal: Terminal) -> String {
    let head = ["node", "address", "state", "renewed", "role", "version", "started"]
    let rows =
      [head]
      + state.members.map { member in
        [
          "\(member.node)", TerminalText.line(member.address), state(of: member).text, renewedText(member),
          role(of: member),
          TerminalText.line(member.software), Self.time(member.started),
        ]
      }
    return ClusterTable.text(rows, on: terminal)
  }

  private func role(of member: RegisteredNode) -> String {
    let role = member.node == state.owner && state.isOwnerLive ? "owner" : "follower"
    return member.isDraining ? "\(role), draining" : role
  }

  private func renewedText(_ member: RegisteredNode) -> String {
    switch state(of: member) {
    case .live: "\(Self.seconds(renewed[member.node] ?? 0)) s ago"
    case .silent: "over \(Self.seconds(watched)) s ago"
    case .dead, .starting: "-"
    }
  }

  /// Returns a time with one decimal place.
  private static func seconds(_ milliseconds: Int64) -> String { "\(milliseconds / 1000).\(milliseconds % 1000 / 100)" }

  /// Returns a time in whole seconds.
  private static func time(_ microseconds: Int64) -> String {
    Timestamp(uncheckedMicroseconds: microseconds / 1_000_000 * 1_000_000).description
  }

  // MARK: JSON

  func json() -> [UInt8] {
    JSONWriter.report { json in
      json.add("ok", hasOwner)
      json.add("project", identity.project)
      json.add("cluster", Hexadecimal.text(identity.id))
      json.add("acceptsLoss", identity.acceptsLoss)
      json.add("epoch", Int(clamping: state.epoch))
      if hasOwner { json.add("owner", Int(state.owner ?? 0)) }
      json.add("configuration", Int(clamping: state.configuration))
      json.key("log")
      json.beginObject()
      json.add("entries", Int(clamping: state.entries))
      json.add("first", Int(clamping: state.firstSequence))
      json.add("head", Int(clamping: state.head))
      json.add("confirmed", Int(clamping: state.confirmed))
      if let bytes = state.logBytes { json.add("bytes", Int(clamping: bytes)) }
      json.endObject()
      if let loss = state.loss {
        json.key("loss")
        json.beginObject()
        json.add("node", Int(loss.node))
        json.add("noticed", Self.time(loss.seconds * 1_000_000))
        json.add("isAnswered", state.isLossAnswered)
        json.endObject()
      }
      json.add("snapshots", snapshots) { snapshot, json in
        json.add("entry", Int(clamping: snapshot.position.sequence))
        json.add("bytes", Int(clamping: snapshot.bytes))
        json.add("dataBytes", Int(clamping: snapshot.fileBytes))
      }
      json.add("nodes", state.members) { member, json in
        json.add("node", Int(member.node))
        json.add("address", member.address)
        json.add("state", state(of: member).text)
        if let milliseconds = renewed[member.node] { json.add("renewedMillisecondsAgo", Int(milliseconds)) }
        json.add("isOwner", member.node == state.owner && state.isOwnerLive)
        json.add("isDraining", member.isDraining)
        json.add("software", member.software)
        json.add("started", Self.time(member.started))
      }
      json.add("findings", findings) { finding, json in
        json.add("level", finding.level.rawValue)
        json.add("topic", finding.topic)
        json.add("text", finding.text)
        json.add("advice", finding.advice)
      }
    }
  }
}
