import DocumentModel
import FixtureTree
import WireFormat

/// A value as a cell of a table shows it.
struct TableCell {
  /// The longest text of a cell, in columns; what is longer is cut. `--json` shows all.
  static let columnsMax = 80

  var text: String
  var isNumber = false

  /// No value: the document lacks the field.
  static let missing = TableCell(text: "")

  private init(text: String, isNumber: Bool = false) {
    self.text = text
    self.isNumber = isNumber
  }

  /// A text as it is, made safe for a terminal and cut to so many columns.
  init(plain text: String, columnsMax: Int = Self.columnsMax) {
    // More scalars than columns are cut anyway; combining marks do not add up to many.
    let front = String(text.unicodeScalars.prefix(16 * columnsMax))
    self.text = TextWidth.cut(TerminalText.line(front), to: columnsMax)
  }

  /// A value of a document of a database.
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

  /// `30` for an integral double, as people write it.
  private static func text(of number: Double) -> String {
    number.isFinite && number.magnitude < 0x1p53 && number == number.rounded(.towardZero)
      ? String(Int64(number)) : number.description.replacing("inf", with: "Infinity").replacing("nan", with: "NaN")
  }

  /// Whether a text is not taken for something else: a number, a date, null, nothing.
  private static func isPlain(_ text: String) -> Bool {
    if text.isEmpty || text.first == " " || text.last == " " || text.first == "\"" { return false }
    if ["null", "true", "false", "NaN", "Infinity"].contains(text) { return false }
    return Double(text) == nil && ValueText.time(text) == nil
  }

  /// Fixture JSON on one line, of its front where it is long.
  private static func compact(_ value: Value, in database: DatabaseID) -> String {
    var bytes: [UInt8] = []
    // A map shows its own braces; an array stands in a field of no name, which is taken off again.
    guard
      (try? FixtureFields.appendLine(EncodedFields(MapValue([("v", value)])), database: database, to: &bytes)) != nil
    else { return "?" }
    return String(decoding: bytes.dropFirst(#"{"v": "#.utf8.count).dropLast(), as: UTF8.self)
  }
}
