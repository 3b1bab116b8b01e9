/// The functions of expressions. Accumulators are in ``AccumulatorFunction``.
///
/// Source: pipelines.md, section 4.
enum ExpressionFunction: UInt8, CaseIterable {
  // Arithmetic.
  case add, subtract, multiply, divide, mod, abs, ceil, floor, round, trunc, pow, sqrt, exp, ln, log10, log, rand
  // Comparison.
  case equal, notEqual, lessThan, lessThanOrEqual, greaterThan, greaterThanOrEqual, cmp
  // Logic.
  case and, or, xor, nor, not, conditional, switchOn, equalAny, notEqualAny, ifNull, coalesce
  case greatest, least
  // Absent and error.
  case exists, isAbsent, ifAbsent, isError, ifError, error, isNull, isNotNull, isNaN, isNotNaN
  // Strings and bytes.
  case charLength, byteLength, length, stringConcat, concat, toLower, toUpper, trim, ltrim, rtrim, reverse
  case stringReverse, substring, stringContains, startsWith, endsWith, stringIndexOf, stringRepeat
  case stringReplaceAll, stringReplaceOne, split, join, like, regexContains, regexMatch, regexFind, regexFindAll
  // Timestamps.
  case currentTimestamp, unixMicrosToTimestamp, unixMillisToTimestamp, unixSecondsToTimestamp
  case timestampToUnixMicros, timestampToUnixMillis, timestampToUnixSeconds
  case timestampAdd, timestampSubtract, timestampDiff, timestampTrunc, timestampExtract
  // Arrays.
  case array, arrayConcat, arrayContains, arrayContainsAll, arrayContainsAny, arrayLength, arrayReverse, arrayGet
  case arrayFirst, arrayLast, arrayFirstN, arrayLastN, arraySlice, arrayIndexOf, arrayIndexOfAll
  case arrayFilter, arrayTransform, maximum, minimum, maximumN, minimumN, sum
  // Maps.
  case map, mapGet, mapSet, mapRemove, mapMerge, mapKeys, mapValues, mapEntries, currentDocument
  // Types.
  case type, isType, storageSize
  // References.
  case documentID, collectionID, parent, referenceSlice
  // Vectors and geo points.
  case vectorLength, euclideanDistance, cosineDistance, dotProduct, manhattanDistance, geoDistance
  // Search.
  case score
  // Nested pipelines.
  case scalar

  /// The evaluation of the arguments.
  enum Mode {
    /// All arguments are evaluated. An error wins, then a wrong type. Otherwise null or absent gives null
    /// (pipelines.md, section 2, "Null propagation").
    case propagating
    /// All arguments are evaluated. The first error wins. The function receives null and absent.
    case eager
    /// The function evaluates its arguments itself.
    case lazy
  }

  /// The arguments that a function accepts.
  struct Signature {
    let mode: Mode
    let counts: ClosedRange<Int>
    /// The types of the arguments of a propagating function. The last one repeats.
    let types: [ValueTypes]

    init(_ mode: Mode, _ counts: ClosedRange<Int>, _ types: [ValueTypes] = [.any]) {
      self.mode = mode
      self.counts = counts
      self.types = types
    }

    /// A propagating function with one argument of each type.
    init(_ types: ValueTypes...) {
      self.init(.propagating, types.count...types.count, types)
    }
  }

  /// A count without an upper limit.
  private static let many = Int.max

  /// The arguments that the function accepts.
  var signature: Signature {
    switch self {
    case .add, .subtract, .multiply, .divide, .mod, .pow: Signature(.number, .number)
    case .abs, .ceil, .floor, .sqrt, .exp, .ln, .log10: Signature(.number)
    case .round, .trunc, .log: Signature(.propagating, 1...2, [.number])
    case .rand, .currentTimestamp, .currentDocument, .score: Signature(.lazy, 0...0)
    case .equal, .notEqual, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual, .cmp:
      Signature(.eager, 2...2)
    case .and, .or, .nor: Signature(.lazy, 1...Self.many)
    case .xor: Signature(.eager, 1...Self.many)
    case .not: Signature(.boolean)
    case .conditional: Signature(.lazy, 3...3)
    case .switchOn: Signature(.lazy, 2...Self.many)
    case .equalAny, .notEqualAny: Signature(.eager, 2...2)
    case .ifNull: Signature(.lazy, 2...Self.many)
    case .coalesce: Signature(.lazy, 1...Self.many)
    case .greatest, .least: Signature(.eager, 2...Self.many)
    case .exists, .isAbsent, .error, .isNull, .isNotNull, .isNaN, .isNotNaN: Signature(.eager, 1...1)
    case .ifAbsent, .ifError: Signature(.lazy, 2...2)
    case .isError: Signature(.lazy, 1...1)
    default: laterSignature
    }
  }

