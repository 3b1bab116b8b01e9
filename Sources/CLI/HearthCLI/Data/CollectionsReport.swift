import DatabaseService
import DocumentModel
import KeyValue
import LMDBEngine
import LogEngine
import WireFormat

/// The output of `hearth stats --collections`: the use of storage by each collection.
enum CollectionsReport {
  /// Runs the verb.
  /// - Throws: ``CommandFailure`` or `StorageError` if an option is invalid or a read fails.
  static func run(_ arguments: Arguments) throws -> Int32 {
    let choice = try choice(arguments)
    var databases: [DatabaseCollections]
    if arguments.has("server") {
      databases = try ServerClient(arguments).collections(choice, arguments)
    } else {
      let directory = try DirectoryReader(arguments.value("data") ?? "./hearth-data")
      var progress = Progress(isQuiet: arguments.has("quiet"))
      defer { progress.clear() }
      databases = []
      for id in directory.databases where isChosen(id, arguments) {
        let store = try directory.open(id)
        let total = max(1, try store.statistics().entries)
        databases.append(
          try DatabaseCollections(id, store, choice) { count in
            progress.show(count, "rows of \(id) read", fraction: min(1, Double(count) / Double(total)))
          })
      }
    }
    databases.removeAll { !isChosen($0.id, arguments) }
    Terminal.output.write(arguments.has("json") ? json(databases) : table(databases))
    return 0
  }

  private static func choice(_ arguments: Arguments) throws -> CollectionChoice {
    var choice = CollectionChoice()
    if let text = arguments.value("by") {
      guard let grouping = CollectionChoice.Grouping(rawValue: text) else {
        throw arguments.refusal(of: "by", text, "must be pattern, group or path")
      }
      choice.grouping = grouping
    }
    choice.depth = try arguments.integer("depth", in: 1...100)
    choice.root = try arguments.operands.first.map(DatabaseChoice.path) ?? .root
    return choice
  }

  private static func isChosen(_ id: DatabaseID, _ arguments: Arguments) -> Bool {
    (arguments.value("project") ?? id.project) == id.project
      && (arguments.value("database") ?? id.database) == id.database
  }

  private static func table(_ databases: [DatabaseCollections]) -> [UInt8] {
    var text = ""
    for database in databases {
      let rows = database.rows + (database.others == CollectionUse() ? [] : [("(others)", database.others)])
      let total = rows.reduce(0) { $0 + $1.use.bytes }
      if !text.isEmpty { text += "\n" }
      guard !rows.isEmpty else {
        text += "no collections in \(database.id.project)/\(database.id.database)\n"
        continue
      }
      var lines = [
        [
          "\(database.id.project)/\(database.id.database)", "documents", "bytes", "index entries", "bytes", "history",
          "total", "share",
        ]
      ]
      for (name, use) in rows {
        lines.append([
          TableCell(plain: name, columnsMax: 200).text, ProgressText.number(use.documents),
          ByteCount.text(use.documentBytes), ProgressText.number(use.indexEntries), ByteCount.text(use.indexBytes),
          ByteCount.text(use.historyBytes), ByteCount.text(use.bytes), share(use.bytes, of: total),
        ])
      }
      text += NumberTable.text(lines)
    }
    return Array((databases.isEmpty ? "no databases\n" : text).utf8)
  }

  /// Returns a share such as `12.5%`.
  static func share(_ bytes: Int, of total: Int) -> String {
    let tenths = total > 0 ? Int((Double(bytes) * 1000 / Double(total)).rounded()) : 0
    return "\(tenths / 10).\(tenths % 10)%"
  }

  private static func json(_ databases: [DatabaseCollections]) -> [UInt8] {
    JSONWriter.report { json in
      json.add("databases", databases) { database, json in
        json.add("project", database.id.project)
        json.add("database", database.id.database)
        json.add("collections", database.rows) { row, json in
          json.add("collection", row.name)
          for (column, value) in zip(CollectionUse.columns, row.use.values) { json.add(column.name, value) }
        }
        guard database.others != CollectionUse() else { return }
        json.key("others")
        json.beginObject()
        for (column, value) in zip(CollectionUse.columns, database.others.values) { json.add(column.name, value) }
        json.endObject()
      }
    }
  }
}
