import DatabaseService
import DocumentModel
import DocumentStore
import Files
import Glibc
import HearthServer
import KeyValue
import LMDBEngine
import WireFormat

extension Command {
  /// Shows the sizes of the databases and files of a data directory or of a running server.
  static let stats = Command(
    name: "stats", summary: "Shows the sizes of the databases and files of a data directory or a server.",
    options: [
      .value("data", "DIR", "the data directory (default: ./hearth-data)"),
      .value("server", "URL", "show the open databases of a running server instead"),
      .value("project", "ID", "show only the databases of this project"),
      .value("database", "ID", "show only the databases with this ID"),
    ] + DatabaseChoice.credentialOptions + [DatabaseChoice.authoritiesOption, .flag("json", "print JSON")],
    details: """
      The verb counts by reading every key, and works while a server uses the directory. The line for files covers all
      projects. The lines for indexes show how far each declared index is built.
      """,
    examples: [
      ("hearth stats --data ./hearth-data", "a data directory"),
      ("hearth stats --server http://127.0.0.1:8080", "a running server"),
      ("hearth stats --json", "for programs"),
    ],
    run: { arguments in
      var rows: [StatsRow]
      var files: FilesStatistics?
      if arguments.value("server") != nil {
        (rows, files) = try ServerClient(arguments).statistics()
      } else {
        let directory = try DirectoryReader(arguments.value("data") ?? "./hearth-data")
        rows = try directory.databases.map { id -> StatsRow in
          let statistics = try DatabaseStatistics(id, directory.open(id))
          return StatsRow(
            project: id.project, database: id.database, values: statistics.values, indexes: statistics.indexes)
        }
        for owner in try DataDirectory.filesOwners(in: directory.path) {
          guard let opened = try directory.openFiles(of: owner) else { continue }
          let own = try FilesStatistics(opened.metadata, opened.contents)
          files = files.map { FilesStatistics(zip($0.values, own.values).map(+)) } ?? own
        }
      }
      if let project = arguments.value("project") { rows.removeAll { $0.project != project } }
      if let database = arguments.value("database") { rows.removeAll { $0.database != database } }
      Terminal.output.write(arguments.has("json") ? StatsRow.json(rows, files) : StatsRow.table(rows, files))
      return 0
    })
}

/// The numbers of one database, in the order of ``DatabaseStatistics/columns``.
struct StatsRow {
  var project: String
  var database: String
  var values: [Int]
  /// Its declared indexes.
  var indexes: [IndexReport]

  static func table(_ rows: [StatsRow], _ files: FilesStatistics?) -> [UInt8] {
    let filesLine = files.map { files in
      let buckets = CountText.of(files.buckets, "bucket")
      return "files: \(ByteCount.text(ofFiles: files.objects, files.objectBytes)) in \(buckets); "
        + "\(ByteCount.text(files.contentBytes)) of content\n"
    }
    guard !rows.isEmpty else { return Array("no databases\n\(filesLine ?? "")".utf8) }
    var lines = [["database"] + DatabaseStatistics.columns.map(\.title)]
    lines += rows.map { ["\($0.project)/\($0.database)"] + $0.values.map(String.init) }
    let widths = lines[0].indices.map { column in lines.map { TextWidth.of($0[column]) }.max() ?? 0 }
    var text = ""
    for line in lines {
      for (column, cell) in line.enumerated() {
        let padding = String(repeating: " ", count: widths[column] - TextWidth.of(cell))
        text += column == 0 ? cell + padding : "  " + padding + cell
      }
      text += "\n"
    }
    for row in rows {
      for index in row.indexes {
        text += TerminalText.line("\(row.project)/\(row.database): index \(index.line)") + "\n"
      }
    }
    text += filesLine ?? ""
    return Array(text.utf8)
  }

  static func json(_ rows: [StatsRow], _ files: FilesStatistics?) -> [UInt8] {
    JSONWriter.report { json in
      json.add("databases", rows) { row, json in
        json.add("project", row.project)
        json.add("database", row.database)
        for (column, value) in zip(DatabaseStatistics.columns, row.values) { json.add(column.name, value) }
        guard !row.indexes.isEmpty else { return }
        json.add("indexes", row.indexes) { index, json in
          json.add("index", index.text)
          json.add("state", index.state.rawValue)
          json.add("documents", index.documents)
        }
      }
      guard let files else { return }
      json.key("files")
      json.beginObject()
      for (name, value) in zip(FilesStatistics.columns, files.values) { json.add(name, value) }
      json.endObject()
    }
  }
}
