/// A BSON type that an enterprise database can store. On the wire each is a map with one reserved key, the raw
/// value.
///
/// Source: firestore-api.md, section 2.2.
package enum BSONType: String, CaseIterable, Sendable {
  /// Sorts before every value except null. The content is null.
  case minKey = "__min__"
  /// Sorts after every value. The content is null.
  case maxKey = "__max__"
  /// The content is a string of 24 hexadecimal digits.
  case objectID = "__oid__"
  /// The content is a 32-bit integer. Sorts among the other numbers.
  case int32 = "__int__"
  /// The content is the decimal as text. Sorts among the other numbers.
  case decimal128 = "__decimal128__"
  /// The content is bytes. The first byte is the subtype.
  case binary = "__binary__"
  /// The content is a map of `seconds` and `increment`.
  case timestamp = "__request_timestamp__"
  /// The content is a map of `pattern` and `options`.
  case regex = "__regex__"

  /// The key of a timestamp's seconds.
  package static let secondsKey = "seconds"
  /// The key of a timestamp's increment, which distinguishes timestamps of the same second.
  package static let incrementKey = "increment"
  /// The key of a regex's pattern.
  package static let patternKey = "pattern"
  /// The key of a regex's options.
  package static let optionsKey = "options"

  /// Returns the type whose key has these bytes, or `nil` for any other key.
  package init?<Bytes: Collection<UInt8>>(key: Bytes) {
    guard let type = Self.allCases.first(where: { $0.rawValue.utf8.elementsEqual(key) }) else { return nil }
    self = type
  }

  /// The bracket that values of this type sort in.
  ///
  /// A decimal whose text is NaN or not a number sorts in ``TypeBracket/nan`` instead: see ``Value/bracket``.
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

  /// Returns the number that a decimal is compared as: the nearest integer or double, or NaN if the text is not a
  /// number.
  package static func number<Bytes: Collection<UInt8>>(decimal text: Bytes) -> Value {
    let text = String(decoding: text, as: UTF8.self)
    if let integer = Int64(text) { return .integer(integer) }
    return .double(Double(text) ?? .nan)
  }
}

extension MapValue {
  /// The type and content if this map represents a BSON value, else `nil`.
  package var bson: (type: BSONType, content: Value)? {
    guard entries.count == 1, let entry = entries.first, let type = BSONType(key: entry.key.utf8) else { return nil }
    return (type, entry.value)
  }

  /// Whether this map represents a vector or a BSON value. Field paths do not lead into such a map.
  package var isOpaque: Bool { vectorComponents != nil || bson != nil }
}
