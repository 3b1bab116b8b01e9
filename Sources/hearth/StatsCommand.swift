import DocumentModel
import DocumentStore
import KeyValueStore
import LMDBStore
import WireFormat

extension Command {
  /// Says how much the databases of a data directory hold.
  static let stats = Command(
    name: "stats", summary: "Says how much the databases of a data directory hold.",
    options: [
      .value("data", "DIR", "the data directory (default: ./hearth-data)"),
      .flag("json", "print JSON"),
    ],
    details: "Counts by reading every key, also while a server has the directory open.",
    examples: [("hearth stats --data ./hearth-data", ""), ("hearth stats --json", "for programs")],
    run: { arguments in
      let directory = try DirectoryReader(arguments.value("data") ?? "./hearth-data")
      let rows = try directory.databases.map { try DatabaseStatistics($0, directory.open($0)) }
      Terminal.output.write(arguments.has("json") ? DatabaseStatistics.json(rows) : DatabaseStatistics.table(rows))
      return 0
    })
}

/// What one database holds, and in how many bytes.
struct DatabaseStatistics {
  let id: DatabaseID
  let contents: DatabaseContents
  let store: KeyValueStatistics

  init(_ id: DatabaseID, _ store: LMDBStore) throws {
    self.id = id
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    contents = try DatabaseContents(snapshot)
    self.store = try store.statistics()
  }

  private var columns: [(name: StaticString, title: String, value: Int)] {
    [
      ("documents", "documents", contents.documents), ("collections", "collections", contents.collections),
      ("indexEntries", "index entries", contents.indexEntries), ("history", "before-images", contents.history),
      ("changes", "changes", contents.changes), ("usedBytes", "used bytes", store.usedBytes),
      ("fileBytes", "file bytes", store.fileBytes),
    ]
  }

  static func table(_ rows: [DatabaseStatistics]) -> [UInt8] {
    guard let first = rows.first else { return Array("no databases\n".utf8) }
    var lines = [["database"] + first.columns.map(\.title)]
    lines += rows.map { row in
      ["\(row.id.project)/\(row.id.database)"] + row.columns.map { String($0.value) }
    }
    let widths = lines[0].indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    var text = ""
    for line in lines {
      for (column, cell) in line.enumerated() {
        let padding = String(repeating: " ", count: widths[column] - cell.count)
        text += column == 0 ? cell + padding : "  " + padding + cell
      }
      text += "\n"
    }
    return Array(text.utf8)
  }

  static func json(_ rows: [DatabaseStatistics]) -> [UInt8] {
    var json = JSONWriter(.pretty)
    json.beginObject()
    json.key("databases")
    json.beginArray()
    for row in rows {
      json.beginObject()
      json.key("project")
      json.string(row.id.project)
      json.key("database")
      json.string(row.id.database)
      for column in row.columns {
        json.key(column.name)
        json.number(column.value)
      }
      json.endObject()
    }
    json.endArray()
    json.endObject()
    return json.bytes + [UInt8(ascii: "\n")]
  }
}
