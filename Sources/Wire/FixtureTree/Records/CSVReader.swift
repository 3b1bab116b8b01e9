package import DocumentModel
import WireFormat

/// A reader for CSV with a header row: each row becomes a document, and each column a field.
///
///     id,name,age:int,since:timestamp
///     ann,Ann,37,2025-03-27T14:30:00Z
///
/// - A header `name:type` names the type of a column; the types are those of ``CSVType``. Other columns are strings, or
///   have inferred types. If the text after the last colon is not a type, it belongs to the name.
/// - An empty cell is a missing field. A cell `""` is an empty string in a column of strings, and a missing field in
///   others.
/// - The column `__path__` has the paths of documents. Otherwise ``ReadOptions/collection`` names the collection, and
///   ``RecordID`` has the rules for the column with the IDs.
/// - Each row must have as many cells as the header.
/// - A comma separates cells, or a tab in files that end with `.tsv`. If the header has no comma, but semicolons, tabs
///   or vertical bars, these separate cells. If the header has several of these characters, the delimiter is the one
///   that occurs in the first row as often as in the header.
///
/// Memory: the read buffer, one row, one document, and hashes of the IDs (``KeyTable``).
package struct CSVReader: ~Copyable {
  private var rows: CSVTokenizer
  private var builder: DocumentBuilder
  private var columns: [Column] = []
  private let types: [CSVType]?
  private let name: String
  private var newID = RandomDocumentID()
  private var isStarted = false
  private var failed: FixtureTreeError?

  /// A column of the file.
  private struct Column {
    var name: [UInt8]
    var type: CSVType?
    var isID = false
    var isPath = false
    var isField = true
  }

  /// Creates a reader at the start of a file. References without a database refer to `database`. `types` are the types
  /// of the columns that ``inferTypes(_:options:)`` returned, or `nil`.
  /// - Throws: ``FixtureTreeError`` if the source cannot be read, or its header leaves the delimiter open.
  package init(
    _ source: ByteSource, database: DatabaseID, options: ReadOptions, types: [CSVType]? = nil,
    bufferBytes: Int = JSONTokenizer.bufferBytesDefault
  ) throws(FixtureTreeError) {
    let (delimiter, isFound, hasComma) = try Self.delimiter(of: source, options)
    name = source.name
    self.types = types
    rows = CSVTokenizer(source, delimiter: delimiter, bufferBytes: bufferBytes)
    builder = DocumentBuilder(
      ByteSource([], name: source.name), database: database, .oneValue, bufferBytes: 1, options: options)
    if isFound { (builder.tally.foundDelimiter, builder.tally.headerHasComma) = (delimiter, hasComma) }
  }

  /// The characters that a header can show to be the delimiter. A comma is the usual one.
  private static let delimiters: [(byte: UInt8, name: String)] = [
    (UInt8(ascii: ","), "commas"), (UInt8(ascii: ";"), "semicolons"), (UInt8(ascii: "\t"), "tabs"),
    (UInt8(ascii: "|"), "vertical bars"),
  ]

  /// The current size of all buffers, in bytes.
  package var bufferedBytes: Int { builder.bufferedBytes + rows.bufferedBytes }
  /// The facts about the part of the file that was read.
  package var tally: ReadTally { builder.tally }

  /// Returns the delimiter, whether the header showed it, and whether the header has commas nevertheless.
  private static func delimiter(
    of source: ByteSource, _ options: ReadOptions
  ) throws(FixtureTreeError) -> (UInt8, isFound: Bool, hasComma: Bool) {
    if let delimiter = options.delimiter { return (delimiter, false, false) }
    let comma = delimiters[0].byte
    if FixtureReader.isName(source.name, endingWith: ".tsv") { return (UInt8(ascii: "\t"), false, false) }
    let lines = counts(inFirstLines: try source.peek(FixtureReader.peekedBytesMax))
    let found = delimiters.indices.filter { lines.header[$0] > 0 }
    guard found.count > 1 else {
      return found.first.map { (delimiters[$0].byte, $0 > 0, false) } ?? (comma, false, false)
    }
    // Every row has as many delimiters as the header.
    let fitting = found.filter { lines.header[$0] == lines.row?[$0] }
    if fitting.count == 1 { return (delimiters[fitting[0]].byte, fitting[0] > 0, found[0] == 0) }
    if found[0] == 0, fitting.isEmpty { return (comma, false, false) }
    let names = found.map { delimiters[$0].name }
    throw FixtureTreeError(
      file: source.name, line: 1, column: 1,
      message: (found[0] == 0 ? "the header has " : "the header has no comma, but ")
        + "\(names.dropLast().joined(separator: ", ")) and \(names[names.count - 1]); name the character between cells "
        + "with --delimiter")
  }

  /// Returns how often each of ``delimiters`` is outside of quotes in the first line that is not empty, and in the next
  /// one. The latter is `nil` if the text ends before.
  private static func counts(inFirstLines head: [UInt8]) -> (header: [Int], row: [Int]?) {
    var lines: [[Int]] = []
    var line = delimiters.map { _ in 0 }
    var isEmpty = true
    var isQuoted = false
    for byte in head {
      let isBreak = !isQuoted && (byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r"))
      if isBreak {
        if !isEmpty { lines.append(line) }
        if lines.count == 2 { break }
        (line, isEmpty) = (delimiters.map { _ in 0 }, true)
        continue
      }
      isEmpty = false
      if byte == UInt8(ascii: "\"") { isQuoted.toggle() }
      if !isQuoted, let index = delimiters.firstIndex(where: { $0.byte == byte }) { line[index] += 1 }
    }
    if !isEmpty, lines.count < 2 { lines.append(line) }
    return (lines.first ?? line, lines.count == 2 ? lines[1] : nil)
  }

  /// Returns the next document, or `nil` at the end.
  /// - Throws: ``FixtureTreeError`` if the file violates the format or the rules for writes. Later calls throw it
  ///   again.
  package mutating func next() throws(FixtureTreeError) -> FixtureDocument? {
    if let failed { throw failed }
    do throws(FixtureTreeError) {
      if !isStarted { try start() }
      return try rows.nextRow() ? try document() : nil
    } catch {
      failed = error
      throw error
    }
  }

  // MARK: Header

  private mutating func start() throws(FixtureTreeError) {
    isStarted = true
    builder.keys.open()
    guard try rows.nextRow() else { throw rows.failure("the file is empty; its first row must name the columns") }
    columns = try Self.columns(rows)
    if let types, types.count == columns.count {
      for index in columns.indices where columns[index].type == nil { columns[index].type = types[index] }
    }
    try chooseID()
  }

  private static func columns(_ rows: borrowing CSVTokenizer) throws(FixtureTreeError) -> [Column] {
    var columns: [Column] = []
    for cell in rows.cells {
      var name = Substring(String(decoding: rows.text(of: cell), as: UTF8.self))
      var type: CSVType?
      if let colon = name.utf8.lastIndex(of: UInt8(ascii: ":")),
        let known = CSVType(name: name[name.utf8.index(after: colon)...])
      {
        type = known
        name = name[..<colon]
      }
      guard !name.isEmpty else { throw rows.failure("column \(columns.count + 1) has no name", at: cell) }
      let bytes = Array(name.utf8)
      guard !columns.contains(where: { $0.name == bytes }) else {
        throw rows.failure("two columns have the name \"\(name)\"; rename one", at: cell)
      }
      columns.append(Column(name: bytes, type: type))
    }
    return columns
  }

  /// Finds the column with the IDs or paths.
  private mutating func chooseID() throws(FixtureTreeError) {
    let options = builder.options
    if let path = columns.firstIndex(where: { $0.name.elementsEqual("__path__".utf8) }) {
      guard options.collection == nil else {
        throw rows.failure("the column \"__path__\" names the documents; leave out --collection")
      }
      columns[path].isPath = true
      columns[path].isField = false
      return
    }
    guard options.collection != nil else {
      throw rows.failure(
        "the rows have no paths; name the collection that they are for: --collection users")
    }
    let automatic = RecordID.names.map { Array("\($0)".utf8) }
    let id: Int?
    if options.generatesIDs {
      id = nil
    } else if let name = options.idMember {
      id = columns.firstIndex { $0.name.elementsEqual(name.utf8) }
      guard id != nil else { throw rows.failure("the file has no column \"\(name)\"; \(RecordID.remedy)") }
    } else {
      id = automatic.lazy.compactMap { [columns] name in columns.firstIndex { $0.name == name } }.first
    }
    if let id {
      columns[id].isID = true
      if options.dropsIDMember { columns[id].isField = false }
    }
    for index in columns.indices where columns[index].name == automatic[RecordID.reserved] {
      columns[index].isField = false
    }
  }

  // MARK: Rows

  private mutating func document() throws(FixtureTreeError) -> FixtureDocument {
    let line = rows.line
    guard rows.cells.count == columns.count else {
      throw rows.failure(
        "the row has \(rows.cells.count) \(rows.cells.count == 1 ? "cell" : "cells"), but the header names "
          + "\(columns.count); a cell with the delimiter or a line break needs quotes")
    }
    builder.setPath(builder.options.collection?.bytes ?? [])
    try enter(line: line)
    guard
      let key = DocumentKey(
        try located(rows.cells[0], { (builder) throws(FixtureTreeError) in try builder.checkedPath() }))
    else { throw rows.failure("\"\(String(decoding: builder.path, as: UTF8.self))\" is not the path of a document") }
    builder.openDocument()
    builder.keys.open()
    for index in columns.indices where columns[index].isField {
      let cell = rows.cells[index]
      let column = columns[index]
      let text = rows.text(of: cell)
      let type = column.type ?? .string
      if text.isEmpty, !cell.isQuoted || type != .string { continue }
      try located(cell) { (builder) throws(FixtureTreeError) in
        try column.name.withUnsafeBytesTyped { (name) throws(FixtureTreeError) in try builder.openField(name) }
        try builder.cell(text, type)
        builder.closeField()
      }
    }
    builder.keys.close()
    return try located(rows.cells[0]) { (builder) throws(FixtureTreeError) in try builder.closeDocument(key, line: line)
    }
  }

  /// Completes the path of the current row.
  private mutating func enter(line: Int) throws(FixtureTreeError) {
    guard let index = columns.firstIndex(where: { $0.isID || $0.isPath }) else {
      builder.tally.generatedIDs += 1
      let id = newID.next()
      return try located(rows.cells[0]) { (builder) throws(FixtureTreeError) in try builder.enterRecord(id, line: line)
      }
    }
    let text = rows.text(of: rows.cells[index])
    if columns[index].isPath { return builder.setPath(text) }
    let id = Array(text)
    try located(rows.cells[index]) { (builder) throws(FixtureTreeError) in try builder.enterRecord(id, line: line) }
  }

  /// Runs `body`, and gives its error the place of a cell.
  private mutating func located<R>(
    _ cell: CSVTokenizer.Cell, _ body: (inout DocumentBuilder) throws(FixtureTreeError) -> R
  ) throws(FixtureTreeError) -> R {
    do throws(FixtureTreeError) {
      return try body(&builder)
    } catch {
      var error = error
      (error.file, error.line, error.column) = (name, cell.line, cell.column)
      throw error
    }
  }

  // MARK: Types

  /// Reads a whole file and returns the narrowest type of each column that all its cells have: integer, number, boolean,
  /// timestamp, or else string. The types of headers are not considered.
  /// - Throws: ``FixtureTreeError`` if the file is not CSV.
  package static func inferTypes(_ source: ByteSource, options: ReadOptions) throws(FixtureTreeError) -> [CSVType] {
    var rows = CSVTokenizer(source, delimiter: try delimiter(of: source, options).0)
    guard try rows.nextRow() else { return [] }
    // For each column, whether every cell so far is a value of each type.
    var fits = [[Bool]](repeating: CSVType.inferred.map { _ in true }, count: rows.cells.count)
    var isSeen = [Bool](repeating: false, count: rows.cells.count)
    while try rows.nextRow() {
      for index in 0..<min(fits.count, rows.cells.count) {
        let text = rows.text(of: rows.cells[index])
        if text.isEmpty { continue }
        isSeen[index] = true
        for (rank, type) in CSVType.inferred.enumerated() where fits[index][rank] {
          fits[index][rank] = type.accepts(text)
        }
      }
    }
    return fits.indices.map { index in
      isSeen[index] ? CSVType.inferred[fits[index].firstIndex(of: true) ?? CSVType.inferred.count - 1] : .string
    }
  }
}

extension DocumentBuilder {
  /// Appends the value of a cell.
  fileprivate mutating func cell(_ text: UnsafeRawBufferPointer, _ type: CSVType) throws(FixtureTreeError) {
    switch type {
    case .string: try encode { (encoder) throws(WireError) in try encoder.string(text) }
    case .integer:
      guard JSONNumber.check(text) == true, let number = JSONNumber.integer(text) else {
        throw misfit(text, "a whole number of 64 bits", "int")
      }
      encoder.integer(number)
    case .double: encoder.double(try cellDouble(text))
    case .number:
      if JSONNumber.check(text) == true, let number = JSONNumber.integer(text) {
        encoder.integer(number)
      } else {
        encoder.double(try cellDouble(text))
      }
    case .boolean:
      guard let flag = CSVType.boolean(text) else { throw misfit(text, "true or false", "bool") }
      encoder.boolean(flag)
    case .timestamp: try cellTimestamp(text)
    case .bytes: try bytes(text)
    case .reference: try reference(text)
    case .geoPoint:
      let parts = text.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false).map { part in
        JSONNumber.plain(String(decoding: part, as: UTF8.self))
      }
      guard parts.count == 2, let latitude = parts[0], let longitude = parts[1] else {
        throw misfit(text, "a latitude and a longitude such as 45.46,9.19", "geo")
      }
      try encode { (encoder) throws(WireError) in
        try encoder.geoPoint(GeoPoint(latitude: latitude, longitude: longitude))
      }
    case .json:
      tokens = JSONTokenizer(ByteSource([UInt8](text)), .oneValue, bufferBytes: text.count)
      try value(try next(), .fixture)
      guard try next() == .end else { throw failure("expected the end of the cell") }
    }
  }

  private func cellDouble(_ text: UnsafeRawBufferPointer) throws(FixtureTreeError) -> Double {
    if Self.isEqual(text, "NaN") { return .nan }
    if Self.isEqual(text, "Infinity") { return .infinity }
    if Self.isEqual(text, "-Infinity") { return -.infinity }
    guard JSONNumber.check(text) != nil, let number = JSONNumber.double(text) else {
      throw misfit(text, "a number", "double")
    }
    return number
  }

  private mutating func cellTimestamp(_ text: UnsafeRawBufferPointer) throws(FixtureTreeError) {
    guard let moment = CSVType.timestamp(text) else {
      throw misfit(text, "a time such as 2025-03-27T14:30:00Z or 2025-03-27", "timestamp")
    }
    encoder.timestamp(moment)
  }

  private func misfit(_ text: UnsafeRawBufferPointer, _ wanted: String, _ type: String) -> FixtureTreeError {
    failure(
      "\(FixtureTreeError.quote(text)) is not \(wanted), as the column's type \"\(type)\" demands; correct the cell, or "
        + "name another type in the header (\(CSVType.names))")
  }
}

extension JSONNumber {
  /// Returns the value of a number with optional blanks around it, or `nil` if the text is not a JSON number.
  fileprivate static func plain(_ text: String) -> Double? {
    let bytes = Array(text.utf8.drop { $0 == UInt8(ascii: " ") }.reversed().drop { $0 == UInt8(ascii: " ") }.reversed())
    return bytes.withUnsafeBytes { check($0) == nil ? nil : double($0) }
  }
}
