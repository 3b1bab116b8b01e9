package import DocumentModel
import WireFormat

/// Parses the notation of pipelines: stages as calls, and expressions with operators.
///
///     collection(/records)
///     where(user_id == "ann" and at >= 2025-03-01)
///     aggregate(n: count() by week: timestamp_trunc(at, "week"))
///     sort(week desc)
///
/// The notation knows few names: the server checks stages and functions. docs/pipelines.md describes it for users.
package struct PipelineNotation {
  /// The maximum number of expressions around an expression.
  private static let depthMax = 60
  private static let sources: Set<String> = [
    "collection", "collection_group", "database", "documents", "literals", "subcollection",
  ]

  private let bytes: [UInt8]
  private let file: String
  private let database: DatabaseID
  private var position = 0
  private var depth = 0

  /// Parses the stages in a text. `file` is its name for messages.
  /// - Throws: `FixtureTreeError` with line and column if the text is malformed.
  package static func parse(
    _ text: [UInt8], file: String, in database: DatabaseID
  ) throws(FixtureTreeError) -> [PipelineCall] {
    var reader = PipelineNotation(bytes: text, file: file, database: database)
    let stages = try reader.stages()
    guard reader.next == nil else { throw reader.failure("expected the name of a stage, such as where") }
    return stages
  }

  private init(bytes: [UInt8], file: String, database: DatabaseID) {
    self.bytes = bytes
    self.file = file
    self.database = database
  }

  // MARK: Stages

  private mutating func stages() throws(FixtureTreeError) -> [PipelineCall] {
    var stages: [PipelineCall] = []
    while let name = takeName() {
      guard take("(") else { throw failure("expected '(' after '\(name)'") }
      stages.append(try stage(name))
      try expect(")", or: "','")
    }
    return stages
  }

  private mutating func stage(_ name: String) throws(FixtureTreeError) -> PipelineCall {
    switch name {
    case "collection", "documents", "collection_group":
      var call = try arguments(of: name, isSource: true)
      // Without an ancestor, the group covers the whole database.
      if name == "collection_group", call.arguments.count == 1 {
        call.arguments.insert(.constant(.reference("")), at: 0)
      }
      return call
    case "select", "add_fields", "distinct", "let", "update": return PipelineCall(name, [try namedList().argument])
    case "aggregate":
      let accumulators = try namedList()
      return PipelineCall(name, [accumulators.argument, try take(word: "by") ? namedList().argument : [].argument])
    case "find_nearest":
      var call = try arguments(of: name)
      // An array of numbers is a vector here.
      if call.arguments.count > 1, case .constant(.array(let elements)) = call.arguments[1] {
        let numbers = elements.compactMap(Self.component)
        if numbers.count == elements.count { call.arguments[1] = .constant(.vector(numbers)) }
      }
      return call
    case "sort":
      var orders: [PipelineArgument] = []
      repeat { orders.append(try order()) } while take(",")
      return PipelineCall(name, orders)
    default: return try arguments(of: name)
    }
  }

  private static func component(_ value: Value) -> Double? {
    switch value {
    case .integer(let number): Double(number)
    case .double(let number): number
    default: nil
    }
  }

  private mutating func order() throws(FixtureTreeError) -> PipelineArgument {
    let expression = try expression()
    let isDescending = take(word: "desc")
    if !isDescending { _ = take(word: "asc") }
    return .entries([
      .init("direction", .constant(.string(isDescending ? "descending" : "ascending"))),
      .init("expression", expression),
    ])
  }

  /// Parses `alias: expression, …`. A field alone is its own alias.
  private mutating func namedList() throws(FixtureTreeError) -> [PipelineArgument.Entry] {
    var entries: [PipelineArgument.Entry] = []
    guard next != UInt8(ascii: ")") else { return entries }
    repeat {
      let start = position
      let first = try expression()
      guard case .field(let alias) = first else {
        position = start
        throw failure("expected a name and ':' before this expression, or the name of a field")
      }
      entries.append(.init(alias, take(":") ? try expression() : first))
    } while take(",")
    return entries
  }

  /// Parses the arguments and options of a stage or function up to its closing parenthesis.
  private mutating func arguments(of name: String, isSource: Bool = false) throws(FixtureTreeError) -> PipelineCall {
    var call = PipelineCall(name)
    guard next != UInt8(ascii: ")") else { return call }
    if ["union", "array", "scalar"].contains(name), beginsPipeline() {
      try enter()
      call.arguments = [.pipeline(try stages())]
      depth -= 1
      return call
    }
    repeat {
      if isSource, next == UInt8(ascii: "/") {
        call.arguments.append(.constant(.reference(takePath())))
        continue
      }
      let argument = try expression()
      if case .field(let option) = argument, take(":") {
        call.options.append(.init(option, try expression()))
      } else {
        call.arguments.append(argument)
      }
    } while take(",")
    return call
  }

  /// Whether an input stage is next.
  private func beginsPipeline() -> Bool {
    var reader = self
    guard let name = reader.takeName() else { return false }
    return Self.sources.contains(name) && reader.take("(")
  }

  // MARK: Expressions

  private mutating func expression() throws(FixtureTreeError) -> PipelineArgument {
    try enter()
    defer { depth -= 1 }
    var parts = [try conjunction()]
    while take(word: "or") { parts.append(try conjunction()) }
    return parts.count == 1 ? parts[0] : .function(PipelineCall("or", parts))
  }

  private mutating func conjunction() throws(FixtureTreeError) -> PipelineArgument {
    var parts = [try negation()]
    while take(word: "and") { parts.append(try negation()) }
    return parts.count == 1 ? parts[0] : .function(PipelineCall("and", parts))
  }

  private mutating func negation() throws(FixtureTreeError) -> PipelineArgument {
    let start = position
    if take(word: "not") {
      if next != UInt8(ascii: "(") {
        try enter()
        defer { depth -= 1 }
        return .function(PipelineCall("not", [try negation()]))
      }
      position = start
    }
    return try comparison()
  }

  private static let comparisons = [
    ("==", "equal"), ("!=", "not_equal"), ("<=", "less_than_or_equal"), (">=", "greater_than_or_equal"),
    ("<", "less_than"), (">", "greater_than"),
  ]

  private mutating func comparison() throws(FixtureTreeError) -> PipelineArgument {
    let left = try sum()
    for (symbol, name) in Self.comparisons where take(symbol) {
      return .function(PipelineCall(name, [left, try sum()]))
    }
    if take(word: "in") { return .function(PipelineCall("equal_any", [left, try sum()])) }
    if next == UInt8(ascii: "=") { throw failure("write == instead of =") }
    return left
  }

  private mutating func sum() throws(FixtureTreeError) -> PipelineArgument {
    var left = try product()
    while true {
      if take("+") {
        left = .function(PipelineCall("add", [left, try product()]))
      } else if take("-") {
        left = .function(PipelineCall("subtract", [left, try product()]))
      } else {
        return left
      }
    }
  }

  private mutating func product() throws(FixtureTreeError) -> PipelineArgument {
    var left = try operand()
    while true {
      if take("*") {
        left = .function(PipelineCall("multiply", [left, try operand()]))
      } else if take("/") {
        left = .function(PipelineCall("divide", [left, try operand()]))
      } else {
        return left
      }
    }
  }

  private mutating func operand() throws(FixtureTreeError) -> PipelineArgument {
    guard let byte = next else { throw failure("expected a value, a field or a function") }
    switch byte {
    case UInt8(ascii: "("):
      position += 1
      let inner = try expression()
      try expect(")", or: "an operator")
      return inner
    case UInt8(ascii: "["):
      position += 1
      var elements: [PipelineArgument] = []
      if take("]") { return .elements([]) }
      repeat { elements.append(try expression()) } while take(",")
      try expect("]", or: "','")
      return .elements(elements)
    case UInt8(ascii: "{"):
      position += 1
      return try map()
    case UInt8(ascii: "\""), UInt8(ascii: "'"): return .constant(.string(try string()))
    case UInt8(ascii: "$"):
      position += 1
      guard let name = takeName() else { throw failure("expected the name of a variable after '$'") }
      return .variable(name)
    case UInt8(ascii: "/"):
      let path = takePath()
      return .constant(.reference(database.documentsRoot + (path == "/" ? "" : path)))
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"): return .constant(try number())
    default: return try named()
    }
  }

  /// Parses the rest of a map.
  private mutating func map() throws(FixtureTreeError) -> PipelineArgument {
    var entries: [PipelineArgument.Entry] = []
    if take("}") { return .entries([]) }
    repeat {
      let isQuoted = next == UInt8(ascii: "\"") || next == UInt8(ascii: "'")
      guard let key = isQuoted ? try string() : takeName() else { throw failure("expected a key of the map") }
      try expect(":", or: "a quoted key")
      entries.append(.init(key, try expression()))
    } while take(",")
    try expect("}", or: "','")
    return .entries(entries)
  }

  /// Parses a constant, a call or a field path.
  private mutating func named() throws(FixtureTreeError) -> PipelineArgument {
    let start = position
    guard let path = takeFieldPath() else { throw failure("expected a value, a field or a function") }
    if take("(") {
      guard !path.utf8.contains(UInt8(ascii: ".")), !path.utf8.contains(UInt8(ascii: "`")) else {
        position = start
        throw failure("'\(path)' is not the name of a function")
      }
      let call = try arguments(of: path)
      try expect(")", or: "','")
      return .function(call)
    }
    switch path {
    case "true": return .constant(.boolean(true))
    case "false": return .constant(.boolean(false))
    case "null": return .constant(.null)
    case "NaN": return .constant(.double(.nan))
    case "Infinity": return .constant(.double(.infinity))
    default: return .field(path)
    }
  }

  // MARK: Words

  /// The next byte after blanks and comments; `nil` at the end.
  private var next: UInt8? {
    mutating get {
      while position < bytes.count {
        if bytes[position] <= 0x20 {
          position += 1
        } else if bytes[position] == UInt8(ascii: "#") {
          while position < bytes.count, bytes[position] != UInt8(ascii: "\n") { position += 1 }
        } else {
          return bytes[position]
        }
      }
      return nil
    }
  }

  private mutating func take(_ symbol: String) -> Bool {
    guard next != nil, bytes[position...].starts(with: symbol.utf8) else { return false }
    position += symbol.utf8.count
    return true
  }

  private mutating func take(word: String) -> Bool {
    let start = position
    if takeName() == word { return true }
    position = start
    return false
  }

  private mutating func expect(_ symbol: String, or other: String) throws(FixtureTreeError) {
    guard take(symbol) else { throw failure("expected '\(symbol)' or \(other)") }
  }

  private static func isOfName(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "_"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), 0x80...:
      true
    default: false
    }
  }

  private mutating func takeName() -> String? {
    guard let first = next, Self.isOfName(first), !(0x30...0x39).contains(first) else { return nil }
    let start = position
    while position < bytes.count, Self.isOfName(bytes[position]) { position += 1 }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  /// Takes names that are separated by dots. A name in backticks can contain any character.
  private mutating func takeFieldPath() -> String? {
    guard let first = next, Self.isOfName(first) || first == UInt8(ascii: "`") else { return nil }
    let start = position
    repeat {
      if position < bytes.count, bytes[position] == UInt8(ascii: "`") {
        position += 1
        while position < bytes.count, bytes[position] != UInt8(ascii: "`") {
          position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1
        }
        position = min(position + 1, bytes.count)
      } else {
        while position < bytes.count, Self.isOfName(bytes[position]) { position += 1 }
      }
      guard position < bytes.count, bytes[position] == UInt8(ascii: ".") else { break }
      position += 1
    } while true
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  /// Takes a path that begins with a slash.
  private mutating func takePath() -> String {
    let start = position
    while position < bytes.count, bytes[position] > 0x20, !",)]}".utf8.contains(bytes[position]) { position += 1 }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  /// Takes a number, a date or a time.
  private mutating func number() throws(FixtureTreeError) -> Value {
    let start = position
    let isDate =
      String(decoding: bytes[position...].prefix(10), as: UTF8.self).wholeMatch(of: #/\d{4}-\d\d-\d\d/#) != nil
    position += 1
    while position < bytes.count {
      let byte = bytes[position]
      let isExponent = bytes[position - 1] | 0x20 == UInt8(ascii: "e")
      let isSign = byte == UInt8(ascii: "-") || byte == UInt8(ascii: "+")
      guard
        Self.isOfName(byte) || byte == UInt8(ascii: ".") || isSign && (isDate || isExponent)
          || isDate && byte == UInt8(ascii: ":")
      else { break }
      position += 1
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    if isDate, let time = Self.time(text) { return .timestamp(time) }
    if let integer = Int64(text) { return .integer(integer) }
    if text == "-Infinity" { return .double(-.infinity) }
    if text.wholeMatch(of: #/-?\d+(\.\d+)?([eE][+-]?\d+)?/#) != nil, let number = Double(text) {
      return .double(number)
    }
    position = start
    throw failure("'\(text)' is neither a number nor a time such as 2025-03-01T14:30:00Z")
  }

  /// Parses a string in double quotes, with the escapes of JSON, or in single quotes, without escapes.
  private mutating func string() throws(FixtureTreeError) -> String {
    let start = position
    let quote = bytes[position]
    position += 1
    while position < bytes.count, bytes[position] != quote {
      position += quote == UInt8(ascii: "\"") && bytes[position] == UInt8(ascii: "\\") ? 2 : 1
    }
    guard position < bytes.count else {
      position = start
      throw failure("the string that begins here has no closing quote")
    }
    let text = bytes[(start + 1)..<position]
    position += 1
    guard quote == UInt8(ascii: "\"") else { return String(decoding: text, as: UTF8.self) }
    guard let tree = try? JSONTree(parsing: [quote] + text + [quote]), case .string(let string) = tree.kind else {
      position = start
      throw failure("the string that begins here has a line break, or an escape that JSON does not have")
    }
    return string
  }

  /// Returns the time of a date or a time, which is in UTC if it has no zone; `nil` if the text is neither.
  private static func time(_ text: String) -> Timestamp? {
    if text.utf8.count == 10 { return Timestamp(rfc3339: "\(text)T00:00:00Z".utf8) }
    return Timestamp(rfc3339: text.utf8) ?? Timestamp(rfc3339: "\(text)Z".utf8)
  }

  // MARK: Errors

  private mutating func enter() throws(FixtureTreeError) {
    guard depth < Self.depthMax else { throw failure("expressions are nested deeper than \(Self.depthMax)") }
    depth += 1
  }

  private mutating func failure(_ message: String) -> FixtureTreeError {
    _ = next
    let before = bytes[..<min(position, bytes.count)]
    let line = before.count { $0 == UInt8(ascii: "\n") } + 1
    let lineStart = before.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0
    let place = position >= bytes.count ? "\(message), but the text ends" : message
    return FixtureTreeError(file: file, line: line, column: before.count - lineStart + 1, message: place)
  }
}

extension [PipelineArgument.Entry] {
  /// The entries as a map.
  fileprivate var argument: PipelineArgument { .entries(self) }
}
