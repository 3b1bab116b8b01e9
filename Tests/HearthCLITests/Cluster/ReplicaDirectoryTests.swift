import Foundation
import Testing
import TestSupport

/// The directory of a node, as commands see it that are not the node.
@Suite(.needs(.hearth), .needs(.postgres), .needs(.tool(.setpriv)), .serialized) struct ReplicaDirectoryTests {
  private static let documents = ServedCluster.documents

  /// The commands that read the files of a data directory.
  private static func readers(_ data: String, _ place: String) -> [[String]] {
    [
      ["backup", "\(place)/copy", "--data", data, "--quiet"],
      ["backups", "create", "\(place)/backups", "--data", data],
      ["export", "--data", data, "--project", "shop"], ["stats", "--data", data],
      ["stats", "--collections", "--data", data, "--project", "shop"], ["check", data, "--quiet"],
    ]
  }

  /// The commands that write to them, and the server alone.
  private static func writers(_ data: String, _ tree: String) -> [[String]] {
    [
      ["import", tree, "--data", data, "--project", "shop"], ["compact", "--data", data],
      ["serve", "--port", "0", "--data", data, "--project", "shop"],
      ["keys", "list", "--data", data, "--project", "shop"],
    ]
  }

  private static func send(_ cluster: ServedCluster, _ node: Int, _ id: String) throws {
    let made = try ServedCluster.send(cluster.ports[node], "POST", "\(documents)/items?documentId=\(id)", "{}")
    #expect(made.status == 200, "\(made.text)")
  }

  @Test func commandsRefuseTheFilesOfANodeUntilItStops() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 1)
      let (data, place) = (cluster.directory.file("node1"), cluster.directory.path)
      let tree = try cluster.directory.write("tree.json", #"{"$collections": ["notes"], "notes": {"a": {"n": 1}}}"#)
      try Self.send(cluster, 0, "a")
      func refuse(_ commands: [[String]], _ state: String) throws {
        for command in commands {
          let run = try HearthBinary.run(command)
          let said = run.output
          #expect(run.exit == .code(1), "\(state): \(command): \(said)")
          #expect(said.contains("\(data) is the replica of a node of a cluster"), "\(state): \(command): \(said)")
          #expect(said.contains("SIGTERM") && said.contains("hearth export --server"), "\(command): \(said)")
          #expect(!said.contains("damaged"), "\(state): \(command): \(said)")
        }
      }
      try refuse(Self.readers(data, place), "running")
      cluster.nodes[0].process.send(signal: SIGKILL)
      #expect(cluster.nodes[0].process.waitForExit(timeoutSeconds: 30) == .signal(SIGKILL))
      try refuse(Self.readers(data, place) + Self.writers(data, tree), "killed")
      #expect(!FileManager.default.fileExists(atPath: "\(place)/copy"))
      // Nothing of this kept the node from continuing.
      try cluster.restart(0)
      try Self.send(cluster, 0, "b")
      let found = try JSONNode(parsing: ServedCluster.send(cluster.ports[0], "GET", "\(Self.documents)/items").body)
      #expect(found["documents"]?.elements.count == 2, "\(found.text)")
      #expect(cluster.nodes[0].process.stop() == .code(0))
      for command in Self.readers(data, place) {
        let run = try HearthBinary.run(command)
        #expect(run.exit == .code(0), "\(command): \(run.output)")
        if command[0] == "export" { #expect(run.output.contains(#""b""#), "\(run.output)") }
      }
    }
  }

  /// A server alone has a log of its own, and a crash of it is the usual one.
  @Test func aDirectoryThatLeftItsClusterIsOrdinary() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 1)
      let data = cluster.directory.file("node1")
      try Self.send(cluster, 0, "a")
      #expect(cluster.nodes[0].process.stop() == .code(0))
      let rules = try cluster.directory.write("alone.rules", ServedCluster.openRules)
      let arguments = ["--project", "shop", "--data", data, "--rules", rules]
      let alone = try HearthProcess(arguments: arguments)
      let made = try ServedCluster.send(alone.port, "POST", "\(Self.documents)/items?documentId=b", "{}")
      #expect(made.status == 200)
      alone.process.send(signal: SIGKILL)
      #expect(alone.process.waitForExit(timeoutSeconds: 30) == .signal(SIGKILL))
      for command in Self.readers(data, cluster.directory.path) {
        let run = try HearthBinary.run(command)
        #expect(run.exit == .code(0), "\(command): \(run.output)")
      }
      let again = try HearthProcess(arguments: arguments)
      let found = try JSONNode(parsing: ServedCluster.send(again.port, "GET", "\(Self.documents)/items").body)
      #expect(found["documents"]?.elements.count == 2, "\(found.text)")
      again.process.stop()
      // The cluster does not take it back, and `hearth doctor` knows that before a start.
      let doctor = try self.doctor(cluster, data: data)
      #expect(doctor.findings.contains { $0.hasPrefix("problem node: ") && $0.contains("written without the cluster") })
    }
  }

  @Test func whatAKilledNodeHasCanBeSalvaged() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 1)
      let data = cluster.directory.file("node1")
      try Self.send(cluster, 0, "a")
      // The second start finds the first document in the log, and a clean stop moves it to the file.
      #expect(cluster.nodes[0].process.stop() == .code(0))
      try cluster.restart(0)
      try Self.send(cluster, 0, "b")
      cluster.nodes[0].process.send(signal: SIGKILL)
      #expect(cluster.nodes[0].process.waitForExit(timeoutSeconds: 30) == .signal(SIGKILL))
      let salvaged = try HearthBinary.run(["check", data, "--give-up-damaged-log", "--quiet"])
      #expect(salvaged.exit == .code(0), "\(salvaged.output)")
      #expect(salvaged.output.contains("gave up the commits that only the log of the cluster has"))
      let export = try HearthBinary.run(["export", "--data", data, "--project", "shop"])
      #expect(export.exit == .code(0) && export.output.contains(#""a""#), "\(export.output)")
    }
  }

  // MARK: - hearth doctor

  private func doctor(
    _ cluster: ServedCluster, data: String, _ more: [String] = [], key: String? = nil, url: String? = nil
  ) throws -> (exit: ProcessExit?, findings: [String]) {
    var arguments = ["doctor", "--json", "--port", "0", "--data", data] + more
    if url != "" {
      arguments += ["--cluster", url ?? cluster.url, "--cluster-key", key ?? cluster.directory.file("cluster.key")]
    }
    let run = try HearthBinary.run(arguments)
    let report = try JSONNode(parsing: Array(run.output.utf8))
    let findings = (report["findings"]?.elements ?? []).map { finding in
      func text(_ name: String) -> String { finding[name]?.stringValue ?? "" }
      #expect((text("level") == "ok") == text("advice").isEmpty, "\(finding.text)")
      return "\(text("level")) \(text("topic")): \(text("text"))"
    }
    return (run.exit, findings)
  }

  @Test func doctorChecksANode() async throws {
    try await onDedicatedThread {
      let cluster = try ServedCluster(nodes: 2)
      let owner = try cluster.owner()
      let data = cluster.directory.file("node1")
      try Self.send(cluster, 0, "a")
      let running = try doctor(cluster, data: data)
      func has(_ found: (exit: ProcessExit?, findings: [String]), _ prefix: String, _ part: String = "") -> Bool {
        found.findings.contains { $0.hasPrefix(prefix) && (part.isEmpty || $0.contains(part)) }
      }
      let all = running.findings.joined(separator: "\n")
      #expect(has(running, "ok cluster: project shop, cluster "), "\(all)")
      #expect(has(running, "ok cluster key: ") && has(running, "ok PostgreSQL: version: "), "\(all)")
      // The loss was accepted when the cluster was made, and the rules are open to the world.
      #expect(has(running, "warning PostgreSQL: synchronous_standby_names: "), "\(all)")
      #expect(has(running, "ok PostgreSQL: clock: "), "\(all)")
      #expect(has(running, "ok node: node 1, at 127.0.0.1:") && has(running, "ok owner: node \(owner + 1)"), "\(all)")
      #expect(has(running, "ok nodes: 2 nodes, all live") && has(running, "ok replica: "), "\(all)")
      #expect(has(running, "problem rules: the deployed text is open to the world"), "\(all)")
      #expect(has(running, "ok project: shop"), "\(all)")
      #expect(!has(running, "problem (default)") && running.exit == .code(1), "\(all)")

      // A new node, with a wrong key, with the rules of a server alone, for another project.
      let new = cluster.directory.file("new")
      #expect(has(try doctor(cluster, data: new), "ok node: ", "is new"))
      let otherKey = try cluster.directory.write(
        "other.key", "hearth cluster key 1\n" + String(repeating: "ab", count: 32) + "\n")
      chmod(otherKey, 0o600)
      #expect(has(try doctor(cluster, data: new, key: otherKey), "problem cluster key: ", "not that of this cluster"))
      #expect(has(try doctor(cluster, data: new, key: "/nowhere"), "problem cluster key: ", "/nowhere"))
      #expect(has(try doctor(cluster, data: new, ["--rules", "x"]), "problem cluster: ", "hearth cluster deploy"))
      #expect(has(try doctor(cluster, data: new, ["--project", "other"]), "problem cluster: ", "shop, not other"))
      // The data of a server alone.
      let tree = try cluster.directory.write("tree.json", #"{"$collections": ["notes"], "notes": {"a": {"n": 1}}}"#)
      let alone = cluster.directory.file("alone")
      #expect(try HearthBinary.run(["import", tree, "--data", alone, "--project", "shop"]).exit == .code(0))
      #expect(has(try doctor(cluster, data: alone), "problem node: ", "written without the cluster"))
      // Another PostgreSQL database, and none.
      let empty = try doctor(cluster, data: new, url: try cluster.postgres.makeDatabase("empty"))
      #expect(has(empty, "problem cluster: ", "hearth cluster init") && has(empty, "ok PostgreSQL: version: "))
      let nowhere = try doctor(cluster, data: new, url: "postgres:///x?host=/nowhere")
      #expect(has(nowhere, "problem cluster: ", "connection"))

      // A node that was killed, as others and it see that.
      let other = 1 - owner
      cluster.nodes[other].process.send(signal: SIGKILL)
      #expect(cluster.nodes[other].process.waitForExit(timeoutSeconds: 30) == .signal(SIGKILL))
      let killed = try doctor(cluster, data: cluster.directory.file("node\(other + 1)"))
      #expect(has(killed, "ok replica: ", "which was killed"), "\(killed.findings)")
      #expect(has(killed, "warning nodes: node \(other + 1) at "), "\(killed.findings)")
      #expect(has(killed, "warning nodes: one live node"), "\(killed.findings)")
      let withoutCluster = try doctor(cluster, data: cluster.directory.file("node\(other + 1)"), url: "")
      #expect(has(withoutCluster, "problem replica: ", "which was killed"), "\(withoutCluster.findings)")
      #expect(!has(withoutCluster, "problem (default)"), "\(withoutCluster.findings)")
    }
  }
}
