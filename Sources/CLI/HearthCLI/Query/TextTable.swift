import DocumentModel

/// Formats documents as a table, a page of rows at a time. The first page determines the columns. A page with other
/// fields starts a new table, and wider cells widen their column from there on. If the columns do not fit the terminal,
/// the widest ones are narrowed; if that does not suffice, each document is shown on several lines, one for each field.
///
/// Each field of a small map has its own column (`address.city`). Other maps and arrays are shown in one cell.
struct TextTable {
  /// A row: the name of a document and its fields.
  struct Row {
    var name: String
    var fields: MapValue
  }

  /// The maximum number of rows of a page.
  static let rowsPerPage = 200
  /// The maximum width of a name, in columns. Longer names are cut.
  private static let nameColumnsMax = 400
  /// The maximum size of a page, in bytes of fields.
  static let bytesPerPage = 4 << 20

  private let database: DatabaseID
  /// The title of the first column; `nil` if the rows have no names.
  private let nameTitle: String?
  /// The selected fields, which determine the order of the columns; empty to sort the fields of the documents.
  private let chosen: [FieldPath]
  private let terminal: Terminal
  private let columnsMax: Int?

  private var waiting: [Row] = []
  private var waitingBytes = 0
  /// The columns of the current table: as wide as their cells (`laidOut`), and fitted to the terminal (`columns`).
  private var laidOut: [Column] = []
  private var columns: [Column] = []
  private var hasHead = false
  /// The number of rows that were added.
  private(set) var count = 0

  private struct Column: Equatable {
    var path: FieldPath?
    var title: String
    var width = 0
    var isRight = false
  }

  /// Creates a table that is at most `columnsMax` columns wide; `nil` for no limit.
  init(
    of database: DatabaseID, nameTitle: String?, chosen: [FieldPath] = [], on terminal: Terminal = .output,
    columnsMax: Int? = Terminal.output.columns
  ) {
    self.database = database
    self.nameTitle = nameTitle
    self.chosen = chosen
    self.terminal = terminal
    self.columnsMax = columnsMax
  }

  /// Adds a row with about `byteCount` bytes of fields. Returns the text of a page if it is full, otherwise nothing.
  mutating func add(_ row: Row, byteCount: Int) -> String {
    waiting.append(row)
    waitingBytes += byteCount
    count += 1
    return waiting.count < Self.rowsPerPage && waitingBytes < Self.bytesPerPage ? "" : flush()
  }

  /// Returns the text of the rows of the current page.
  mutating func flush() -> String {
    guard !waiting.isEmpty else { return "" }
    defer {
      waiting.removeAll()
      waitingBytes = 0
    }
    let found = layout()
    let isKnown = !laidOut.isEmpty && found.allSatisfy { column in laidOut.contains { $0.path == column.path } }
    let before = columns.map(\.path)
    if isKnown {
      for column in found {
        for index in laidOut.indices where laidOut[index].path == column.path {
          laidOut[index].width = max(laidOut[index].width, column.width)
        }
      }
    } else {
      laidOut = found
    }
    columns = laidOut
    guard fit() else { return records() }
    var text = ""
    if !isKnown || columns.map(\.path) != before {
      if hasHead { text += "\n" }
      hasHead = true
      text += line(columns.map { TextWidth.cut($0.title, to: $0.width) }) { terminal.bold($0) }
    }
    for row in waiting { text += line(columns.map { TextWidth.cut(cell(row, $0).text, to: $0.width) }) { $0 } }
    return text
  }

  /// Returns the rows of a page one below the other, each field on its own line, because a table would not fit. A field
  /// that a document does not have is omitted.
  private mutating func records() -> String {
    let titleWidth = laidOut.filter { $0.path != nil }.reduce(0) { max($0, TextWidth.of($1.title)) }
    let width = min(titleWidth, Self.recordTitleColumnsMax)
    let valueColumns = max(Self.narrowestColumn, (columnsMax ?? 80) - width - 4)
    var text = ""
    for row in waiting {
      if hasHead { text += "\n" }
      hasHead = true
      if nameTitle != nil {
        text +=
          terminal.bold(
            TextWidth.cut(
              TableCell(plain: row.name, columnsMax: Self.nameColumnsMax).text, to: columnsMax ?? Self.nameColumnsMax))
          + "\n"
      }
      for column in laidOut where column.path != nil {
        guard let path = column.path, row.fields[path] != nil else { continue }
        let title = TextWidth.cut(column.title, to: width)
        let padding = String(repeating: " ", count: width - TextWidth.of(title) + 2)
        text += "  \(terminal.faint(title))\(padding)\(TextWidth.cut(cell(row, column).text, to: valueColumns))\n"
      }
    }
    // The next page decides again between a table and records.
    laidOut = []
    columns = []
    return text
  }

