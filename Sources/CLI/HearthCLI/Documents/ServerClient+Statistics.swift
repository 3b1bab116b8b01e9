import DatabaseService
import DocumentModel
import DocumentStore
import Files
import WireFormat

extension ServerClient {
  /// Returns the sizes of the server's open databases, and of its files if it has opened them.
  /// - Throws: ``CommandFailure`` if the request fails.
  func statistics() throws -> (databases: [StatsRow], files: FilesStatistics?) {
    guard let body = try call("GET", "/hearth/v1/stats") else { return ([], nil) }
    return try JSONText.read(body) { root in
      let files = root.member("files").map { files in
        FilesStatistics(FilesStatistics.columns.map { files.member($0)?.integer ?? 0 })
      }
      return ((root.member("databases")?.array ?? []).map(Self.statsRow), files)
    }
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
