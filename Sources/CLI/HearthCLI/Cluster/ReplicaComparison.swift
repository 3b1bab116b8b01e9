import Basics
import LogEngine
import PostgresEngine
import Replication
import WireFormat

/// The replicas of all live nodes at one position of the log.
struct ReplicaComparison {
  /// A store, and the nodes whose replicas have the same content of it.
  struct Row: Equatable {
    var name: StoreName
    /// The content, or `nil` if the replicas of these nodes do not have the store.
    var content: ReplicaDigest.Store?
    var nodes: [UInt32]
  }

  let identity: ClusterIdentity
  let owner: UInt32?
  /// The digests by node.
  let digests: [UInt32: ReplicaDigest]
  /// The live nodes without a digest, and the reason.
  let missing: [(node: UInt32, reason: String)]
  /// The registered nodes that have not renewed their sessions.
  let absent: [UInt32]

  /// The contents of the stores, sorted by name. A store has several rows if the replicas differ, the one that most nodes have
  /// first.
  var rows: [Row] {
    let names = Set(digests.values.flatMap { $0.stores.map(\.name) }).sorted { $0.text < $1.text }
    return names.flatMap { name -> [Row] in
      let nodes = Dictionary(grouping: digests.keys.sorted()) { node in
        digests[node]?.stores.first { $0.name == name }
      }
      return nodes.map { Row(name: name, content: $0.key, nodes: $0.value) }
        .sorted { ($1.nodes.count, $0.nodes[0]) < ($0.nodes.count, $1.nodes[0]) }
    }
  }

  /// The position of the digests.
  var sequence: UInt64? { digests.values.first?.position.sequence }

  /// The nodes whose replicas differ from the content that most nodes have.
  var differing: [UInt32] {
    var groups: [(digest: ReplicaDigest, nodes: [UInt32])] = []
    for (node, digest) in digests.sorted(by: { $0.key < $1.key }) {
      if let place = groups.firstIndex(where: { $0.digest == digest }) {
        groups[place].nodes.append(node)
      } else {
        groups.append((digest, [node]))
      }
    }
    let largest = groups.map(\.nodes.count).max() ?? 0
    guard let equal = groups.first(where: { $0.nodes.count == largest }) else { return [] }
    return digests.keys.filter { !equal.nodes.contains($0) }.sorted()
  }

  /// Whether more than half of the replicas are equal.
  var hasMajority: Bool { 2 * (digests.count - differing.count) > digests.count }

  /// Whether all live nodes took part, and their replicas are equal. One replica of several says nothing.
  var isGood: Bool {
    missing.isEmpty && differing.isEmpty && (digests.count > 1 || digests.count == 1 && absent.isEmpty)
  }

  // MARK: Text

  func text(on terminal: Terminal) -> String {
    var text = "project \(identity.project), cluster \(Hexadecimal.text(identity.id))\n"
    if let sequence {
      text += "\(CountText.of(digests.count, "replica", "replicas")) at entry \(sequence) of the log\n\n"
      text += table(on: terminal) + "\n"
    }
    for (node, reason) in missing { text += terminal.red("node \(node) was not compared") + ": \(reason)\n" }
    for node in absent { text += "node \(node) has not renewed its session, so it was not compared\n" }
    return text + conclusion(on: terminal)
  }

  private func table(on terminal: Terminal) -> String {
    let head = ["store", "entries", "data", "digest", "nodes"]
    let cells = rows.map { row in
      [
        row.name.text, row.content.map { ProgressText.number($0.entries) } ?? "-",
        row.content.map { ByteCount.text($0.bytes) } ?? "-",
        row.content.map { Hexadecimal.text($0.digest.prefix(8)) } ?? "-",
        row.nodes.map { "\($0)" }.joined(separator: ", "),
      ]
    }
    return ClusterTable.text([head] + cells, on: terminal)
  }

  private func conclusion(on terminal: Terminal) -> String {
    guard !differing.isEmpty else {
      switch digests.count {
      case 0: return terminal.red("no replica was compared") + "\n"
      case 1: return "only one replica, so there is nothing to compare\n"
      default: return missing.isEmpty ? "all \(digests.count) replicas are equal\n" : "the others are equal\n"
      }
    }
    guard hasMajority else {
      return terminal.red("the replicas differ") + """
        , and none has a majority. Compare each with a backup, or export the data through
        each node (`hearth export --data` after it has stopped), before you remove one.

        """
    }
    let nodes = differing.map { "node \($0)" }.joined(separator: ", ")
    let isOne = differing.count == 1
    var text =
      terminal.red(isOne ? "the replica of \(nodes) differs" : "the replicas of \(nodes) differ")
      + " from the others.\n"
    for node in differing where !rows.contains(where: { $0.nodes.contains(node) && $0.nodes.count < digests.count }) {
      text += "The data of node \(node) is the same, but its log has another history.\n"
    }
    if let owner, differing.contains(owner) {
      text += "Node \(owner) owns the cluster: first let another one do so, with `hearth cluster drain \(owner)`.\n"
    }
    let each = isOne ? "the node" : "one node after the other"
    return text + "Stop \(each), move its data directory away, and start it: it loads the data anew.\n"
  }

  // MARK: JSON

  func json() -> [UInt8] {
    JSONWriter.report { json in
      json.add("ok", isGood)
      json.add("project", identity.project)
      json.add("cluster", Hexadecimal.text(identity.id))
      json.add("hasMajority", hasMajority)
      if let sequence { json.add("entry", Int(clamping: sequence)) }
      json.add("nodes", digests.keys.sorted()) { node, json in
        json.add("node", Int(node))
        json.add("isOwner", node == owner)
        if hasMajority { json.add("isEqual", !differing.contains(node)) }
      }
      json.add("notCompared", missing) { missing, json in
        json.add("node", Int(missing.node))
        json.add("reason", missing.reason)
      }
      json.key("absent")
      json.beginArray()
      for node in absent { json.number(Int(node)) }
      json.endArray()
      json.add("stores", rows) { row, json in
        json.add("store", row.name.text)
        json.key("nodes")
        json.beginArray()
        for node in row.nodes { json.number(Int(node)) }
        json.endArray()
        guard let content = row.content else { return }
        json.add("entries", content.entries)
        json.add("bytes", content.bytes)
        json.add("sha256", Hexadecimal.text(content.digest))
      }
    }
  }
}
