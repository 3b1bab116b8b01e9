import WireFormat

extension Command {
  /// Lists the clients that listen to a running server.
  static let listeners = Command(
    name: "listeners", summary: "Lists the clients that listen to a server, their targets and their lag.",
    options: [
      DatabaseChoice.dataOption, DatabaseChoice.serverOption,
      .value("project", "ID", "show only the databases of this project"),
      .value("database", "ID", "show only the databases with this ID"),
    ] + DatabaseChoice.credentialOptions + [DatabaseChoice.authoritiesOption, .flag("json", "print JSON")],
    details: """
      The list has one line for each stream, ordered by lag. A slow client lags, but takes little memory of the server:
      at most 1 MiB is queued for it. It gets later changes from the change log when it continues to read.
      """,
    examples: [
      ("hearth listeners", "the server at http://127.0.0.1:8080"), ("hearth listeners --json", "for programs"),
    ],
    run: { arguments in
      var rows = try ServerClient(ofServerOrDirectory: arguments).listeners()
      if let project = arguments.value("project") { rows.removeAll { $0.project != project } }
      if let database = arguments.value("database") { rows.removeAll { $0.database != database } }
      rows.sort { ($0.lagMilliseconds, $0.queuedBytes) > ($1.lagMilliseconds, $1.queuedBytes) }
      Terminal.output.write(arguments.has("json") ? ListenerRow.json(rows) : ListenerRow.table(rows))
      return 0
    })
}

/// One listener, as the server reports it.
struct ListenerRow {
  var project: String
  var database: String
  var name: String
  var lagMilliseconds: Int
  var queuedBytes: Int
  var targets: [String]

  init(_ object: JSONValue) {
    project = object.member("project")?.text ?? ""
    database = object.member("database")?.text ?? ""
    name = object.member("name")?.text ?? ""
    lagMilliseconds = object.member("lagMilliseconds")?.integer ?? 0
    queuedBytes = object.member("queuedBytes")?.integer ?? 0
    targets = object.member("targets")?.array.compactMap(\.text) ?? []
  }

  static func table(_ rows: [ListenerRow]) -> [UInt8] {
    guard !rows.isEmpty else { return Array("no listeners\n".utf8) }
    var lines = [["database", "who", "lag ms", "queued", "listens to"]]
    for row in rows {
      let targets = TableCell(plain: row.targets.joined(separator: ", "), columnsMax: 200).text
      lines.append([
        "\(row.project)/\(row.database)", TableCell(plain: row.name).text, "\(row.lagMilliseconds)",
        "\(row.queuedBytes)",
        targets,
      ])
    }
    let widths = lines[0].indices.map { column in lines.map { TextWidth.of($0[column]) }.max() ?? 0 }
    let numbers = 2...3
    var text = ""
    for line in lines {
      let cells = line.enumerated().map { column, cell in
        let padding = String(repeating: " ", count: widths[column] - TextWidth.of(cell))
        return numbers.contains(column) ? padding + cell : column == line.count - 1 ? cell : cell + padding
      }
      text += cells.joined(separator: "  ") + "\n"
    }
    return Array(text.utf8)
  }

  static func json(_ rows: [ListenerRow]) -> [UInt8] {
    JSONWriter.report { json in
      json.add("listeners", rows) { row, json in
        json.add("project", row.project)
        json.add("database", row.database)
        json.add("name", row.name)
        json.add("lagMilliseconds", row.lagMilliseconds)
        json.add("queuedBytes", row.queuedBytes)
        json.key("targets")
        json.beginArray()
        for target in row.targets { json.string(target) }
        json.endArray()
      }
    }
  }
}
