import DocumentModel
import PipelineExpressions
import TestSupport

/// A generator of random expressions and rows. Most arguments have the type that their function takes.
struct PipelineExpressionGenerator {
  private enum Kind: CaseIterable {
    case any, boolean, number, integer, string, text, array, strings, map, vector, reference, timestamp
    /// A constant name of a unit, of a part of a date, of a zone or of a type.
    case unit, part, zone, type, mode
  }

  /// The functions with the kinds of their arguments. The last kind repeats if more arguments are allowed.
  private static let functions: [(name: String, result: Kind, arguments: [Kind], more: Int)] = [
    ("add", .number, [.number, .number], 0), ("subtract", .number, [.number, .number], 0),
    ("multiply", .number, [.number, .number], 0), ("divide", .number, [.number, .number], 0),
    ("mod", .number, [.number, .number], 0), ("abs", .number, [.number], 0), ("ceil", .number, [.number], 0),
    ("floor", .number, [.number], 0), ("sqrt", .number, [.number], 0),
    ("equal", .boolean, [.any, .any], 0), ("not_equal", .boolean, [.any, .any], 0),
    ("less_than", .boolean, [.any, .any], 0), ("less_than_or_equal", .boolean, [.any, .any], 0),
    ("greater_than", .boolean, [.any, .any], 0), ("greater_than_or_equal", .boolean, [.any, .any], 0),
    ("cmp", .integer, [.any, .any], 0), ("and", .boolean, [.boolean, .boolean], 2),
    ("or", .boolean, [.boolean, .boolean], 2), ("nor", .boolean, [.boolean, .boolean], 1),
    ("xor", .boolean, [.boolean, .boolean], 1), ("not", .boolean, [.boolean], 0),
    ("conditional", .any, [.boolean, .any, .any], 0), ("switch_on", .any, [.boolean, .any, .boolean, .any, .any], 0),
    ("equal_any", .boolean, [.any, .array], 0), ("not_equal_any", .boolean, [.any, .array], 0),
    ("if_null", .any, [.any, .any], 1), ("coalesce", .any, [.any, .any], 1), ("exists", .boolean, [.any], 0),
    ("is_absent", .boolean, [.any], 0), ("if_absent", .any, [.any, .any], 0), ("is_error", .boolean, [.any], 0),
    ("if_error", .any, [.any, .any], 0), ("maximum", .any, [.any, .any], 2), ("minimum", .any, [.any, .any], 2),
    ("char_length", .integer, [.string], 0), ("byte_length", .integer, [.text], 0), ("length", .integer, [.any], 0),
    ("string_concat", .string, [.string, .string], 1), ("concat", .text, [.text, .text], 1),
    ("concat", .array, [.array, .array], 1), ("to_lower", .text, [.text], 0), ("to_upper", .text, [.text], 0),
    ("trim", .text, [.text], 1), ("ltrim", .text, [.text], 1), ("rtrim", .text, [.text, .text], 0),
    ("reverse", .text, [.text], 0), ("reverse", .array, [.array], 0), ("string_reverse", .text, [.text], 0),
    ("substring", .text, [.text, .integer, .integer], 0), ("substring", .text, [.text, .integer], 0),
    ("string_contains", .boolean, [.string, .string], 0), ("starts_with", .boolean, [.string, .string], 0),
    ("ends_with", .boolean, [.string, .string], 0), ("like", .boolean, [.string, .string], 0),
    ("string_index_of", .integer, [.text, .text], 0), ("string_repeat", .text, [.text, .integer], 0),
    ("string_replace_all", .text, [.text, .text, .text], 0), ("string_replace_one", .text, [.text, .text, .text], 0),
    ("split", .strings, [.text, .text], 0), ("split", .strings, [.string], 0), ("join", .text, [.strings, .text], 1),
    ("unix_micros_to_timestamp", .timestamp, [.integer], 0), ("unix_millis_to_timestamp", .timestamp, [.integer], 0),
    ("unix_seconds_to_timestamp", .timestamp, [.integer], 0), ("timestamp_to_unix_micros", .integer, [.timestamp], 0),
    ("timestamp_to_unix_millis", .integer, [.timestamp], 0), ("timestamp_to_unix_seconds", .integer, [.timestamp], 0),
    ("timestamp_add", .timestamp, [.timestamp, .unit, .integer], 0),
    ("timestamp_subtract", .timestamp, [.timestamp, .unit, .integer], 0),
    ("timestamp_diff", .integer, [.timestamp, .timestamp, .unit], 0),
    ("array", .array, [.any, .any], 2), ("array_concat", .array, [.array, .array], 1),
    ("array_contains", .boolean, [.array, .any], 0), ("array_contains_all", .boolean, [.array, .array], 0),
    ("array_contains_any", .boolean, [.array, .array], 0), ("array_length", .integer, [.array], 0),
    ("array_reverse", .array, [.array], 0), ("array_get", .any, [.array, .integer], 0),
    ("array_first", .any, [.array], 0), ("array_last", .any, [.array], 0),
    ("array_first_n", .array, [.array, .integer], 0), ("array_last_n", .array, [.array, .integer], 0),
    ("array_slice", .array, [.array, .integer, .integer], 0), ("array_slice", .array, [.array, .integer], 0),
    ("array_index_of", .integer, [.array, .any], 0), ("array_index_of", .integer, [.array, .any, .mode], 0),
    ("array_index_of_all", .array, [.array, .any], 0), ("maximum", .any, [.array], 0), ("minimum", .any, [.array], 0),
    ("maximum_n", .array, [.array, .integer], 0), ("minimum_n", .array, [.array, .integer], 0),
    ("sum", .number, [.array], 0), ("map_get", .any, [.map, .string], 0), ("map_set", .map, [.map, .string, .any], 0),
    ("map", .map, [.string, .any], 0), ("map", .map, [.string, .any, .string, .any], 0),
    ("map_remove", .map, [.map, .string], 1), ("map_merge", .map, [.map, .map], 1), ("map_keys", .strings, [.map], 0),
    ("map_values", .array, [.map], 0), ("map_entries", .array, [.map], 0), ("type", .string, [.any], 0),
    ("is_type", .boolean, [.any, .type], 0), ("document_id", .string, [.reference], 0),
    ("collection_id", .string, [.reference], 0), ("vector_length", .integer, [.vector], 0),
    ("euclidean_distance", .number, [.vector, .vector], 0), ("dot_product", .number, [.vector, .vector], 0),
    ("manhattan_distance", .number, [.vector, .vector], 0),
  ]

