import Basics
import DocumentModel
import WireFormat

/// A writer for the documents of one collection as CSV. ``CSVReader`` reads the file back to the same documents.
///
/// The first column, `__id__`, has the document IDs. The others are the fields of all documents, in the order of their
/// names, so the header is known only after the last document. The documents therefore wait in a temporary file. A
/// column whose values have one type names it; a column of several types, maps, arrays or nulls has the type `json`.
/// Maps are not divided into columns. A missing field is an empty cell, and an empty string is `""`.
///
/// Memory: the names of the columns, at most ``CSVLimits/columnsMax``, and one document.
struct CSVWriter {
  /// The type of a column so far.
  private struct Column {
    var name: [UInt8]
    var type: CSVType
  }

  private let collection: ResourcePath
  private let values: FixtureValueWriter
  private let documentsRoot: [UInt8]
  private var columns: [Column] = []
  private var indexes: [[UInt8]: Int] = [:]
  private let file: ScratchFile
  /// The documents that are not in the file yet.
  private var pending: [UInt8] = []
  private var fileBytes = 0

  private static let pendingBytesMax = 1 << 20

  /// Starts a file.
  /// - Throws: ``FixtureTreeError`` if the path is not that of a collection, or if the temporary file
  ///   cannot be created.
  init(database: DatabaseID, collection: ResourcePath) throws(FixtureTreeError) {
    guard collection.isCollection else {
      throw FixtureTreeError(
        file: "csv", message: "a CSV file has the documents of one collection; give its path, such as users")
    }
    self.collection = collection
    values = FixtureValueWriter(documentsRoot: database.documentsRoot)
    documentsRoot = Array("\(database.documentsRoot)/".utf8)
    do throws(ScratchError) {
      file = try ScratchFile(in: nil)
    } catch {
      throw Self.failure(error)
    }
  }

  /// Adds a document. Returns `false` if it is not directly in the collection.
  /// - Throws: ``WireError`` if the fields are damaged, ``FixtureTreeError`` if there are too many fields or the disk is
  ///   full.
  mutating func add(_ key: DocumentKey, _ fields: EncodedFields) throws -> Bool {
    guard key.collection == collection else { return false }
    try note(fields)
    let id = Array(key.id)
    for count in [id.count, fields.bytes.count] {
      withUnsafeBytes(of: UInt32(count).littleEndian) { pending.append(contentsOf: $0) }
    }
    pending += id
    pending += fields.bytes
    if pending.count >= Self.pendingBytesMax { try flush() }
    return true
  }

  /// Notes the columns and types of a document's fields.
  private mutating func note(_ fields: EncodedFields) throws {
    try fields.withMap { (map) throws in
      var entries = map.makeIterator()
      while let entry = try entries.next() {
        let name = [UInt8](entry.key)
        let type = Self.type(of: try entry.value.content)
        if let index = indexes[name] {
          if columns[index].type != type { columns[index].type = .json }
          continue
        }
        // One column is that of the IDs.
        guard columns.count < CSVLimits.columnsMax - 1 else {
          throw FixtureTreeError(
            file: "csv", path: collection.text,
            message: "the documents have more than \(CSVLimits.columnsMax - 1) different fields; use --format ndjson")
        }
        indexes[name] = columns.count
        columns.append(Column(name: name, type: type))
      }
    }
  }

  private static func type(of content: EncodedValue.Content) -> CSVType {
    switch content {
    case .boolean: .boolean
    case .integer: .integer
    case .double: .double
    case .timestamp: .timestamp
    case .string: .string
    case .bytes(let bytes): bytes.isEmpty ? .json : .bytes
    case .reference: .reference
    case .geoPoint: .geoPoint
    case .null, .array, .map: .json
    }
  }

  private mutating func flush() throws(FixtureTreeError) {
    do throws(ScratchError) {
      try pending.withUnsafeBytesTyped { (bytes) throws(ScratchError) in try file.write(bytes, at: fileBytes) }
    } catch {
      throw Self.failure(error)
    }
    fileBytes += pending.count
    pending.removeAll(keepingCapacity: true)
  }

  private static func failure(_ error: ScratchError) -> FixtureTreeError {
    guard case .diskFull(let path) = error else {
      return FixtureTreeError(file: "csv", message: "the temporary file of the export: \(error)")
    }
    return FixtureTreeError(
      file: "csv",
      message: "the disk of \(path), which keeps the documents until the columns are known, is full; set TMPDIR to a "
        + "directory with more space")
  }

  // MARK: Text

