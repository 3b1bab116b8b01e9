import DocumentStore
import HearthServer

extension Command {
  /// Finds usual mistakes before they hurt.
  static let doctor = Command(
    name: "doctor", summary: "Looks for usual mistakes in how a server is set up.",
    options: serve.options.filter { !["quiet", "import", "print-config"].contains($0.name) }
      + [.flag("json", "print JSON")],
    details: """
      Takes the options of 'hearth serve', and hearth.json as it does, and looks at what a server with them would find:
      the data directory with its permissions and owner, its file system, the room on it and the time of a sync; how
      full the databases are; the clock; rules that do not compile, that anybody may write by, or that have run out;
      index files; the certificate; keys of identity providers and of programs; who could reach the port and the
      metrics; limits of the system.

      Changes no data, and may run beside the server. In the directory it writes a small file to time syncs and
      removes it, and it takes the directory's lock for a moment: a server that starts just then is refused.
      Exit code 0, or 1 where there is a problem.
      """,
    examples: [
      ("hearth doctor", "with hearth.json of this directory"),
      ("sudo -u hearth hearth doctor --config /etc/hearth/hearth.json", "as the service that it looks at"),
      ("hearth doctor --json", "for programs"),
    ],
    run: { arguments in
      let configuration = try configuration(arguments, isEmulator: arguments.has("emulator"))
      let findings = checks(configuration, now: Clock.system.now())
      Terminal.output.write(arguments.has("json") ? findings.json() : Array(findings.table(on: .output).utf8))
      return findings.contains { $0.level == .problem } ? ExitCode.failure : 0
    })

  private static func checks(_ configuration: HearthConfiguration, now: Int64) -> [Finding] {
    var findings: [Finding] = []
    var (holder, readable): (String?, String?)
    switch configuration.storage {
    case .directory(let path):
      var directory = DirectoryChecks(path: path, mapBytes: configuration.mapBytes, now: now)
      findings += directory.findings()
      holder = directory.holder
      if directory.isReadable { readable = path }
    case .inMemory: findings.append(MachineChecks.memory())
    }
    findings += MachineChecks.clock(now: now)
    findings += RulesChecks(configuration: configuration, now: now).findings()
    findings += IndexesChecks(configuration: configuration).findings()
    findings += KeysChecks(configuration: configuration, directory: readable, now: now).findings()
    findings += ServingChecks(configuration: configuration, holder: holder, now: now).findings()
    findings += MachineChecks.limits()
    return findings
  }
}