  private static let parts = [
    "microsecond", "millisecond", "second", "minute", "hour", "day", "week", "week(sunday)", "week(monday)",
    "week(wednesday)", "week(saturday)", "isoweek", "month", "quarter", "year", "isoyear",
  ]

  private var random: SplitMix

  init(seed: UInt64) { random = SplitMix(seed: seed) }

  /// Returns the fields of a row. Each is present in most rows.
  mutating func fields() -> MapValue {
    var fields = MapValue()
    for kind in Kind.allCases.prefix(12) where !random.chance(oneIn: 6) { fields["\(kind)"] = value(kind) }
    fields["nested"] = .map(MapValue([("any", value(.any)), ("number", value(.number))]))
    return fields
  }

  /// Returns an expression with at most `depth` nested calls.
  mutating func expression(depth: Int) -> PipelineExpression { expression(.any, depth: depth, parameters: []) }

  /// Returns a call of `timestamp_trunc` or `timestamp_extract` on a time between 1972 and 2035.
  mutating func dateExpression() -> PipelineExpression {
    let isTrunc = random.chance(oneIn: 2)
    let time = Timestamp(
      uncheckedMicroseconds: Int64.random(in: 63_072_000_000_000...2_051_222_400_000_000, using: &random))
    let part = random.pick(isTrunc ? Self.parts : Self.parts + ["dayofweek", "dayofyear"])
    var arguments: [PipelineExpression] = [.constant(.timestamp(time)), .constant(.string(part))]
    if !random.chance(oneIn: 4) { arguments.append(.constant(value(.zone))) }
    return .call(isTrunc ? "timestamp_trunc" : "timestamp_extract", arguments)
  }

  /// Returns a call of `round` or `trunc`.
  mutating func roundingExpression() -> PipelineExpression {
    var number = random.double()
    while !number.isFinite || number.magnitude > 1e15 || (number != 0 && number.magnitude < 1e-10) {
      number = random.double()
    }
    let places = Int64.random(in: -6...17, using: &random)
    let value: Value = random.chance(oneIn: 2) ? .double(number) : .integer(random.integer())
    return .call(random.chance(oneIn: 2) ? "round" : "trunc", [.constant(value), .constant(.integer(places))])
  }

