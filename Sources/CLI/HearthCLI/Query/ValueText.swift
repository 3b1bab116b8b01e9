import DocumentModel
import FixtureTree
import WireFormat

/// Reads values as people write them in conditions and bounds: `12`, `true`, `"text"`, `2025-03-01`, `[1, 2]`,
/// `{"$ref": "users/ann"}`.
struct ValueText {
  static let details = """
    Values: numbers, true, false, null, "text" or 'text', dates and times such as 2025-03-01 and
    2025-03-01T14:30:00Z (without a zone: UTC), lists such as [1, 2], and JSON objects as a fixture tree writes them:
    {"$ref": "users/ann"}, {"$bytes": "base64"}, {"$geo": [45.46, 9.19]}, {"$double": 1}, {"$vector": [1, 2]}.
    A value for __name__ is an id of the collection, or a path.
    """

  private let bytes: [UInt8]
  private var position = 0
  private let option: String
  private let collection: ResourcePath
  private let database: DatabaseID

  /// Reads the text of an option of a query on a collection.
  init(_ text: String, option: String, in collection: ResourcePath, of database: DatabaseID) {
    bytes = Array(text.utf8)
    self.option = option
    self.collection = collection
    self.database = database
  }

  /// Says that something is wrong at the current place.
  func failure(_ what: String) -> CommandFailure {
    let before = String(decoding: bytes[..<position], as: UTF8.self)
    let place = position >= bytes.count ? "at its end" : "at character \(before.count + 1)"
    return .usage("'--\(option) \(String(decoding: bytes, as: UTF8.self))': \(what) (\(place))")
  }

  // MARK: Symbols and words

  private mutating func skipBlanks() {
    while position < bytes.count, bytes[position] <= 0x20 { position += 1 }
  }

  /// Whether nothing but blanks is left.
  mutating func isAtEnd() -> Bool {
    skipBlanks()
    return position == bytes.count
  }

  /// Refuses what is left.
  mutating func expectEnd(or other: String) throws {
    guard isAtEnd() else { throw failure("expected \(other), or the end") }
  }

  /// Goes past a symbol where it comes next.
  mutating func take(symbol: String) -> Bool {
    skipBlanks()
    guard bytes[position...].starts(with: symbol.utf8) else { return false }
    position += symbol.utf8.count
    return true
  }

  /// Goes past a word where it comes next and ends there.
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

  /// The path of a field.
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
      throw failure("'\(text)' is no field: \(error)")
    }
  }

  // MARK: Values

  /// A value.
  mutating func value() throws -> Value {
    try list(orOne: { try $0.single() })
  }

  /// A document's name, or a list of such: an id of the collection, a path, or a reference.
  mutating func name() throws -> Value {
    try list(orOne: { try $0.singleName() })
  }

  private mutating func list(orOne one: (inout ValueText) throws -> Value) throws -> Value {
    guard take(symbol: "[") else { return try one(&self) }
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
      throw failure("expected the id of a document, or the path of one such as users/ann")
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
        throw failure("the text that begins here has no closing quote")
      }
      position = end + 1
      return .string(String(decoding: bytes[(start + 1)..<end], as: UTF8.self))
    default: break
    }
    let text = word()
    do { return try Self.bare(text) ?? json(Array(text.utf8)[...]) } catch let problem as BareWord {
      position = start
      throw failure(problem.text)
    }
  }

  /// What stands without quotes up to the next blank or bracket.
  private mutating func word() -> String {
    let start = position
    while position < bytes.count, bytes[position] > 0x20, !"[](),".utf8.contains(bytes[position]) { position += 1 }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private struct BareWord: Error { var text: String }

  /// The value of a word without quotes; `nil` for one that JSON reads as a number.
  private static func bare(_ text: String) throws -> Value? {
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
      guard let time = time(text) else {
        throw BareWord(text: "'\(text)' is no date; write 2025-03-01 or 2025-03-01T14:30:00Z")
      }
      return .timestamp(time)
    }
    if text.contains(#/^-?\d/#) { return nil }
    guard !text.isEmpty else { throw BareWord(text: "expected a value") }
    throw BareWord(text: "a text needs quotes: \"\(text)\"")
  }

  /// The moment that a date or a time names; in UTC where it names no zone.
  static func time(_ text: String) -> Timestamp? {
    guard let parts = text.wholeMatch(of: #/(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(.*))?/#) else {
      return nil
    }
    let (_, date, minutes, seconds, zone) = parts.output
    let zoneText = zone.map(String.init) ?? ""
    let whole = "\(date)T\(minutes ?? "00:00")\(seconds ?? ":00")\(zoneText.isEmpty ? "Z" : zoneText)"
    return Timestamp(rfc3339: whole.utf8)
  }

  /// Goes past a string in double quotes.
  private mutating func skipString() throws {
    let start = position
    position += 1
    while position < bytes.count, bytes[position] != UInt8(ascii: "\"") {
      position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
    }
    guard position < bytes.count else {
      position = start
      throw failure("the text that begins here has no closing quote")
    }
    position += 1
  }

  /// Goes past a JSON object or array and returns it.
  private mutating func balanced() throws -> ArraySlice<UInt8> {
    let start = position
    var depth = 0
    repeat {
      guard position < bytes.count else {
        position = start
        throw failure("the bracket that opens here is not closed")
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
    let fields = try FixtureFields.parse(
      Array(#"{"value": "#.utf8) + text + Array("}".utf8), source: "the value of --\(option)", key: key,
      database: database)
    guard let value = try fields.decoded()["value"] else { throw failure("expected a value") }
    return value
  }
}
