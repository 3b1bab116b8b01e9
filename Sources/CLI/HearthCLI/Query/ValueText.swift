import DocumentModel
import FixtureTree
import WireFormat

/// Parses the values in conditions, bounds and assignments: `12`, `true`, `text`, `"text"`, `2025-03-01`, `[1, 2]`,
/// `{"$ref": "users/ann"}`. The same rules apply to all of them.
struct ValueText {
  static let details = """
    VALUE is the same for --where, `hearth add`, `hearth set` and `hearth update`:

    - a number, `true`, `false` or `null`
    - a date or a time such as 2025-03-01 or 2025-03-01T14:30:00Z, which is a timestamp (UTC if it has no zone)
    - text: any other word, such as `Bob`; in quotes, `"12"` or `'12'`, everything is text
    - an array such as [1, 2], or an object as in fixture files: `{"$ref": "users/ann"}`, `{"$bytes": "base64"}`,
      `{"$geo": [45.46, 9.19]}`, `{"$double": 1}`, `{"$vector": [1, 2]}`

    A word that begins with a digit must be a number or a date, and words such as `True` or `NULL` are ambiguous: for
    text, use quotes. The shell removes one pair of quotes, so write `zip='"00123"'`.
    """

  private let bytes: [UInt8]
  private var position = 0
  private var isInList = false
  /// The text before the values, for messages: `--where ` or `age=`.
  private let prefix: String
  /// Whether a word extends to the end of the text, because nothing follows the value.
  private let isWhole: Bool
  private let collection: ResourcePath
  private let database: DatabaseID

  /// Creates a parser for the text of an option of a query on a collection.
  init(_ text: String, option: String, in collection: ResourcePath, of database: DatabaseID) {
    bytes = Array(text.utf8)
    prefix = "--\(option) "
    isWhole = false
    self.collection = collection
    self.database = database
  }

  private init(assigned text: String, prefix: String, of database: DatabaseID) {
    bytes = Array(text.utf8)
    self.prefix = prefix
    isWhole = true
    collection = ResourcePath.root.appending("c")
    self.database = database
  }

  /// Returns the value in `FIELD=VALUE`. Text without quotes may contain spaces.
  /// - Throws: ``CommandFailure`` if the text is not a value, or is ambiguous.
  static func assigned(_ text: String, to field: String, of database: DatabaseID) throws -> Value {
    var reader = ValueText(assigned: text, prefix: "\(field)=", of: database)
    guard !reader.isAtEnd() else {
      throw CommandFailure.usage(
        "'\(field)=' has no value; write '\(field)=\"\"' in single quotes for an empty text, or --remove \(field)")
    }
    let value = try reader.value()
    try reader.expectEnd(or: "one value")
    return value
  }

  /// Returns an error with the current position.
  func failure(_ what: String) -> CommandFailure {
    let before = (isWhole ? prefix : "") + String(decoding: bytes[..<position], as: UTF8.self)
    let place = position >= bytes.count ? "at its end" : "at character \(before.count + 1)"
    return .usage("'\(prefix)\(String(decoding: bytes, as: UTF8.self))': \(what) (\(place))")
  }

  // MARK: Symbols and words

  private mutating func skipBlanks() {
    while position < bytes.count, bytes[position] <= 0x20 { position += 1 }
  }

  /// Returns whether only spaces remain.
  mutating func isAtEnd() -> Bool {
    skipBlanks()
    return position == bytes.count
  }

  /// Checks that the text ends here.
  /// - Throws: ``CommandFailure`` if more text follows.
  mutating func expectEnd(or other: String) throws {
    guard isAtEnd() else {
      let isWord = position < bytes.count && Self.isOfWord(bytes[position])
      throw failure("expected \(other), or the end\(isWord ? "; text with spaces needs quotes" : "")")
    }
  }

  /// Skips a symbol if it is next, and returns whether it was.
  mutating func take(symbol: String) -> Bool {
    skipBlanks()
    guard bytes[position...].starts(with: symbol.utf8) else { return false }
    position += symbol.utf8.count
    return true
  }