  /// Writes the header and all rows in pieces of about `pieceBytes`.
  /// - Throws: ``WireError`` if fields are damaged, ``FixtureTreeError`` if the temporary file cannot be read, and any
  ///   error of `write`.
  mutating func finish(pieceBytes: Int, _ write: ([UInt8]) throws -> Void) throws {
    try flush()
    let order = columns.indices.sorted { Ordering.bytes(columns[$0].name, columns[$1].name) == .less }
    var out = header(order)
    var cells = [EncodedValue?](repeating: nil, count: columns.count)
    var offset = 0
    while offset < fileBytes {
      let head = try read(8, at: offset)
      let counts = head.withUnsafeBytes { bytes in
        (0..<2).map { Int(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 4 * $0, as: UInt32.self))) }
      }
      let record = try read(counts[0] + counts[1], at: offset + 8)
      offset += 8 + record.count
      try record.withUnsafeBytes { bytes in
        appendText(UnsafeRawBufferPointer(rebasing: bytes[..<counts[0]]), to: &out)
        for index in cells.indices { cells[index] = nil }
        var entries = EncodedMap(documentFields: UnsafeRawBufferPointer(rebasing: bytes[counts[0]...])).makeIterator()
        while let entry = try entries.next() {
          if let index = indexes[[UInt8](entry.key)] { cells[index] = entry.value }
        }
        for index in order {
          out.append(UInt8(ascii: ","))
          if let value = cells[index] { try append(value, columns[index].type, to: &out) }
        }
        out.append(UInt8(ascii: "\n"))
      }
      if out.count >= pieceBytes {
        try write(out)
        out.removeAll(keepingCapacity: true)
      }
    }
    try write(out)
  }

  private func read(_ count: Int, at offset: Int) throws(FixtureTreeError) -> [UInt8] {
    var failure: ScratchError?
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { space, filled in
      do throws(ScratchError) {
        try file.read(
          at: offset, into: UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(space)[..<count]))
        filled = count
      } catch {
        failure = error
      }
    }
    if let failure { throw Self.failure(failure) }
    return bytes
  }

  private func header(_ order: [Int]) -> [UInt8] {
    var out = Array("__id__".utf8)
    for index in order {
      out.append(UInt8(ascii: ","))
      var name = columns[index].name
      // A string needs no type, unless a reader would find one in its name.
      if columns[index].type != .string || name.contains(UInt8(ascii: ":")) {
        name += Array(":\(columns[index].type.rawValue)".utf8)
      }
      name.withUnsafeBytes { appendText($0, to: &out) }
    }
    out.append(UInt8(ascii: "\n"))
    return out
  }

  private func append(_ value: EncodedValue, _ type: CSVType, to out: inout [UInt8]) throws(WireError) {
    let content = try value.content
    var text: [UInt8] = []
    switch (type, content) {
    case (.string, .string(let bytes)): return appendText(bytes, to: &out)
    case (.integer, .integer(let number)): return out.append(contentsOf: number.description.utf8)
    case (.double, .double(let number)): return out.append(contentsOf: Self.text(of: number).utf8)
    case (.boolean, .boolean(let flag)): return out.append(contentsOf: (flag ? "true" : "false").utf8)
    case (.timestamp, .timestamp(let moment)): return moment.appendRFC3339(to: &out)
    case (.bytes, .bytes(let bytes)): return Base64.append(bytes, to: &out)
    case (.reference, .reference(let name)):
      let path = values.shortReference(name)
      return appendText(path, to: &out)
    case (.geoPoint, .geoPoint(let point)): text = Array("\(point.latitude),\(point.longitude)".utf8)
    default: try values.append(value, to: &text)
    }
    text.withUnsafeBytes { appendText($0, to: &out) }
  }

  private static func text(of number: Double) -> String {
    number.isNaN ? "NaN" : number.isInfinite ? (number < 0 ? "-Infinity" : "Infinity") : number.description
  }

  /// Appends a cell, in quotes if necessary.
  private func appendText(_ text: UnsafeRawBufferPointer, to out: inout [UInt8]) {
    let needsQuotes =
      text.isEmpty
      || text.contains { byte in
        byte == UInt8(ascii: ",") || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\n")
          || byte == UInt8(ascii: "\r")
      }
    guard needsQuotes else { return out.append(contentsOf: text) }
    out.append(UInt8(ascii: "\""))
    for byte in text {
      if byte == UInt8(ascii: "\"") { out.append(byte) }
      out.append(byte)
    }
    out.append(UInt8(ascii: "\""))
  }
}
