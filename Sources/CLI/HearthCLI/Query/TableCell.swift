import DocumentModel
import FixtureTree
import WireFormat

/// The cell of a table that shows a value.
struct TableCell {
  /// The maximum width of a cell, in columns. Longer texts are cut; `--json` shows them completely.
  static let columnsMax = 80

  var text: String
  var isNumber = false

  /// The cell of a field that the document does not have.
  static let missing = TableCell(text: "")

  private init(text: String, isNumber: Bool = false) {
    self.text = text
    self.isNumber = isNumber
  }

  /// Creates a cell with a text, made safe for a terminal and cut to `columnsMax` columns.
  init(plain text: String, columnsMax: Int = Self.columnsMax) {
    // Limit the scalars first: longer texts are cut anyway, and few scalars of a text are combining marks.
    let front = String(text.unicodeScalars.prefix(16 * columnsMax))
    self.text = TextWidth.cut(TerminalText.line(front), to: columnsMax)
  }

  /// Creates a cell with a value. References within `database` are shown as paths.
  init(_ value: Value, in database: DatabaseID) {
    switch value {
    case .null: self.init(text: "null")
    case .boolean(let flag): self.init(text: flag ? "true" : "false")
    case .integer(let number): self.init(text: String(number), isNumber: true)
    case .double(let number): self.init(text: Self.text(of: number), isNumber: true)
    case .timestamp(let time): self.init(text: time.description)
    case .string(let text): self.init(plain: Self.isPlain(text) ? text : "\"\(text)\"")
    case .reference(let name):
      let root = database.documentsRoot + "/"
      self.init(plain: name.hasPrefix(root) ? String(name.dropFirst(root.count)) : name)
    case .bytes(let bytes): self.init(text: "<\(bytes.count) bytes>")
    case .geoPoint(let point):
      self.init(text: "\(Self.text(of: point.latitude)), \(Self.text(of: point.longitude))")
    case .array, .map: self.init(plain: Self.compact(value, in: database))
    }
  }

  /// Returns a number as text, without a fraction if it is integral: `30`.
  private static func text(of number: Double) -> String {
    number.isFinite && number.magnitude < 0x1p53 && number == number.rounded(.towardZero)
      ? String(Int64(number)) : number.description.replacing("inf", with: "Infinity").replacing("nan", with: "NaN")
  }

  /// Whether a string needs no quotes, because it cannot be mistaken for a number, a date, a constant or an empty cell.
  private static func isPlain(_ text: String) -> Bool {
    if text.isEmpty || text.first == " " || text.last == " " || text.first == "\"" { return false }
    if ["null", "true", "false", "NaN", "Infinity"].contains(text) { return false }
    return Double(text) == nil && ValueText.time(text) == nil
  }

  /// Returns fixture JSON on one line.
  private static func compact(_ value: Value, in database: DatabaseID) -> String {
    var bytes: [UInt8] = []
    // Only maps of fields can be written, so write the value as a field and remove the name and the outer braces.
    guard
      (try? FixtureFields.appendLine(EncodedFields(MapValue([("v", value)])), database: database, to: &bytes)) != nil
    else { return "?" }
    return String(decoding: bytes.dropFirst(#"{"v": "#.utf8.count).dropLast(), as: UTF8.self)
  }
}