  /// Skips a word if it is next, and returns whether it was.
  mutating func take(word: String) -> Bool {
    skipBlanks()
    guard bytes[position...].starts(with: word.utf8) else { return false }
    let end = position + word.utf8.count
    if end < bytes.count, Self.isOfWord(bytes[end]) { return false }
    position = end
    return true
  }

  private static func isOfWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"),
      UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    default: false
    }
  }

  // MARK: Fields

  /// Parses the path of a field.
  /// - Throws: ``CommandFailure`` if no field path is next.
  mutating func fieldPath() throws -> FieldPath {
    skipBlanks()
    let start = position
    var isQuoted = false
    while position < bytes.count {
      let byte = bytes[position]
      if byte == UInt8(ascii: "`") { isQuoted.toggle() }
      if isQuoted, byte == UInt8(ascii: "\\"), position + 1 < bytes.count {
        position += 1
      } else if !isQuoted, byte <= 0x20 || "=!<>():,".utf8.contains(byte) {
        break
      }
      position += 1
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    guard !text.isEmpty else { throw failure("expected the name of a field") }
    do { return try FieldPath(text) } catch {
      position = start
      throw failure("'\(text)' is not a field path: \(error)")
    }
  }

  // MARK: Values

  /// Parses a value.
  /// - Throws: ``CommandFailure`` if no value is next.
  mutating func value() throws -> Value {
    try list(orOne: { try $0.single() })
  }

  /// Parses the name of a document, or an array of names. A name is an ID of the collection, a path, or a reference.
  /// - Throws: ``CommandFailure`` if no name is next.
  mutating func name() throws -> Value {
    try list(orOne: { try $0.singleName() })
  }

  private mutating func list(orOne one: (inout ValueText) throws -> Value) throws -> Value {
    guard take(symbol: "[") else { return try one(&self) }
    isInList = true
    defer { isInList = false }
    var elements: [Value] = []
    if take(symbol: "]") { return .array(elements) }
    repeat { elements.append(try one(&self)) } while take(symbol: ",")
    guard take(symbol: "]") else { throw failure("expected ',' or ']'") }
    return .array(elements)
  }

  private mutating func singleName() throws -> Value {
    skipBlanks()
    let start = position
    let text: String
    switch position < bytes.count ? bytes[position] : 0 {
    case UInt8(ascii: "{"), UInt8(ascii: "\""), UInt8(ascii: "'"):
      switch try single() {
      case .string(let id): text = id
      case let value: return value
      }
    default: text = word()
    }
    let path = text.utf8.contains(UInt8(ascii: "/")) ? text : "\(collection)/\(text)"
    guard !text.isEmpty, let path = try? DatabaseChoice.path(path), path.isDocument else {
      position = start
      throw failure("expected the ID of a document, or a path such as users/ann")
    }
    return .reference(ResourceName(database: database, path: path).text)
  }

  private mutating func single() throws -> Value {
    skipBlanks()
    let start = position
    guard position < bytes.count else { throw failure("expected a value") }
    switch bytes[position] {
    case UInt8(ascii: "{"), UInt8(ascii: "["): return try json(try balanced())
    case UInt8(ascii: "\""):
      try skipString()
      return try json(bytes[start..<position])
    case UInt8(ascii: "'"):
      guard let end = bytes[(position + 1)...].firstIndex(of: UInt8(ascii: "'")) else {
        throw failure("the string that begins here has no closing quote")
      }
      position = end + 1
      return .string(String(decoding: bytes[(start + 1)..<end], as: UTF8.self))
    default: break
    }
    let text = word()
    do { return try bare(text) ?? json(Array(text.utf8)[...]) } catch let problem as BareWord {
      position = start
      throw failure(problem.text)
    } catch let error as FixtureTreeError {
      // A number may also be out of range.
      guard text.wholeMatch(of: #/-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/#) == nil else { throw error }
      position = start
      throw failure("'\(text)' is neither a number nor a date; for text, write \(quoted(text))")
    }
  }

  /// Returns the text in quotes as a command line needs them.
  private func quoted(_ text: String) -> String { isWhole ? "'\(prefix)\"\(text)\"'" : "\"\(text)\"" }

  /// Parses the characters up to the next space, bracket or comma, or up to the end of an assigned value.
  private mutating func word() -> String {
    let start = position
    if isWhole, !isInList {
      position = bytes.count
      while position > start, bytes[position - 1] <= 0x20 { position -= 1 }
      return String(decoding: bytes[start..<position], as: UTF8.self)
    }
    while position < bytes.count, bytes[position] > 0x20, !"[](),".utf8.contains(bytes[position]) { position += 1 }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private struct BareWord: Error { var text: String }

  /// Words that may be a constant or text.
  private static let ambiguousWords: Set<String> = ["true", "false", "null", "nan", "infinity", "-infinity"]
  /// The words that continue a condition.
  private static let conditionWords: Set<String> = ["and", "or", "not", "in", "is"]

  /// Returns the value of a word without quotes, or `nil` if it begins like a number.
  private func bare(_ text: String) throws -> Value? {
    switch text {
    case "null": return .null
    case "true": return .boolean(true)
    case "false": return .boolean(false)
    case "NaN": return .double(.nan)
    case "Infinity": return .double(.infinity)
    case "-Infinity": return .double(-.infinity)
    default: break
    }
    if text.contains(#/^\d{4}-\d\d-\d\d/#) {
      guard let time = Self.time(text) else {
        throw BareWord(
          text: "'\(text)' is not a valid date; write 2025-03-01 or 2025-03-01T14:30:00Z, or for text \(quoted(text))")
      }
      return .timestamp(time)
    }
    if text.contains(#/^-?\d/#) { return nil }
    guard !text.isEmpty, isWhole || !Self.conditionWords.contains(text) else {
      throw BareWord(text: "expected a value")
    }
    let lowercase = text.lowercased()
    guard !Self.ambiguousWords.contains(lowercase) else {
      throw BareWord(text: "'\(text)' is ambiguous; write \(constant(lowercase)), or for text \(quoted(text))")
    }
    return .string(text)
  }

  /// Returns the constant that a word of ``ambiguousWords`` probably means.
  private func constant(_ word: String) -> String {
    switch word {
    case "nan": "NaN"
    case "infinity": "Infinity"
    case "-infinity": "-Infinity"
    default: word
    }
  }

  /// Returns the time of a date or a time, or `nil` if the text is neither. Without a zone, the time is in UTC.
  static func time(_ text: String) -> Timestamp? {
    guard let parts = text.wholeMatch(of: #/(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(.*))?/#) else {
      return nil
    }
    let (_, date, minutes, seconds, zone) = parts.output
    let zoneText = zone.map(String.init) ?? ""
    let whole = "\(date)T\(minutes ?? "00:00")\(seconds ?? ":00")\(zoneText.isEmpty ? "Z" : zoneText)"
    return Timestamp(rfc3339: whole.utf8)
  }

  /// Skips a string in double quotes.
  private mutating func skipString() throws {
    let start = position
    position += 1
    while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
      position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
    }
    guard position < bytes.count else {
      position = start
      throw failure("the string that begins here has no closing quote")
    }
    position += 1
  }

  /// Skips a JSON object or array and returns it.
  private mutating func balanced() throws -> ArraySlice<UInt8> {
    let start = position
    var depth = 0
    repeat {
      guard position < bytes.count else {
        position = start
        throw failure("the bracket that begins here is not closed")
      }
      switch bytes[position] {
      case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: "\""):
        try skipString()
        continue
      default: break
      }
      position += 1
    } while depth > 0
    return bytes[start..<position]
  }

  private func json(_ text: ArraySlice<UInt8>) throws -> Value {
    let document = collection.appending("x")
    guard let key = DocumentKey(document) else { throw failure("expected a value") }
    let start = Array(#"{"value": "#.utf8)
    let fields: EncodedFields
    do throws(FixtureTreeError) {
      fields = try FixtureFields.parse(
        start + text + Array("}".utf8), source: "the value of \(prefix.dropLast())", key: key, database: database)
    } catch {
      // The document and the field exist only for the parser.
      var error = error
      error.path = ""
      error.field = error.field.hasPrefix("value.") ? String(error.field.dropFirst("value.".count)) : ""
      if error.line == 1 { error.column = max(1, error.column - start.count) }
      throw error
    }
    guard let value = try fields.decoded()["value"] else { throw failure("expected a value") }
    return value
  }
}
