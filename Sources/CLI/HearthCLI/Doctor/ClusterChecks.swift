import Basics
import DatabaseService
import HearthServer
import KeyValue
import LMDBEngine
import PostgresEngine

/// Checks this machine as a node of a cluster: PostgreSQL, the key, the data directory, the deployed rules, and the other nodes.
/// It changes nothing, and watches the nodes for up to two seconds.
struct ClusterChecks {
  let url: String
  /// The file of the key, or `nil` for the first one at a default place.
  let keyFile: String?
  let configuration: HearthConfiguration
  /// Microseconds since 1970.
  let now: Int64
  /// The cluster, after ``findings()`` has found it.
  private(set) var identity: ClusterIdentity?

  init(url: String, keyFile: String?, configuration: HearthConfiguration, now: Int64) {
    (self.url, self.keyFile, self.configuration, self.now) = (url, keyFile, configuration, now)
  }

  private static let topic = "cluster"
  private static let newDirectory =
    "Name an empty directory with --data. To bring data along, export them, and import them through a node: "
    + "hearth import --server URL"

  mutating func findings() -> [Finding] {
    var findings: [Finding] = []
    do throws(HearthError) { try ClusterSettings.check(configuration) } catch {
      let advice = "Remove the option from the command line and from hearth.json."
      findings.append(.problem(Self.topic, error.description, advice))
    }
    do throws(PostgresFailure) {
      identity = try ClusterSchema.check(at: url)
    } catch {
      findings.append(.problem(Self.topic, TerminalText.line(error.description), Self.advice(error)))
      if case .connection = error { return findings + key() }
    }
    findings += key() + postgres()
    guard let identity else { return findings }
    var known = Finding.ok(Self.topic, "project \(identity.project), cluster \(Hexadecimal.text(identity.id))")
    if let project = configuration.project, project != identity.project {
      known = .problem(
        Self.topic, "the cluster serves project \(identity.project), not \(project)",
        "Omit --project, and HEARTH_PROJECT in the environment.")
    }
    findings.insert(known, at: 0)
    do {
      let catalog = try ClusterCatalog(url)
      let status = try ClusterStatus.watched(identity, catalog, [], [])
      findings += node(status) + nodes(status)
      findings += rules(try catalog.configuration(newerThan: 0)?.1 ?? ClusterConfiguration())
    } catch {
      findings.append(
        .problem(Self.topic, TerminalText.line(CommandFailure(error).message), "Correct it in PostgreSQL."))
    }
    return findings
  }

  private static func advice(_ failure: PostgresFailure) -> String {
    switch failure {
    case .noTables: "Run: hearth cluster init POSTGRES-URL --project ID"
    case .connection, .noAnswer: "Start PostgreSQL, or correct the URL, the password or the network."
    case .noLibrary: "Install the package libpq5."
    default: "Correct the URL, or use a database of its own for the cluster."
    }
  }

  // MARK: PostgreSQL and the key

  /// Checks the settings, the rights and the clock of PostgreSQL.
  private func postgres() -> [Finding] {
    do throws(PostgresFailure) {
      return try EngineCheck.findings(at: url).map { found in
        var finding = Finding(found, acceptsLoss: identity?.acceptsLoss ?? false)
        finding.text = "\(finding.topic): \(finding.text)"
        finding.topic = "PostgreSQL"
        return finding
      }
    } catch {
      return [.problem("PostgreSQL", TerminalText.line(error.description), Self.advice(error))]
    }
  }

  /// Checks whether the key can be read, and is that of the cluster.
  private func key() -> [Finding] {
    let topic = "cluster key"
    do {
      let (key, path) = try ClusterKey.read(keyFile)
      guard let identity else { return [.ok(topic, "\(path) is a key")] }
      try identity.check(keyCheck: try key.check())
      return [.ok(topic, "\(path) is that of the cluster")]
    } catch {
      let advice = "Copy the file that hearth cluster init wrote, readable by the user of the server only."
      return [.problem(topic, CommandFailure(error).message, advice)]
    }
  }

  // MARK: Nodes

