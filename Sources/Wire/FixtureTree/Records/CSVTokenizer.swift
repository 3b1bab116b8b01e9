/// A reader for the rows of CSV (RFC 4180), through a fixed buffer.
///
/// A cell in quotes may contain the delimiter, line breaks, and quotes written twice. Rows end with CR LF, LF or CR.
/// Empty lines are skipped, and so is a byte order mark. A quote inside a cell without quotes is an ordinary byte.
/// Memory: the buffer and one row.
struct CSVTokenizer: ~Copyable {
  /// A cell of the current row.
  struct Cell {
    /// The range of its text in ``CSVTokenizer/text(of:)``.
    var start: Int
    var end: Int
    /// Whether it was written in quotes, so that an empty one is an empty string.
    var isQuoted: Bool
    var line: Int
    var column: Int
  }

  /// The cells of the current row.
  private(set) var cells: [Cell] = []
  /// The line where the current row starts, from 1.
  private(set) var line = 1

  private let source: ByteSource
  private let delimiter: UInt8
  private let buffer: UnsafeMutablePointer<UInt8>
  private let capacity: Int
  private var position = 0
  private var end = 0
  /// The number of bytes before those in the buffer.
  private var bytesBefore = 0
  private var currentLine = 1
  private var lineStart = 0
  private var isAtStart = true
  private var row = ScratchBytes()

  init(_ source: ByteSource, delimiter: UInt8, bufferBytes: Int = JSONTokenizer.bufferBytesDefault) {
    self.source = source
    self.delimiter = delimiter
    capacity = max(bufferBytes, 1)
    buffer = .allocate(capacity: capacity)
  }

  deinit { buffer.deallocate() }

  /// The current size of the buffers, in bytes.
  var bufferedBytes: Int { capacity + row.capacity + cells.capacity * MemoryLayout<Cell>.stride }

  /// The text of a cell. Valid until the next row.
  func text(of cell: Cell) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: row.bytes[cell.start..<cell.end])
  }

  /// Returns an error at a cell.
  func failure(_ message: String, at cell: Cell) -> FixtureTreeError {
    FixtureTreeError(file: source.name, line: cell.line, column: cell.column, message: message)
  }

  /// Returns an error at the current row.
  func failure(_ message: String) -> FixtureTreeError {
    FixtureTreeError(file: source.name, line: line, column: 1, message: message)
  }

  /// Reads the next row that is not empty. Returns `false` at the end.
  /// - Throws: ``FixtureTreeError`` if reading fails or the text is not CSV in UTF-8.
  mutating func nextRow() throws(FixtureTreeError) -> Bool {
    if isAtStart { try skipByteOrderMark() }
    while true {
      cells.removeAll(keepingCapacity: true)
      row.removeAll()
      line = currentLine
      guard try fill() else { return false }
      while try cell() {}
      // A row of one empty cell is an empty line.
      if cells.count == 1, cells[0].start == cells[0].end, !cells[0].isQuoted { continue }
      try checkUTF8()
      return true
    }
  }

  // MARK: Cells

  /// Reads one cell with the delimiter or line break after it. Returns whether the row continues.
  private mutating func cell() throws(FixtureTreeError) -> Bool {
    guard cells.count < CSVLimits.columnsMax else { throw failure("a row has more than \(CSVLimits.columnsMax) cells") }
    var cell = Cell(
      start: row.count, end: row.count, isQuoted: false, line: currentLine,
      column: bytesBefore + position - lineStart + 1)
    let isQuoted = try fill() && buffer[position] == UInt8(ascii: "\"")
    if isQuoted {
      position += 1
      try quoted(cell)
      cell.isQuoted = true
    } else {
      try plain()
    }
    cell.end = row.count
    cells.append(cell)
    guard try fill() else { return false }
    let byte = buffer[position]
    if byte == delimiter {
      position += 1
      return true
    }
    guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
      throw failure(
        "after the closing quote of a cell, the delimiter or a line break must follow; write a quote in a cell twice",
        at: cell)
    }
    try lineBreak()
    return false
  }

  private mutating func plain() throws(FixtureTreeError) {
    while try fill() {
      let start = position
      while position < end {
        let byte = buffer[position]
        if byte == delimiter || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") {
          return try keep(from: start)
        }
        position += 1
      }
      try keep(from: start)
    }
  }

  /// Reads the rest of a cell whose opening quote was read, and its closing quote.
  private mutating func quoted(_ cell: Cell) throws(FixtureTreeError) {
    while try fill() {
      let start = position
      while position < end, buffer[position] != UInt8(ascii: "\"") {
        if buffer[position] == UInt8(ascii: "\n") {
          currentLine += 1
          lineStart = bytesBefore + position + 1
        }
        position += 1
      }
      try keep(from: start)
      guard position < end else { continue }
      position += 1
      guard try fill(), buffer[position] == UInt8(ascii: "\"") else { return }
      row.append(UInt8(ascii: "\""))
      position += 1
    }
    throw failure("the cell's closing quote is missing; the file may be cut short", at: cell)
  }

  private mutating func lineBreak() throws(FixtureTreeError) {
    if buffer[position] == UInt8(ascii: "\r") {
      position += 1
      if try fill(), buffer[position] == UInt8(ascii: "\n") { position += 1 }
    } else {
      position += 1
    }
    currentLine += 1
    lineStart = bytesBefore + position
  }

  // MARK: Bytes

  private mutating func keep(from start: Int) throws(FixtureTreeError) {
    row.append(UnsafeBufferPointer(start: buffer + start, count: position - start))
    guard row.count <= CSVLimits.rowBytesMax else {
      throw failure("a row is longer than \(CSVLimits.rowBytesMax) bytes; a closing quote may be missing")
    }
  }

  /// Ensures that the buffer has a byte. Returns `false` at the end of the text.
  @inline(__always)
  private mutating func fill() throws(FixtureTreeError) -> Bool {
    position < end ? true : try refill()
  }

  private mutating func refill() throws(FixtureTreeError) -> Bool {
    bytesBefore += end
    position = 0
    end = 0
    end = try source.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: capacity))
    return end > 0
  }

  private mutating func skipByteOrderMark() throws(FixtureTreeError) {
    isAtStart = false
    let head = try source.peek(3)
    if head.starts(with: [0xFF, 0xFE]) || head.starts(with: [0xFE, 0xFF]) {
      throw failure("the file is UTF-16; save it as UTF-8")
    }
    guard head == [0xEF, 0xBB, 0xBF] else { return }
    var mark: (UInt8, UInt8, UInt8) = (0, 0, 0)
    _ = try withUnsafeMutableBytes(of: &mark) { (bytes) throws(FixtureTreeError) in try source.read(into: bytes) }
  }

  private func checkUTF8() throws(FixtureTreeError) {
    let bytes = row.bytes
    guard let start = bytes.baseAddress else { return }
    let text = UnsafeBufferPointer(start: start.assumingMemoryBound(to: UInt8.self), count: bytes.count)
    guard (try? UTF8Span(validating: text.span)) == nil else { return }
    throw failure("the row is not valid UTF-8; save the file as UTF-8")
  }
}
