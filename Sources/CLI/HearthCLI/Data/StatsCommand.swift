import Accounts
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
  /// Shows the sizes of the databases, accounts and files of a data directory or of a running server.
  static let stats = Command(
    name: "stats",
    summary: "Shows the sizes of the databases, collections, accounts and files of a data directory or a server.",
    operands: "[PATH]", operandCount: 0...1,
    options: [
      .value("data", "DIR", "the data directory (default: ./hearth-data)"),
      .value("server", "URL", "show the open databases of a running server instead"),
      .value("project", "ID", "show only the databases of this project"),
      .value("database", "ID", "show only the databases with this ID"),
      .flag("collections", "show the bytes of each collection, the largest first; with PATH, only at and below it"),
      .choice(
        "by", CollectionChoice.Grouping.allCases.map(\.rawValue),
        "the collections that share a line: of one pattern, of one ID, or none (default: pattern)"
      ),
      .value("depth", "N", "count collections below N levels with the collection that contains them"),
    ] + DatabaseChoice.credentialOptions + [
      DatabaseChoice.authoritiesOption, .flag("json", "print JSON"), .flag("quiet", "show no progress"),
    ],
    details: """
      The verb counts by reading every key, and works while a server uses the directory. The line for files covers all
      projects. The lines for indexes show how far each declared index is built.

      The bytes of a collection are those of its documents, index entries and before-images (past states, which the server
      keeps for reads in the past), each with its key. The file is larger: it also contains free space and the log of
      changes. A collection without a line has no documents, and none in its history.

      The bytes of documents, as quotas count them, are those of the paths and fields, with \(DocumentUse.overheadBytes)
      for each document. With --server, the verb also shows the quotas that the project has.
      """,
    examples: [
      ("hearth stats --data ./hearth-data", "a data directory"),
      ("hearth stats --server http://127.0.0.1:8080", "a running server"),
      ("hearth stats --collections --data ./hearth-data", "the largest collections"),
      ("hearth stats --collections --depth 1 --data ./hearth-data", "each with everything below it"),
      ("hearth stats users/ann --collections --by path --data ./hearth-data", "those of one document"),
      ("hearth stats --json", "for programs"),
    ],
    run: { arguments in
      guard arguments.has("collections") else {
        for name in ["by", "depth"] where arguments.has(name) {
          throw arguments.refusal(of: [name], "needs --collections")
        }
        guard arguments.operands.isEmpty else { throw CommandFailure.usage("a path needs --collections") }
        return try statistics(arguments)
      }
      return try CollectionsReport.run(arguments)
    })

  private static func statistics(_ arguments: Arguments) throws -> Int32 {
    var report: StatsReport
    if arguments.value("server") != nil {
      report = try ServerClient(arguments).statistics()
    } else {
      let directory = try DirectoryReader(arguments.value("data") ?? "./hearth-data")
      report = StatsReport()
      report.databases = try directory.databases.map { id -> StatsRow in
        let store = try directory.open(id)
        let statistics = try DatabaseStatistics(id, store)
        return StatsRow(
          project: id.project, database: id.database, values: statistics.values, indexes: statistics.indexes,
          documentBytes: try DocumentUse.bytes(in: store))
      }
      report.accounts = try DataDirectory.accountsProjects(in: directory.path).map { project in
        let file = DataDirectory.accountsFile(of: project, in: directory.path)
        return try AccountsStatistics(
          project: project, try LMDBStore.open(LMDBOptions(path: file, readOnly: true)))
      }
      for owner in try DataDirectory.filesOwners(in: directory.path) {
        guard let opened = try directory.openFiles(of: owner) else { continue }
        let own = try FilesStatistics(opened.metadata, opened.contents)
        report.files = report.files.map { FilesStatistics(zip($0.values, own.values).map(+)) } ?? own
      }
    }
    if let project = arguments.value("project") {
      report.databases.removeAll { $0.project != project }
      report.accounts.removeAll { $0.project != project }
    }
    if let database = arguments.value("database") { report.databases.removeAll { $0.database != database } }
    Terminal.output.write(arguments.has("json") ? report.json() : report.table())
    return 0
  }
}