  private func cell(_ row: Row, _ column: Column) -> TableCell {
    guard let path = column.path else { return TableCell(plain: row.name, columnsMax: Self.nameColumnsMax) }
    return row.fields[path].map { TableCell($0, in: database) } ?? .missing
  }

  private func line(_ cells: [String], _ style: (String) -> String) -> String {
    var line = ""
    for (index, (cell, column)) in zip(cells, columns).enumerated() {
      let isLast = index == columns.count - 1
      let padding = String(repeating: " ", count: max(0, column.width - TextWidth.of(cell)))
      line += column.isRight ? padding + style(cell) : style(cell) + (isLast ? "" : padding)
      if !isLast { line += "  " }
    }
    while line.last == " " { line.removeLast() }
    return line + "\n"
  }

  // MARK: Columns

  private static let flattenedFieldsMax = 8
  private static let flattenedDepthMax = 3

  private func layout() -> [Column] {
    var paths: [FieldPath] = []
    Self.gather(waiting.map(\.fields), [], &paths)
    if !chosen.isEmpty {
      func place(_ path: FieldPath) -> Int { chosen.firstIndex { $0.isPrefix(of: path) } ?? chosen.count }
      paths = paths.enumerated().sorted { (place($0.element), $0.offset) < (place($1.element), $1.offset) }.map(
        \.element)
    }
    // Rows without names are results of aggregations. Their aliases are not field paths and need no quotes.
    var columns = paths.map { path in
      Column(path: path, title: TableCell(plain: nameTitle == nil ? path.segments[0] : path.text).text)
    }
    if let nameTitle {
      let isTaken = columns.contains { $0.title == nameTitle }
      columns.insert(Column(path: nil, title: isTaken ? "__name__" : nameTitle), at: 0)
    }
    for index in columns.indices {
      let cells = waiting.map { cell($0, columns[index]) }
      columns[index].width = cells.reduce(TextWidth.of(columns[index].title)) { max($0, TextWidth.of($1.text)) }
      columns[index].isRight = columns[index].path != nil && cells.allSatisfy { $0.isNumber || $0.text.isEmpty }
    }
    return columns
  }

  /// Collects the fields of rows, sorted. The fields of small maps replace the map.
  private static func gather(_ maps: [MapValue], _ prefix: [String], _ paths: inout [FieldPath]) {
    var all = MapValue()
    for map in maps { for (key, _) in map.entries where all[key] == nil { all[key] = .null } }
    for (key, _) in all.entries {
      let segments = prefix + [key]
      var inner: [MapValue] = []
      var isFlat = segments.count < flattenedDepthMax
      for case let value? in maps.lazy.map({ $0[key] }) {
        if case .map(let map) = value, map.vectorComponents == nil, !map.entries.isEmpty {
          inner.append(map)
        } else if value != .null {
          isFlat = false
        }
      }
      let names = Set(inner.flatMap { $0.entries.map { Array($0.key.utf8) } })
      if isFlat, !inner.isEmpty, names.count <= flattenedFieldsMax {
        gather(inner, segments, &paths)
      } else {
        paths.append(FieldPath(segments: segments))
      }
    }
  }

  private static let narrowestColumn = 8
  /// The maximum width of the names of fields in records.
  private static let recordTitleColumnsMax = 30

  /// Narrows the widest columns until the table fits the terminal. Returns false if it cannot fit.
  private mutating func fit() -> Bool {
    guard let columnsMax else { return true }
    var total = columns.reduce(0) { $0 + $1.width + 2 } - 2
    while total > columnsMax {
      guard let widest = columns.indices.max(by: { columns[$0].width < columns[$1].width }),
        columns[widest].width > Self.narrowestColumn
      else { return false }
      columns[widest].width -= 1
      total -= 1
    }
    return true
  }
}
