import DocumentModel
import Glibc
import HearthServer
import LMDBEngine
import PostgresEngine
import WireFormat

extension Command {
  /// Verifies a data directory.
  static let check = Command(
    name: "check", summary: "Verifies a data directory.", operands: "DIR", operandCount: 1...1,
    options: [
      .flag("json", "print JSON"), .flag("quiet", "show no progress"),
      .flag("give-up-damaged-log", "give up the commits that a damaged commit log lost; see above"),
    ],
    details: """
      The verb reads every database completely: its pages, every document with its checksum, every index entry, the
      change log and the history. It also verifies the content of every file.

      It works while a server uses the directory. The databases may grow meanwhile, because old pages are kept until
      the check ends.

      Commits that a killed server left in the commit log of a database are read with it. If the log is damaged, a server
      does not open the database. A backup has everything up to its time. Or, with --give-up-damaged-log, this verb keeps
      the commits before the damage, gives up those after it, and renames the log; then it verifies the database. No
      server may use the directory then.

      The directory of a node of a cluster that runs or was killed lacks commits that are in PostgreSQL, so the verb refuses
      it. If the cluster is lost for good, --give-up-damaged-log keeps what the files have; commits can be there in part.

      The exit code is 0 if everything is intact, and 1 if something is damaged; the output then lists the damage.
      """,
    examples: [
      ("hearth check ./hearth-data", "a data directory"), ("hearth check /backups/monday --json", "for programs"),
    ],
    run: { arguments in
      let givesUp = arguments.has("give-up-damaged-log")
      let directory = try DirectoryReader(arguments.operands[0], mayBeOpenReplica: givesUp)
      var progress = Progress(isQuiet: arguments.has("quiet"))
      var report = CheckReport()
      if givesUp { try giveUpDamagedLogs(directory) }
      for id in directory.databases {
        progress.restart()
        let check = try ChildCheck.run(checkFile, on: DataDirectory.file(of: id, in: directory.path)) { count, total in
          progress.show(count, "rows of \(id) read", fraction: total.map { min(1, Double(count) / Double($0)) })
        }
        report.databases.append((id, check))
        progress.clear()
      }
      let owners = Result { try DataDirectory.filesOwners(in: directory.path) }
      for owner in (try? owners.get()) ?? [] {
        let check = try ChildCheck.run(checkFiles, on: directory.path, of: owner) { bytes, _ in
          progress.show("\(ByteCount.text(bytes << 20)) of files read")
        }
        report.files.append((owner, check))
        progress.clear()
      }
      Terminal.output.write(arguments.has("json") ? report.json : report.text(of: directory.path))
      _ = try owners.get()
      return report.isOK ? 0 : ExitCode.failure
    })
}

extension Command {
  /// Gives up the lost commits of each database whose log is damaged, and those that a replica lacks.
  private static func giveUpDamagedLogs(_ directory: DirectoryReader) throws {
    // The lock keeps servers out.
    let lock = try DataDirectory(directory.path, mayBeOpenReplica: true)
    try withExtendedLifetime(lock) {
      if try DataDirectory.isOpenReplica(directory.path) {
        for file in try DataDirectory.dataFiles(in: directory.path) {
          _ = try StoredDatabase.giveUpDamagedLog(LMDBOptions(path: file).withRoom())
        }
        // A copy with a part of its data is data of its own, with backups of its own.
        if try CopyFile(directory: directory.path) != nil {
          unlink("\(directory.path)/\(BackupOrigin.fileName)")
          unlink("\(directory.path)/\(CopyFile.name)")
        }
        return Terminal.error.write("hearth check: gave up the commits that only the log of the cluster has\n")
      }
      for id in directory.databases {
        let options = LMDBOptions(path: DataDirectory.file(of: id, in: directory.path)).withRoom()
        guard let path = try StoredDatabase.giveUpDamagedLog(options) else { continue }
        Terminal.error.write(
          TerminalText.line(
            "hearth check: \(id): gave up the commits after the damage of its log; the log is now \(path)")
            + "\n")
      }
    }
  }
}

