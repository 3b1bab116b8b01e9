import DocumentModel

/// Prints documents as a table, in bounded memory: the columns are those of the first rows, rows that have other fields
/// start another table, and wider cells widen their column from then on.
///
/// Maps whose fields are few become columns of their own (`address.city`); other maps and lists stand in one cell.
struct TextTable {
  /// A row: how the document is called, and its fields.
  struct Row {
    var name: String
    var fields: MapValue
  }

  /// How much a table shows before it looks at the next rows.
  static let rowsPerPage = 200
  /// The longest name that is shown whole, in columns.
  private static let nameColumnsMax = 400
  /// The most that waiting rows may hold, in bytes of fields.
  static let bytesPerPage = 4 << 20

  private let database: DatabaseID
  /// The head of the first column; `nil` for tables whose rows have no name.
  private let nameTitle: String?
  /// The fields that were asked for, which set the order of the columns; empty for those of the documents.
  private let chosen: [FieldPath]
  private let terminal: Terminal
  private let columnsMax: Int?

  private var waiting: [Row] = []
  private var waitingBytes = 0
  /// The columns of the table under way, as wide as their cells, and those that fit the terminal.
  private var laidOut: [Column] = []
  private var columns: [Column] = []
  private var hasHead = false
  /// How many rows were added.
  private(set) var count = 0

  private struct Column: Equatable {
    var path: FieldPath?
    var title: String
    var width = 0
    var isRight = false
  }

  /// A table on a terminal that is `columnsMax` wide; `nil` for no bound.
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

  /// Adds a row of about so many bytes; returns text that is ready to be written.
  mutating func add(_ row: Row, byteCount: Int) -> String {
    waiting.append(row)
    waitingBytes += byteCount
    count += 1
    return waiting.count < Self.rowsPerPage && waitingBytes < Self.bytesPerPage ? "" : flush()
  }

  /// The text of the rows that wait.
  mutating func flush() -> String {
    guard !waiting.isEmpty else { return "" }
    defer {
      waiting.removeAll()
      waitingBytes = 0
    }
    let found = layout()
    let isKnown = hasHead && found.allSatisfy { column in laidOut.contains { $0.path == column.path } }
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
    let left = fit()
    var text = ""
    if !isKnown || columns.map(\.path) != before {
      if hasHead { text += "\n" }
      hasHead = true
      text += line(columns.map { TextWidth.cut($0.title, to: $0.width) }) { terminal.bold($0) }
      if !left.isEmpty {
        text += terminal.faint("(no room for \(left.joined(separator: ", ")); see --select and --json)\n")
      }
    }
    for row in waiting { text += line(columns.map { TextWidth.cut(cell(row, $0).text, to: $0.width) }) { $0 } }
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
    // Rows without names have numbers by alias, which are no fields.
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

  /// The fields of rows, sorted, with the fields of maps in place of maps where they are few.
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

  /// Makes the columns fit the terminal: the widest give way first, then the last ones. Returns the titles of those
  /// that were left out.
  private mutating func fit() -> [String] {
    guard let columnsMax else { return [] }
    func total() -> Int { columns.reduce(0) { $0 + $1.width + 2 } - 2 }
    while total() > columnsMax {
      guard let widest = columns.indices.max(by: { columns[$0].width < columns[$1].width }),
        columns[widest].width > Self.narrowestColumn
      else { break }
      columns[widest].width -= 1
    }
    var left: [String] = []
    while total() > columnsMax, columns.count > 1 {
      left.insert(columns.removeLast().title, at: 0)
    }
    return left
  }
}