  private mutating func expression(_ kind: Kind, depth: Int, parameters: [String]) -> PipelineExpression {
    let kind = random.chance(oneIn: 14) ? random.pick(Array(Kind.allCases.prefix(12))) : kind
    if Self.isName(kind) { return .constant(value(kind)) }
    if !parameters.isEmpty, random.chance(oneIn: 3) { return .variable(random.pick(parameters)) }
    if depth == 0 || random.chance(oneIn: 5) {
      if random.chance(oneIn: 2) { return .constant(value(kind)) }
      if random.chance(oneIn: 10) {
        return .field(FieldPath(segments: ["nested", random.pick(["any", "number", "none"])]))
      }
      return .field(FieldPath(field: "\(kind)"))
    }
    if random.chance(oneIn: 12), kind == .any || kind == .array { return lambda(depth: depth, parameters: parameters) }
    let fitting = Self.functions.filter { kind == .any || $0.result == kind || $0.result == .any }
    guard !fitting.isEmpty else { return .constant(value(kind)) }
    let function = random.pick(fitting)
    var kinds = function.arguments
    for _ in 0..<Int.random(in: 0...function.more, using: &random) { kinds.append(kinds[kinds.count - 1]) }
    return .call(function.name, kinds.map { expression($0, depth: depth - 1, parameters: parameters) })
  }

  private mutating func lambda(depth: Int, parameters: [String]) -> PipelineExpression {
    let array = expression(.array, depth: depth - 1, parameters: parameters)
    let name = random.pick(["x", "y"])
    let isFilter = random.chance(oneIn: 2)
    let body = expression(isFilter ? .boolean : .any, depth: depth - 1, parameters: parameters + [name])
    return .call(isFilter ? "array_filter" : "array_transform", [array, .constant(.string(name)), body])
  }

  private static func isName(_ kind: Kind) -> Bool {
    switch kind {
    case .unit, .part, .zone, .type, .mode: true
    default: false
    }
  }

  private mutating func value(_ kind: Kind) -> Value {
    switch kind {
    case .any: return random.chance(oneIn: 6) ? .null : value(random.pick(Array(Kind.allCases.dropFirst().prefix(11))))
    case .boolean: return .boolean(random.chance(oneIn: 2))
    case .number: return random.chance(oneIn: 2) ? .integer(random.integer()) : .double(random.double())
    case .integer:
      return .integer(random.chance(oneIn: 3) ? random.integer() : Int64.random(in: -3...4, using: &random))
    case .string: return .string(text())
    case .text: return random.chance(oneIn: 3) ? .bytes(Array(text().utf8)) : .string(text())
    case .array:
      return .array(
        (0..<Int.random(in: 0...4, using: &random)).map { _ in random.chance(oneIn: 2) ? value(.number) : value(.any) })
    case .strings:
      return .array(
        (0..<Int.random(in: 0...3, using: &random)).map { _ in random.chance(oneIn: 5) ? .null : .string(text()) })
    case .map: return .map(MapValue((0..<Int.random(in: 0...3, using: &random)).map { _ in (text(), value(.number)) }))
    case .vector:
      return .vector(
        (0..<Int.random(in: 1...3, using: &random)).map { _ in Double(Int.random(in: -9...9, using: &random)) / 2 })
    case .reference:
      return .reference("projects/p/databases/(default)/documents/c/\(random.pick(["a", "b", "__id7__", "__id12__"]))")
    case .timestamp:
      return .timestamp(
        Timestamp(
          uncheckedMicroseconds: random.pick([0, -1, 1_500_000, 1_743_085_800_123_456, -62_135_596_800_000_000])))
    case .unit: return .string(random.pick(["microsecond", "millisecond", "second", "minute", "hour", "day"]))
    case .part: return .string(random.pick(Self.parts))
    case .zone:
      return .string(
        random.pick(["America/Los_Angeles", "Asia/Tokyo", "Europe/Berlin", "Australia/Sydney", "Asia/Kathmandu", "UTC"])
      )
    case .type: return .string(random.pick(["null", "int64", "number", "string", "map", "vector", "array", "boolean"]))
    case .mode: return .string(random.pick(["first", "last"]))
    }
  }

  private mutating func text() -> String {
    random.pick([
      "", "a", "b", "ab", "aab", "ba", "%", "a_", "\\%", "a%b", ",", "a,b", " a ", "\u{E9}", "\u{1F600}a", "A\u{DF}",
      "\u{E9}\u{E9}",
    ])
  }
}
