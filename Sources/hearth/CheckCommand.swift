import DocumentModel
import HearthServer
import WireFormat

extension Command {
  /// Verifies a data directory.
  static let check = Command(
    name: "check", summary: "Verifies a data directory.", operands: "DIR", operandCount: 1...1,
    options: [.flag("json", "print JSON"), .flag("quiet", "no progress")],
    details: """
      Reads every database whole: its pages, every document with its checksum, every index entry, the change log and the
      history. Works while a server uses the directory, which grows meanwhile. Exit code 0: all is well; 1: something
      is damaged, and the output says what.
      """,
    examples: [("hearth check ./hearth-data", ""), ("hearth check /backups/monday --json", "for programs")],
    run: { arguments in
      let directory = try DirectoryReader(arguments.operands[0])
      var progress = Progress(isQuiet: arguments.has("quiet"))
      var checks: [FileCheck] = []
      for id in directory.databases {
        checks.append(
          try FileCheck.run(id, file: DataDirectory.file(of: id, in: directory.path)) {
            progress.show($0, "rows of \(id) read")
          })
        progress.clear()
      }
      Terminal.output.write(arguments.has("json") ? json(checks) : text(checks, of: directory.path))
      return checks.allSatisfy { $0.problems.isEmpty } ? 0 : ExitCode.failure
    })

  private static func text(_ checks: [FileCheck], of directory: String) -> [UInt8] {
    var text = ""
    for check in checks {
      if check.problems.isEmpty {
        text += "\(check.id): ok, \(check.counts[.documents, default: 0]) documents, "
        text += "\(check.counts[.indexEntries, default: 0]) index entries\n"
      } else {
        text += "\(check.id): \(Terminal.output.red("damaged"))\n"
        for problem in check.problems { text += "  \(problem)\n" }
      }
    }
    if checks.isEmpty { text += "no databases in \(directory)\n" }
    if checks.contains(where: { !$0.problems.isEmpty }) {
      text += "Restore from a backup, or export what can still be read: hearth export --data \(directory)\n"
    }
    return Array(text.utf8)
  }

  private static func json(_ checks: [FileCheck]) -> [UInt8] {
    var json = JSONWriter(.pretty)
    json.beginObject()
    json.key("ok")
    json.bool(checks.allSatisfy { $0.problems.isEmpty })
    json.key("databases")
    json.beginArray()
    for check in checks {
      json.beginObject()
      json.key("project")
      json.string(check.id.project)
      json.key("database")
      json.string(check.id.database)
      for count in FileCheck.Count.allCases {
        Array(count.rawValue.utf8).withUnsafeBytes { json.key($0) }
        json.number(check.counts[count, default: 0])
      }
      json.key("problems")
      json.beginArray()
      for problem in check.problems { json.string(problem) }
      json.endArray()
      json.endObject()
    }
    json.endArray()
    json.endObject()
    return json.bytes + [UInt8(ascii: "\n")]
  }
}
