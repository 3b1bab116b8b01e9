import Accounts
import Basics
import DocumentModel
import Glibc
import HearthServer
import KeyValue
import LMDBEngine
import WireFormat

extension Command {
  private static let projectsOptions: [Command.Option] = [
    .value("projects", "DIR", "the directory with a folder for each project (default: projects)"),
    .flag("json", "print JSON"),
  ]

  /// Lists the projects of a server that serves several.
  static let projectsList = Command(
    name: "projects list", summary: "Lists the projects in a directory of project folders.",
    options: [.value("data", "DIR", "the data directory (default: ./hearth-data)")] + projectsOptions,
    details: """
      The columns are the host names and databases of each project, the size of its databases on disk, the number of
      keys of its programs, the used parts of its quotas, and whether its configuration is valid. The quotas are those of
      the project's own hearth.json, and those of ./hearth.json that it does not set. The verb reads the data directory
      while a server uses it.
      """,
    examples: [("hearth projects list --data /var/lib/hearth/data", "the projects in ./projects")],
    run: { arguments in
      let server = try serverConfiguration()
      let data = arguments.value("data") ?? "./hearth-data"
      let rows = try folders(arguments).map { ProjectRow($0, data: data, server: server) }
      Terminal.output.write(arguments.has("json") ? ProjectRow.json(rows) : ProjectRow.table(rows))
      return 0
    })

  /// Checks the configurations of the projects.
  static let projectsCheck = Command(
    name: "projects check", summary: "Checks the configuration, the rules and the indexes of each project.",
    options: projectsOptions,
    details: """
      The verb reads the same files as a server, and serves nothing. The exit code is 65 if a project is not valid. A
      server would refuse the requests of that project, or keep its previous configuration, and serve the others.
      """,
    examples: [("hearth projects check && systemctl reload hearth", "reloads a server if all projects are valid")],
    run: { arguments in
      let folders = try folders(arguments)
      let rows = folders.map { ProjectRow($0) }
      let conflicts = ProjectSource.conflicts(folders.map { $0.source() })
      if arguments.has("json") {
        Terminal.output.write(ProjectRow.json(rows, conflicts))
      } else {
        for row in rows { Terminal.output.write("\(row.id): \(TerminalText.lines(row.problem ?? "ok"))\n") }
        for conflict in conflicts { Terminal.output.write("\(TerminalText.lines(conflict))\n") }
      }
      return conflicts.isEmpty && rows.allSatisfy { $0.problem == nil } ? 0 : ExitCode.data
    })

  /// Returns the quotas and the default project of the configuration file of the working directory.
  private static func serverConfiguration() throws -> (quotas: QuotaLimits, project: String?) {
    var arguments = try Arguments([], for: serve)
    arguments.adopt(try ConfigurationFile.settings(for: serve, arguments))
    return (try LimitOptions.quotas(arguments), arguments.value("project"))
  }

  private static func folders(_ arguments: Arguments) throws -> [ProjectFolder] {
    let directory = arguments.value("projects") ?? "projects"
    let folders = try ProjectFolder.all(in: directory)
    guard !folders.isEmpty else {
      throw CommandFailure.failed("\(directory) has no folder of a project; name the directory with --projects")
    }
    return folders
  }
}

/// A project in the output of `hearth projects`.
private struct ProjectRow {
  let id: String
  let hosts: [String]
  let databases: [String]
  /// The size of the databases on disk in bytes, and the number of keys of programs; `nil` if they are not known.
  var bytes: Int?
  var keys: Int?
  /// The quotas that are set, and what they count.
  var quotas: [QuotaUse.Row] = []
  /// The reason why the configuration is not valid.
  var problem: String?

  /// Reads a project, and its data if a data directory is given. `server` has the quotas of projects that set none, and
  /// the default project.
  init(
    _ folder: ProjectFolder, data: String? = nil,
    server: (quotas: QuotaLimits, project: String?) = (QuotaLimits(), nil)
  ) {
    let source = folder.source()
    id = folder.id
    hosts = source.hosts
    databases = (try? source.configuration.get().databases) ?? []
    do throws(HearthError) { try source.check() } catch { problem = error.description }
    guard let data, DatabaseID(project: id) != nil else { return }
    let stored = (try? DataDirectory.databases(in: data))?.filter { $0.project == id } ?? []
    bytes = stored.reduce(0) { sum, id in
      var status = stat()
      return stat(DataDirectory.file(of: id, in: data), &status) == 0 ? sum + Int(status.st_blocks) * 512 : sum
    }
    keys = Self.keys(of: id, in: data)
    let limits = ((try? source.configuration.get().quotas) ?? QuotaLimits()).filled(from: server.quotas)
    let owner = id == server.project ? nil : id
    do { quotas = try QuotaUse(limits, of: id, filesOwner: owner, in: data).rows } catch {
      problem = problem ?? "its quotas: \(CommandFailure(error).message)"
    }
  }

  /// Returns the number of keys of programs, or `nil` if the accounts cannot be read. Closes the file, which this
  /// process cannot open twice.
  private static func keys(of project: String, in data: String) -> Int? {
    let options = LMDBOptions(path: DataDirectory.accountsFile(of: project, in: data), readOnly: true)
    let accounts = try? AccountStore(
      store: LMDBStore.open(options), project: AccountsProject(project), mode: .production, now: { 0 })
    return accounts?.serviceKeys.all.count
  }

  static func table(_ rows: [ProjectRow]) -> [UInt8] {
    var lines = [["project", "hosts", "databases", "documents", "keys", "quotas", "state"]]
    lines += rows.map { row in
      [
        row.id, row.hosts.isEmpty ? "-" : row.hosts.joined(separator: " "), row.databases.joined(separator: " "),
        row.bytes.map { ByteCount.text($0) } ?? "-", row.keys.map(String.init) ?? "-",
        row.quotas.isEmpty ? "-" : row.quotas.map(\.text).joined(separator: ", "),
        row.problem.map { "refused: \($0.prefix { $0 != "\n" })" } ?? "ok",
      ]
    }
    let widths = lines[0].indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    var text = ""
    for line in lines {
      let cells = zip(line, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
      let row = cells.joined(separator: "  ")
      text += TerminalText.line(String(row.reversed().drop { $0 == " " }.reversed())) + "\n"
    }
    return Array(text.utf8)
  }

  /// Returns a report. `conflicts` are texts about names that several projects have.
  static func json(_ rows: [ProjectRow], _ conflicts: [String] = []) -> [UInt8] {
    JSONWriter.report { json in
      json.add("ok", conflicts.isEmpty && rows.allSatisfy { $0.problem == nil })
      if !conflicts.isEmpty {
        json.key("conflicts")
        json.beginArray()
        for conflict in conflicts { json.string(conflict) }
        json.endArray()
      }
      json.add("projects", rows) { row, json in
        json.add("project", row.id)
        json.key("hosts")
        json.beginArray()
        for host in row.hosts { json.string(host) }
        json.endArray()
        json.key("databases")
        json.beginArray()
        for database in row.databases { json.string(database) }
        json.endArray()
        if let bytes = row.bytes { json.add("documentsBytes", bytes) }
        if let keys = row.keys { json.add("keys", keys) }
        if !row.quotas.isEmpty {
          json.add("quotas", row.quotas) { quota, json in quota.append(to: &json) }
        }
        json.add("problem", row.problem)
      }
    }
  }
}
