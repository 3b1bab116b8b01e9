/// The types that documents of an enterprise database share with BSON: each is a map of one reserved key.
///
/// Source: firestore-api.md, section 2.2.
package enum BSONType: String, CaseIterable, Sendable {
  /// Below every value but null; holds null.
  case minKey = "__min__"
  /// Above every value; holds null.
  case maxKey = "__max__"
  /// Holds a string of 24 hexadecimal digits.
  case objectID = "__oid__"
  /// Holds an integer of 32 bits; a number among numbers.
  case int32 = "__int__"
  /// Holds the text of a decimal; a number among numbers.
  case decimal128 = "__decimal128__"
  /// Holds bytes, the first of which is the subtype.
  case binary = "__binary__"
  /// Holds a map of `seconds` and `increment`.
  case timestamp = "__request_timestamp__"
  /// Holds a map of `pattern` and `options`.
  case regex = "__regex__"

  /// The key of a timestamp's seconds.
  package static let secondsKey = "seconds"
  /// The key of what tells timestamps of one second apart.
  package static let incrementKey = "increment"
  /// The key of a regex's pattern.
  package static let patternKey = "pattern"
  /// The key of a regex's options.
  package static let optionsKey = "options"

  /// The type whose key has these bytes, or `nil`.
  package init?<Bytes: Collection<UInt8>>(key: Bytes) {
    guard let type = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(key) }) else { return nil }
    self = type
  }

  /// The bracket that values of this type sort in; a decimal that is no number sorts with NaN.
  package var bracket: TypeBracket {
    switch self {
    case .minKey: .minKey
    case .maxKey: .maxKey
    case .objectID: .objectID
    case .int32, .decimal128: .number
    case .binary: .binary
    case .timestamp: .bsonTimestamp
    case .regex: .regex
    }
  }

  /// The number that a decimal's text stands for, as the nearest integer or double: what it is compared as.
  package static func number<Bytes: Collection<UInt8>>(decimal text: Bytes) -> Value {
    let text = String(decoding: text, as: UTF8.self)
    if let integer = Int64(text) { return .integer(integer) }
    return .double(Double(text) ?? .nan)
  }
}

extension MapValue {
  /// The type and the content when this map stands for a BSON value, else `nil`.
  package var bson: (type: BSONType, content: Value)? {
    guard entries.count == 1, let entry = entries.first, let type = BSONType(key: entry.key.utf8) else { return nil }
    return (type, entry.value)
  }

  /// Whether this map stands for a value of another type, so that field paths do not lead into it.
  package var isOpaque: Bool { vectorComponents != nil || bson != nil }
}