/// The numbers of one database, in the order of ``DatabaseStatistics/columns``.
struct StatsRow {
  var project: String
  var database: String
  var values: [Int]
  /// Its declared indexes.
  var indexes: [IndexReport]
  /// The bytes of its documents, as quotas count them, or `nil` if they are not known.
  var documentBytes: Int?
}

/// The sizes of databases, accounts and files.
struct StatsReport {
  var databases: [StatsRow] = []
  var accounts: [AccountsStatistics] = []
  /// `nil` if no files are stored.
  var files: FilesStatistics?
  /// The quotas of the server's project that are set.
  var quotas: [QuotaUse.Row] = []

  /// Returns the report as text.
  func table() -> [UInt8] {
    var text = ""
    if databases.isEmpty {
      text = "no databases\n"
    } else {
      var lines = [["database"] + DatabaseStatistics.columns.map(\.title)]
      lines += databases.map { ["\($0.project)/\($0.database)"] + $0.values.map(String.init) }
      text = NumberTable.text(lines)
    }
    for row in databases {
      if let bytes = row.documentBytes {
        text +=
          TerminalText.line(
            "\(row.project)/\(row.database): \(ByteCount.text(bytes)) of documents, as quotas count them")
          + "\n"
      }
      for index in row.indexes {
        text += TerminalText.line("\(row.project)/\(row.database): index \(index.line)") + "\n"
      }
    }
    for row in accounts {
      text += "accounts of \(row.project): \(CountText.of(row.accounts, "account")), \(ByteCount.text(row.usedBytes))\n"
    }
    if let files {
      let buckets = CountText.of(files.buckets, "bucket")
      text +=
        "files: \(ByteCount.text(ofFiles: files.objects, files.objectBytes)) in \(buckets); "
        + "\(ByteCount.text(files.contentBytes)) of content\n"
    }
    for quota in quotas { text += "quota: \(quota.text)\n" }
    return Array(text.utf8)
  }

  /// Returns the report as JSON.
  func json() -> [UInt8] {
    JSONWriter.report { json in
      json.add("databases", databases) { row, json in
        json.add("project", row.project)
        json.add("database", row.database)
        for (column, value) in zip(DatabaseStatistics.columns, row.values) { json.add(column.name, value) }
        if let bytes = row.documentBytes { json.add("documentBytes", bytes) }
        guard !row.indexes.isEmpty else { return }
        json.add("indexes", row.indexes) { index, json in
          json.add("index", index.text)
          json.add("state", index.state.rawValue)
          json.add("documents", index.documents)
        }
      }
      if !accounts.isEmpty {
        json.add("accounts", accounts) { row, json in
          json.add("project", row.project)
          json.add("accounts", row.accounts)
          json.add("usedBytes", row.usedBytes)
        }
      }
      if !quotas.isEmpty { json.add("quotas", quotas) { quota, json in quota.append(to: &json) } }
      guard let files else { return }
      json.key("files")
      json.beginObject()
      for (name, value) in zip(FilesStatistics.columns, files.values) { json.add(name, value) }
      json.endObject()
    }
  }
}

/// Tables of numbers whose first column has names.
enum NumberTable {
  /// Returns the lines with columns of equal width, the first one aligned left.
  static func text(_ lines: [[String]]) -> String {
    guard let first = lines.first else { return "" }
    let widths = first.indices.map { column in lines.map { TextWidth.of($0[column]) }.max() ?? 0 }
    var text = ""
    for line in lines {
      for (column, cell) in line.enumerated() {
        let padding = String(repeating: " ", count: widths[column] - TextWidth.of(cell))
        text += column == 0 ? cell + padding : "  " + padding + cell
      }
      text += "\n"
    }
    return text
  }
}
