import DocumentModel
import Glibc
import PostgresEngine
import SharedLog

extension Command {
  /// Makes a cluster in a PostgreSQL database.
  static let clusterInit = Command(
    name: "cluster init", summary: "Makes the tables and the key of a cluster in a PostgreSQL database.",
    operands: "[POSTGRES-URL]", operandCount: 0...1,
    options: [
      .value("project", "ID", "the project that the cluster serves (with --from, default: its only project)"),
      .value("from", "DIR", "bring the project of this data directory along, which no server uses"),
    ] + ClusterParts.options + SharedFilesOption.options + [
      .value("key", "FILE", "write the key of the cluster to this new file (default: cluster.key)"),
      .flag("accept-loss", "accept that PostgreSQL can lose acknowledged commits, as its settings are now"),
    ],
    details: """
      A cluster is several servers of one project. They share a log in PostgreSQL, which needs a database of its own for it.
      The verb checks the settings of PostgreSQL and the rights of the role, compiles the rules, makes the tables, and
      writes the key with which the nodes prove to each other that they belong to the cluster. Each node needs a copy of
      the key file. PostgreSQL has only a check value of it.

      Without a synchronous standby, commits are lost if the machine of PostgreSQL dies, although the server acknowledged
      them. The same is true if fsync, full_page_writes or synchronous_commit is off. The verb refuses then, unless
      --accept-loss is given.

      With --from, the verb uploads the documents, accounts and files of a data directory as the first snapshot of the
      cluster. Each node starts with an empty directory and loads it. The verb moves commits that a killed server left in
      a log to the data files, and notes in the metadata of files where their content is; a copy of another cluster
      becomes data of its own. Otherwise the directory remains as it is. Do not serve it again: its changes would not be
      those of the cluster. If the verb fails, it removes the tables. The content of files goes to the place
      that --shared-files names, or to PostgreSQL; name the same place for each node.

      \(ClusterAddress.details)
      """,
    examples: [
      (
        "hearth cluster init postgres://hearth@pg1,pg2/hearth --project shop --rules firestore.rules",
        "with PostgreSQL on two machines"
      ),
      (
        "hearth cluster init postgres://hearth@localhost/hearth --project shop --accept-loss",
        "with PostgreSQL on one machine, which has no standby"
      ),
      (
        "hearth cluster init postgres://hearth@pg1,pg2/hearth --from ./hearth-data --rules firestore.rules",
        "makes the data of a single server those of a cluster"
      ),
    ],
    run: { arguments in
      let url = try ClusterAddress.url(arguments.operands.first)
      let named = arguments.value("project")
      guard named != nil || arguments.has("from") else {
        throw CommandFailure.usage("option '--project' is missing: --project ID")
      }
      if let named, DatabaseID(project: named) == nil {
        throw arguments.refusal(of: "project", named, "is not a valid name of a project")
      }
      if !arguments.has("from") {
        for option in ["shared-files", "shared-files-key", "shared-files-endpoint", "shared-files-region"]
        where arguments.has(option) {
          throw arguments.refusal(of: [option], "needs --from")
        }
      }
      var configuration = ClusterConfiguration()
      for part in try ClusterParts.read(arguments) { configuration.set(part) }
      let keyFile = arguments.value("key") ?? ClusterKey.defaultPaths[0]
      guard access(keyFile, F_OK) != 0 else { throw ClusterKeyFailure.exists(keyFile) }
      let findings = try EngineCheck.findings(at: url)
      try refuse(findings, of: .error, "PostgreSQL cannot hold the tables of a cluster")
      do throws(PostgresFailure) {
        let found = try ClusterSchema.check(at: url)
        throw .otherCluster(project: found.project)
      } catch .noTables {} catch { throw error }
      if !arguments.has("accept-loss") {
        try refuse(
          findings, of: .loss, "PostgreSQL can lose commits that it acknowledged",
          "\nTo accept that, add --accept-loss.")
      }
      let source = try arguments.value("from").map { try ClusterSource($0, project: named, arguments, url) }
      guard let project = source?.project ?? named else { throw CommandFailure.usage("name a project with --project") }
      try source?.shareFiles()
      let key = ClusterKey()
      let identity = ClusterIdentity(
        project: project, keyCheck: try key.check(), acceptsLoss: findings.contains { $0.level == .loss })
      try key.write(to: keyFile)
      try create(identity, configuration, at: url, keyFile: keyFile, first: source?.firstEntry(identity))
      try source?.upload(key, identity, keyFile: keyFile)
      Terminal.output.write(report(identity, configuration, url, keyFile: keyFile))
      return 0
    })

  /// Throws a failure with the findings of one level, if there are any.
  private static func refuse(
    _ findings: [EngineFinding], of level: EngineFinding.Level, _ reason: String, _ remedy: String = ""
  ) throws {
    let lines = findings.filter { $0.level == level }.map { finding in
      "  \(finding.topic): \(finding.text)" + (finding.advice.map { "\n    \($0)" } ?? "")
    }
    if !lines.isEmpty { throw CommandFailure.failed("\(reason)\n\(lines.joined(separator: "\n"))\(remedy)") }
  }

  /// Makes the tables. Removes the key file if it is certain that they were not made.
  private static func create(
    _ identity: ClusterIdentity, _ configuration: ClusterConfiguration, at url: String, keyFile: String,
    first: SharedEntry?
  ) throws {
    do throws(PostgresFailure) {
      try ClusterSchema.create(at: url, identity, configuration: configuration, first: first)
    } catch {
      switch error {
      case .connection, .noAnswer, .notDurable, .unexpectedAnswer:
        // The answer was lost, but the tables tell.
        if (try? ClusterSchema.check(at: url)) == identity { return }
        throw CommandFailure.failed(
          """
          \(error.description)
          The tables may have been made, so \(keyFile) is kept. Run `hearth cluster status`. If there are no tables,
          remove \(keyFile) and try again.
          """)
      default:
        unlink(keyFile)
        throw error
      }
    }
  }

  private static func report(
    _ identity: ClusterIdentity, _ configuration: ClusterConfiguration, _ url: String, keyFile: String
  ) -> String {
    let word = ClusterAddress.shellWord(url)
    var text = "made the cluster of project \(identity.project) in \(PostgresURL.withoutPassword(url))\n"
    for line in ClusterParts.lines(configuration) { text += "  \(line)\n" }
    if configuration.text(.rules) == nil {
      text += "  no rules: every request of an app is denied, until you deploy some\n"
    }
    if identity.acceptsLoss { text += "  accepted: PostgreSQL can lose commits that it acknowledged\n" }
    text += """

      Next, on each machine:
        1. Copy \(keyFile) there. Only the user that runs Hearth may read it.
        2. hearth serve --cluster \(word) --cluster-key \(keyFile) --data ./hearth-data

      """
    if PostgresURL.hasPassword(url) {
      text += "The URL above has no password. Set PGPASSWORD, or add a line to ~/.pgpass.\n"
    }
    return text
  }
}
