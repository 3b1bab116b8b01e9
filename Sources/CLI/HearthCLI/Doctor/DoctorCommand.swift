import Basics
import DocumentStore
import HearthServer
import PostgresEngine

extension Command {
  /// Checks the configuration of a server for common mistakes.
  static let doctor = Command(
    name: "doctor", summary: "Checks the setup of a server for common mistakes.",
    options: serve.options.filter { !["quiet", "import", "print-config"].contains($0.name) }
      + [.flag("json", "print JSON")],
    details: """
      The verb takes the options of `hearth serve`, reads hearth.json like it, and checks what a server with these
      options would use: the data directory with its permissions, owner, file system, free space and sync time; the
      size of the databases; the clock; rules that do not compile, grant access to everyone, or have expired; index
      files; whether the data are of the served project; the certificate; keys of identity providers, which it fetches
      if no file has them, and of programs; the addresses from which the ports and the metrics can be reached; limits of
      the system; the folders and rules of web apps; how much of its quotas a project has used; the place of scheduled
      backups and the age of the last one; and if --config names the file of the packaged service, its systemd socket.

      With --cluster, it checks this machine as a node: the settings, rights and clock of PostgreSQL, the key, the tables,
      whether the data directory belongs to the cluster, the rules that are deployed, the owner, and nodes that are silent.

      It changes no data and can run next to the server. It writes a small file to the directory to time syncs, and
      removes it. It also holds the directory's lock for a moment, so a server that starts at that moment fails.

      The exit code is 1 if there is a problem, otherwise 0. Warnings do not change it.
      """,
    examples: [
      ("hearth doctor --cluster postgres://hearth@pg1,pg2/hearth --data /var/lib/hearth/data", "a node of a cluster"),
      ("hearth doctor", "with hearth.json of the working directory"),
      ("sudo -u hearth hearth doctor --config /etc/hearth/hearth.json", "as the user that runs the service"),
      ("hearth doctor --json", "for programs"),
    ],
    run: { arguments in
      var configuration = try configuration(arguments, isEmulator: arguments.has("emulator"), mayLackKey: true)
      configuration.emulatorPorts = try EmulatorPortOptions.ports(arguments, configuration, hasDefaults: true)
      let findings = checks(arguments, configuration, now: Clock.system.now())
      Terminal.output.write(arguments.has("json") ? findings.json() : Array(findings.table(on: .output).utf8))
      return findings.contains { $0.level == .problem } ? ExitCode.failure : 0
    })

  private static func checks(_ arguments: Arguments, _ given: HearthConfiguration, now: Int64) -> [Finding] {
    var (configuration, findings) = (given, [Finding]())
    let isOfNode = configuration.cluster != nil
    if let cluster = configuration.cluster {
      var checks = ClusterChecks(
        url: cluster.url, keyFile: arguments.value("cluster-key"), configuration: configuration, now: now)
      findings += checks.findings()
      configuration.project = configuration.project ?? checks.identity?.project
    }
    var (holder, readable): (String?, String?)
    switch configuration.storage {
    case .directory(let path):
      if !isOfNode || configuration.project != nil {
        findings += ProjectChecks(configuration: configuration, directory: path).findings()
      }
      var directory = DirectoryChecks(path: path, mapBytes: configuration.mapBytes, now: now, isOfNode: isOfNode)
      findings += directory.findings()
      holder = directory.holder
      if directory.isReadable { readable = path }
    case .inMemory: findings.append(MachineChecks.memory())
    }
    findings += MachineChecks.clock(now: now)
    // The nodes of a cluster have the rules and indexes that are deployed.
    if !isOfNode {
      if configuration.loadProjects == nil || configuration.project != nil {
        findings += RulesChecks(configuration: configuration, now: now).findings()
      }
      findings += IndexesChecks(configuration: configuration).findings()
    }
    findings += KeysChecks(configuration: configuration, directory: readable, now: now).findings()
    if let readable, let project = configuration.project, configuration.mode == .production {
      findings += QuotaChecks(
        configuration: configuration, project: project, filesOwner: nil, directory: readable
      ).findings()
    }
    findings += HostingChecks(configuration: configuration).findings()
    findings += projects(configuration, directory: readable, now: now)
    if case .directory(let path) = configuration.storage {
      findings += BackupChecks(arguments: arguments, directory: path, now: now).findings()
    }
    let socket = arguments.value("config").flatMap { SocketUnit(ofConfiguration: $0) }
    if let socket {
      let isNamed = arguments.has("host") || arguments.has("port")
      findings += socket.findings(named: isNamed ? (configuration.host, configuration.port) : nil)
    }
    findings += ServingChecks(configuration: configuration, holder: holder, now: now, socket: socket).findings()
    findings += MachineChecks.limits()
    return findings
  }

  /// Checks the configurations of all projects of a server that serves several.
  private static func projects(
    _ configuration: HearthConfiguration, directory: String?, now: Int64
  ) -> [Finding] {
    do throws(HearthError) {
      let sources = try configuration.loadProjects?() ?? []
      return sources.flatMap { checks(of: $0, configuration, directory: directory, now: now) }
        + ProjectSource.conflicts(sources).map { .problem("project", $0, "Remove the name from one of the projects.") }
    } catch { return [.problem("project", error.description, "Correct --projects, or the permissions.")] }
  }

  /// Checks the configuration of one of several projects.
  private static func checks(
    of source: ProjectSource, _ server: HearthConfiguration, directory: String?, now: Int64
  ) -> [Finding] {
    var findings: [Finding]
    do throws(HearthError) {
      try source.check()
      var configuration = try source.configuration.get()
      configuration.quotas = configuration.quotas.filled(from: server.quotas)
      findings =
        RulesChecks(configuration: configuration, now: now).findings()
        + IndexesChecks(configuration: configuration).findings()
        + KeysChecks(configuration: configuration, directory: nil, now: now).findings()
        + HostingChecks(configuration: configuration).findings()
      if let directory {
        let owner = source.id == server.project ? nil : source.id
        findings += QuotaChecks(
          configuration: configuration, project: source.id, filesOwner: owner, directory: directory
        ).findings()
      }
    } catch {
      let advice = "Correct it; 'hearth projects check' shows the whole error. The server refuses its requests."
      let line = error.description.prefix { $0 != "\n" }
      findings = [.problem("project", String(line), advice)]
    }
    return findings.map { finding in
      var finding = finding
      finding.text = "\(source.id): \(finding.text)"
      return finding
    }
  }
}