  /// Checks whether the data directory can be that of a node of the cluster, and what the cluster knows about it.
  private func node(_ status: ClusterStatus) -> [Finding] {
    guard case .directory(let path) = configuration.storage else { return [] }
    let topic = "node"
    let file: NodeFile?
    do throws(StorageError) {
      file = try NodeFile(directory: path)
      if let file, file.cluster != status.identity.id {
        let id = Hexadecimal.text(file.cluster)
        return [.problem(topic, "\(path) is the replica of another cluster, \(id)", Self.newDirectory)]
      }
      if let foreign = try DataDirectory.foreignFile(in: path, secret: status.identity.secret) {
        let text = "\(foreign) was written without the cluster, so a node refuses \(path)"
        return [.problem(topic, text, Self.newDirectory)]
      }
    } catch {
      let advice = "Run the command as the user of the server, or name an empty directory."
      return [.problem(topic, error.description, advice)]
    }
    guard let file else {
      return [.ok(topic, "\(path) is new: the node gets a number when it starts, and reads the log of the cluster")]
    }
    if let place = try? NodePlace(lockFile: "\(path)/\(DataDirectoryLock.fileName)"), !place.isSameFile(as: file.place)
    {
      let text = "\(path) is a copy of that of node \(file.node): it gets a number of its own when it starts"
      return [.ok(topic, text)]
    }
    guard let member = status.state.member(file.node) else {
      return [.ok(topic, "\(path) is that of node \(file.node), which registers when it starts")]
    }
    let text = "node \(member.node), at \(TerminalText.line(member.address)), is \(status.state(of: member).text)"
    if member.isDraining {
      return [
        .warning(
          topic, "\(text), and drains: it will not own the cluster",
          "Afterwards: hearth cluster drain POSTGRES-URL \(member.node) --undo")
      ]
    }
    let isRunning = DataDirectoryLock.holder(ofDirectory: path) != nil
    if isRunning, status.state(of: member) != .live {
      return [.problem(topic, "\(text), but its process runs", "Read its log: it may not reach PostgreSQL.")]
    }
    return [.ok(topic, text)]
  }

  /// Checks whether a live node owns the cluster, and all others are live.
  private func nodes(_ status: ClusterStatus) -> [Finding] {
    let members = status.state.members
    if members.isEmpty {
      return [.warning("owner", "no node has been started yet", "Start one: hearth serve --cluster POSTGRES-URL")]
    }
    let live = members.count { status.state(of: $0) == .live }
    guard status.hasOwner, let owner = status.state.owner else {
      let all = CountText.of(members.count, "node")
      let text = "no live node owns the cluster, so it serves nothing; \(live) of \(all) live"
      return [.warning("owner", text, "Start the nodes, and read their logs. They are in: hearth cluster status")]
    }
    var findings = [Finding.ok("owner", "node \(owner), in epoch \(status.state.epoch)")]
    let others = members.filter { status.state(of: $0) != .live }.map {
      "node \($0.node) at \(TerminalText.line($0.address)) is \(status.state(of: $0).text)"
    }
    if others.isEmpty {
      findings.append(.ok("nodes", "\(CountText.of(live, "node")), all live"))
    } else {
      findings.append(
        .warning(
          "nodes", others.joined(separator: ", "),
          "Start them. Remove nodes that do not come back: hearth cluster remove POSTGRES-URL NODE"))
    }
    if live == 1 {
      findings.append(
        .warning("nodes", "one live node: if it dies, nobody takes over", "Start a node on another machine."))
    }
    return findings
  }

  // MARK: Rules

  private func rules(_ deployed: ClusterConfiguration) -> [Finding] {
    let checks = RulesChecks(configuration: configuration, now: now)
    let command = "hearth cluster deploy POSTGRES-URL"
    var findings: [Finding] = []
    if !deployed.parts.contains(where: { $0.kind == .rules }) {
      let text = "no rules are deployed: every request of an app is denied"
      findings.append(.warning("rules", text, "\(command) --rules FILE"))
    }
    for part in deployed.parts where part.kind != .indexes {
      let isOfFiles = part.kind == .storageRules
      let topic = isOfFiles ? "storage rules" : "rules"
      let database = part.database.isEmpty ? "" : " of database \(part.database)"
      findings += checks.findings(
        of: String(decoding: part.text, as: UTF8.self), named: "the deployed text\(database)",
        service: isOfFiles ? FileRules.service : "cloud.firestore", topic: topic,
        advice: "Correct them, and deploy them: \(command) --\(isOfFiles ? "storage-rules" : "rules") FILE")
    }
    return findings
  }
}