/// The results of `hearth check`.
struct CheckReport {
  /// The end of the path of a commit log.
  static let logSuffix = "-log"
  /// The beginning of a problem of a commit log.
  static let logProblem = "its commit log "

  var databases: [(id: DatabaseID, check: ChildCheck)] = []
  /// The checks of files by their owner, as ``DataDirectory/filesFolder(of:in:)`` names it.
  var files: [(owner: String?, check: ChildCheck)] = []

  /// The names of the counts that the child processes print, in their order.
  private static let databaseCounts: [StaticString] = [
    "documents", "collections", "indexEntries", "history", "changes",
  ]
  private static let filesCounts: [StaticString] = ["objects", "contents", "contentBytes", "uploads", "orphans"]

  var isOK: Bool { (databases.map(\.check) + files.map(\.check)).allSatisfy(\.problems.isEmpty) }

  func text(of directory: String) -> [UInt8] {
    var text = ""
    for (id, check) in databases {
      text += "\(id): \(Self.verdict(check))"
      if check.problems.isEmpty {
        text += ", \(CountText.of(check.count(0), "document"))"
        text += ", \(CountText.of(check.count(2), "index entry", "index entries"))\n"
      }
      for problem in check.problems { text += "  \(TerminalText.line(problem))\n" }
    }
    if databases.isEmpty { text += "no databases in \(directory)\n" }
    for (owner, files) in files {
      text += "\(owner.map { "\($0): " } ?? "")files: \(Self.verdict(files))"
      if files.problems.isEmpty { text += ", \(ByteCount.text(ofFiles: files.count(0), files.count(2)))" }
      if files.problems.isEmpty, files.count(4) > 0 { text += ", \(files.count(4)) unused" }
      if files.problems.isEmpty { text += "\n" }
      for problem in files.problems { text += "  \(TerminalText.line(problem))\n" }
    }
    let hasDamagedLog = databases.contains { $0.check.problems.contains { $0.hasPrefix(Self.logProblem) } }
    if hasDamagedLog {
      text += "Restore a backup, or keep the commits before the damage of the log: "
      text += "hearth check --give-up-damaged-log \(directory)\n"
    } else if databases.contains(where: { !$0.check.problems.isEmpty }) {
      text += "Restore a backup, or export the readable documents: hearth export --data \(directory)\n"
    }
    if files.contains(where: { !$0.check.problems.isEmpty }) {
      text += "Restore a backup, or copy the readable files: "
      text += "hearth files cp -r gs:// DIR --data \(directory)\n"
    }
    return Array(text.utf8)
  }

  private static func verdict(_ check: ChildCheck) -> String {
    check.problems.isEmpty ? Terminal.output.green("ok") : "\(Terminal.output.red("damaged"))\n"
  }

  var json: [UInt8] {
    JSONWriter.report { json in
      json.add("ok", isOK)
      json.add("databases", databases) { database, json in
        json.add("project", database.id.project)
        json.add("database", database.id.database)
        json.append(database.check, Self.databaseCounts)
      }
      if let files = files.first(where: { $0.owner == nil }) {
        json.key("files")
        json.beginObject()
        json.append(files.check, Self.filesCounts)
        json.endObject()
      }
      let others = files.filter { $0.owner != nil }
      guard !others.isEmpty else { return }
      json.add("projectFiles", others) { files, json in
        json.add("project", files.owner)
        json.append(files.check, Self.filesCounts)
      }
    }
  }
}

extension ChildCheck {
  /// Returns a count by its position, or 0 if the child did not finish.
  fileprivate func count(_ place: Int) -> Int { counts.indices.contains(place) ? counts[place] : 0 }
}

extension JSONWriter {
  /// Appends the counts and the problems of a check.
  fileprivate mutating func append(_ check: ChildCheck, _ names: [StaticString]) {
    for (place, name) in names.enumerated() {
      key(name)
      number(check.count(place))
    }
    key("problems")
    beginArray()
    for problem in check.problems { string(problem) }
    endArray()
  }
}