  /// The signatures of strings, timestamps, arrays, maps and all that follows.
  private var laterSignature: Signature {
    switch self {
    case .charLength: Signature(.string)
    case .byteLength, .toLower, .toUpper, .stringReverse: Signature(.text)
    case .length: Signature([.string, .bytes, .array, .map, .vector])
    case .stringConcat: Signature(.propagating, 0...Self.many, [.string])
    case .concat: Signature(.propagating, 1...Self.many, [[.string, .bytes, .array]])
    case .trim, .ltrim, .rtrim: Signature(.propagating, 1...2, [.text])
    case .reverse: Signature([.string, .bytes, .array])
    case .substring: Signature(.eager, 2...3)
    case .stringContains, .startsWith, .endsWith, .like, .regexContains, .regexMatch, .regexFind, .regexFindAll:
      Signature(.string, .string)
    case .stringIndexOf: Signature(.text, .text)
    case .stringRepeat: Signature(.text, .integer)
    case .stringReplaceAll, .stringReplaceOne: Signature(.text, .text, .text)
    case .split: Signature(.propagating, 1...2, [.text])
    case .join: Signature(.eager, 2...3)
    case .unixMicrosToTimestamp, .unixMillisToTimestamp, .unixSecondsToTimestamp: Signature(.integer)
    case .timestampToUnixMicros, .timestampToUnixMillis, .timestampToUnixSeconds: Signature(.timestamp)
    case .timestampAdd, .timestampSubtract, .timestampDiff: Signature(.eager, 3...3)
    case .timestampTrunc, .timestampExtract: Signature(.eager, 2...3)
    case .array: Signature(.eager, 0...Self.many)
    case .arrayConcat: Signature(.propagating, 1...Self.many, [.array])
    case .arrayContains, .arrayGet, .arrayFirstN, .arrayLastN, .arrayIndexOfAll, .maximumN, .minimumN:
      Signature(.eager, 2...2)
    case .arrayContainsAll, .arrayContainsAny: Signature(.array, .array)
    case .arrayLength, .arrayReverse, .arrayFirst, .arrayLast, .maximum, .minimum, .sum: Signature(.array)
    case .arraySlice, .arrayIndexOf: Signature(.eager, 2...3)
    case .arrayFilter: Signature(.lazy, 3...3)
    case .arrayTransform: Signature(.lazy, 3...4)
    case .map: Signature(.eager, 0...Self.many)
    case .mapGet: Signature(.eager, 2...2)
    case .mapSet: Signature(.eager, 3...Self.many)
    case .mapRemove: Signature(.propagating, 2...Self.many, [.map, .string])
    case .mapMerge: Signature(.propagating, 2...Self.many, [.map])
    case .mapKeys, .mapValues, .mapEntries: Signature(.map)
    case .type: Signature(.eager, 1...1)
    case .isType: Signature(.eager, 2...2)
    case .storageSize: Signature(.any)
    case .documentID, .collectionID, .parent: Signature(.reference)
    case .referenceSlice: Signature(.reference, .integer, .integer)
    case .vectorLength: Signature(.vector)
    case .euclideanDistance, .cosineDistance, .dotProduct, .manhattanDistance: Signature(.vector, .vector)
    case .geoDistance: Signature(.geoPoint, .geoPoint)
    case .scalar: Signature(.lazy, 1...1)
    default: Signature(.lazy, 0...Self.many)
    }
  }

  /// Whether all arguments must have the same type. Strings and bytes do not mix.
  var requiresOneType: Bool {
    switch self {
    case .concat, .trim, .ltrim, .rtrim, .stringIndexOf, .stringReplaceAll, .stringReplaceOne, .split: true
    default: false
    }
  }

  /// Whether two calls with the same constant arguments give the same result.
  var isPure: Bool {
    switch self {
    case .rand, .currentTimestamp, .currentDocument, .score, .scalar, .error, .arrayFilter, .arrayTransform: false
    default: true
    }
  }
}

extension ExpressionFunction {
  /// The name on the wire.
  var name: String {
    switch self {
    case .rand, .add, .subtract, .multiply, .divide, .mod, .abs, .ceil, .floor, .round, .trunc, .pow, .sqrt, .exp,
      .ln, .log10, .log, .equal, .cmp, .and, .or, .xor, .nor, .not, .conditional, .coalesce, .exists, .error,
      .length, .concat, .trim, .ltrim, .rtrim, .reverse, .substring, .split, .join, .like, .array, .maximum,
      .minimum, .sum, .map, .type, .parent, .score, .scalar:
      String(describing: self)
    case .greatest: "maximum"
    case .least: "minimum"
    case .isNaN: "is_nan"
    case .isNotNaN: "is_not_nan"
    case .documentID: "document_id"
    case .collectionID: "collection_id"
    default: Self.snakeCase(String(describing: self))
    }
  }

  private static func snakeCase(_ name: String) -> String {
    var words = ""
    for character in name {
      if character.isUppercase { words.append("_") }
      words += character.lowercased()
    }
    return words
  }

  /// The names that older clients and the documentation use (pipelines.md, section 4).
  private static let aliases: [(String, ExpressionFunction)] = [
    ("eq", .equal), ("neq", .notEqual), ("lt", .lessThan), ("lte", .lessThanOrEqual), ("gt", .greaterThan),
    ("gte", .greaterThanOrEqual), ("cond", .conditional), ("eq_any", .equalAny), ("not_eq_any", .notEqualAny),
    ("logical_max", .greatest), ("logical_min", .least), ("logical_maximum", .greatest),
    ("logical_minimum", .least), ("str_contains", .stringContains), ("str_concat", .stringConcat),
    ("to_lowercase", .toLower), ("to_uppercase", .toUpper), ("replace_first", .stringReplaceOne),
    ("replace_all", .stringReplaceAll), ("timestamp_sub", .timestampSubtract), ("offset", .arrayGet),
    ("get_field", .mapGet), ("current_context", .currentDocument),
  ]

  /// The functions by all their names.
  private static let byName: [String: ExpressionFunction] = {
    var table: [String: ExpressionFunction] = [:]
    for function in allCases where function != .greatest && function != .least { table[function.name] = function }
    for (name, function) in aliases { table[name] = function }
    return table
  }()

  /// The function of a call, or `nil` if it is unknown. `maximum` and `minimum` of one argument are functions of an
  /// array, of several arguments functions of these.
  static func named(_ name: String, argumentCount: Int) -> ExpressionFunction? {
    switch (name, argumentCount) {
    case ("maximum", 2...): .greatest
    case ("minimum", 2...): .least
    case ("logical_max", 1), ("logical_maximum", 1): .greatest
    default: byName[name]
    }
  }
}
