import Accounts
import Basics
import DatabaseService
import DocumentModel
import Files
import WireFormat

extension ServerClient {
  /// Returns the sizes of the server's open databases and accounts, and of its files if it has opened them.
  /// - Throws: ``CommandFailure`` if the request fails.
  func statistics() throws -> StatsReport {
    guard let body = try call("GET", "/hearth/v1/stats") else { return StatsReport() }
    return try JSONText.read(body) { root in
      var report = StatsReport()
      report.databases = (root.member("databases")?.array ?? []).map(Self.statsRow)
      report.accounts = (root.member("accounts")?.array ?? []).map { row in
        AccountsStatistics(
          project: row.member("project")?.text ?? "", accounts: row.member("accounts")?.integer ?? 0,
          usedBytes: row.member("usedBytes")?.integer ?? 0)
      }
      report.files = root.member("files").map { files in
        FilesStatistics(FilesStatistics.columns.map { files.member($0)?.integer ?? 0 })
      }
      report.quotas = (root.member("quotas")?.array ?? []).compactMap { row in
        guard let kind = row.member("quota")?.text.flatMap({ Quota.Kind(rawValue: $0) }),
          let limit = row.member("limit")?.integer
        else { return nil }
        return QuotaUse.Row(kind: kind, limit: limit, used: row.member("used")?.integer)
      }
      return report
    }
  }

  /// Returns the use of storage by the collections of the server's open databases.
  /// - Throws: ``CommandFailure`` if the request fails.
  func collections(_ choice: CollectionChoice, _ arguments: Arguments) throws -> [DatabaseCollections] {
    var target = "/hearth/v1/stats?collections=\(choice.grouping.rawValue)"
    if !choice.root.isRoot { target += "&below=\(Self.encode(choice.root.bytes))" }
    if let depth = choice.depth { target += "&depth=\(depth)" }
    if let project = arguments.value("project"), let database = arguments.value("database") {
      target += "&project=\(Self.encode(project.utf8))&database=\(Self.encode(database.utf8))"
    }
    let body = try call("GET", target) ?? []
    return try JSONText.read(body) { root in
      try (root.member("databases")?.array ?? []).compactMap { database -> DatabaseCollections? in
        guard let project = database.member("project")?.text, let name = database.member("database")?.text,
          let id = DatabaseID(project: project, database: name)
        else { return nil }
        guard let rows = database.member("collections")?.array else {
          throw CommandFailure.failed(
            "\(address) is older than this program and does not count collections; use --data on its machine")
        }
        return DatabaseCollections(
          id: id, rows: rows.map { ($0.member("collection")?.text ?? "", Self.use($0)) },
          others: database.member("others").map(Self.use) ?? CollectionUse())
      }
    }
  }

  private static func use(_ row: JSONValue) -> CollectionUse {
    CollectionUse(CollectionUse.columns.map { row.member($0.name)?.integer ?? 0 })
  }

  /// Returns the listeners of the server's open databases.
  /// - Throws: ``CommandFailure`` if the request fails.
  func listeners() throws -> [ListenerRow] {
    guard let body = try call("GET", "/hearth/v1/listeners") else { return [] }
    return try JSONText.read(body) { root in (root.member("listeners")?.array ?? []).map { ListenerRow($0) } }
  }

  private static func statsRow(_ row: JSONValue) -> StatsRow {
    let indexes = (row.member("indexes")?.array ?? []).map { index in
      IndexReport(
        text: index.member("index")?.text ?? "",
        state: index.member("state")?.text.flatMap { IndexReport.State(rawValue: $0) } ?? .ready,
        documents: index.member("documents")?.integer ?? 0)
    }
    return StatsRow(
      project: row.member("project")?.text ?? "", database: row.member("database")?.text ?? "",
      values: DatabaseStatistics.columns.map { row.member($0.name)?.integer ?? 0 }, indexes: indexes)
  }
}
