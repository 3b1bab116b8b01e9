package import DocumentModel
package import WireFormat

/// A value during the evaluation of an expression. It is trivial and owns nothing.
///
/// Its pointers refer to the row, the program's constants or the evaluator's arena. They are valid until the evaluator
/// begins the next row. Arrays and maps have two forms: canonical bytes, read in place, and computed items.
package enum ExpressionValue {
  /// The evaluation failed (pipelines.md, section 2).
  case error(ExpressionFault)
  /// The result of a missing field or map key, and of an index out of range.
  case absent
  case null
  case boolean(Bool)
  case integer(Int64)
  case double(Double)
  case timestamp(Timestamp)
  /// UTF-8.
  case string(UnsafeRawBufferPointer)
  case bytes(UnsafeRawBufferPointer)
  /// A full resource name.
  case reference(UnsafeRawBufferPointer)
  case geoPoint(GeoPoint)
  case array(UnsafeBufferPointer<ExpressionValue>)
  /// The content of an ArrayValue message.
  case encodedArray(UnsafeRawBufferPointer)
  /// Entries whose keys ascend by their UTF-8 bytes, without repeats.
  case map(UnsafeBufferPointer<ExpressionEntry>)
  /// The content of a MapValue message that represents neither a vector nor a BSON value.
  case encodedMap(UnsafeRawBufferPointer)
  /// The content of the MapValue message of a vector.
  case vector(UnsafeRawBufferPointer)
  /// The content of the MapValue message of a BSON value.
  case bson(UnsafeRawBufferPointer)

  /// Reads a value in place. Cost: a tag and a scalar, but not the content of arrays and maps. Damaged bytes are an
  /// error value.
  package init(_ value: EncodedValue) {
    do throws(WireError) {
      self = try Self.decoded(value)
    } catch {
      self = .error(ExpressionFault(.damaged))
    }
  }

  @inline(__always)
  private static func decoded(_ value: EncodedValue) throws(WireError) -> ExpressionValue {
    switch try value.content {
    case .null: return .null
    case .boolean(let flag): return .boolean(flag)
    case .integer(let number): return .integer(number)
    case .double(let number): return .double(number)
    case .timestamp(let time): return .timestamp(time)
    case .string(let text): return .string(text)
    case .bytes(let bytes): return .bytes(bytes)
    case .reference(let name): return .reference(name)
    case .geoPoint(let point): return .geoPoint(point)
    case .array(let array): return .encodedArray(array.bytes)
    case .map(let map):
      if try map.isVector { return .vector(map.bytes) }
      return try map.bson == nil ? .encodedMap(map.bytes) : .bson(map.bytes)
    }
  }

  /// Whether this is an error.
  @inline(__always)
  package var isError: Bool {
    if case .error = self { true } else { false }
  }

  /// Whether this is `true`, the only value that keeps a row in `where`.
  @inline(__always)
  package var isTrue: Bool {
    if case .boolean(true) = self { true } else { false }
  }

  /// Whether this is null or absent.
  @inline(__always)
  package var isNothing: Bool {
    switch self {
    case .null, .absent: true
    default: false
    }
  }
}

/// An entry of a map that an expression computed.
package struct ExpressionEntry {
  package let key: UnsafeRawBufferPointer
  package var value: ExpressionValue
}

/// A set of types, for checks of arguments.
struct ValueTypes: OptionSet, Sendable {
  let rawValue: UInt16

  static let boolean = ValueTypes(rawValue: 1)
  static let integer = ValueTypes(rawValue: 2)
  static let double = ValueTypes(rawValue: 4)
  static let timestamp = ValueTypes(rawValue: 8)
  static let string = ValueTypes(rawValue: 16)
  static let bytes = ValueTypes(rawValue: 32)
  static let reference = ValueTypes(rawValue: 64)
  static let geoPoint = ValueTypes(rawValue: 128)
  static let array = ValueTypes(rawValue: 256)
  static let map = ValueTypes(rawValue: 512)
  static let vector = ValueTypes(rawValue: 1024)
  /// BSON values other than numbers.
  static let other = ValueTypes(rawValue: 2048)
  static let null = ValueTypes(rawValue: 4096)
  static let absent = ValueTypes(rawValue: 8192)
  static let error = ValueTypes(rawValue: 16384)

  static let number: ValueTypes = [.integer, .double]
  static let text: ValueTypes = [.string, .bytes]
  static let nothing: ValueTypes = [.null, .absent]
  static let any: ValueTypes = [
    .boolean, .integer, .double, .timestamp, .string, .bytes, .reference, .geoPoint, .array, .map, .vector, .other,
  ]

  /// The names of the types, for messages.
  var text: String {
    let names: [(ValueTypes, String)] = [
      (.boolean, "a boolean"), (.integer, "an integer"), (.double, "a double"), (.timestamp, "a timestamp"),
      (.string, "a string"), (.bytes, "bytes"), (.reference, "a reference"), (.geoPoint, "a geo point"),
      (.array, "an array"), (.map, "a map"), (.vector, "a vector"), (.other, "a BSON value"), (.null, "null"),
      (.absent, "absent"),
    ]
    var rest = self
    var words: [String] = []
    if rest.isSuperset(of: .number) {
      words.append("a number")
      rest.subtract(.number)
    }
    words += names.filter { rest.contains($0.0) }.map(\.1)
    return words.joined(separator: " or ")
  }
}

extension ExpressionValue {
  /// The type of the value, as a set of one.
  @inline(__always)
  var types: ValueTypes {
    switch self {
    case .error: .error
    case .absent: .absent
    case .null: .null
    case .boolean: .boolean
    case .integer: .integer
    case .double: .double
    case .timestamp: .timestamp
    case .string: .string
    case .bytes: .bytes
    case .reference: .reference
    case .geoPoint: .geoPoint
    case .array, .encodedArray: .array
    case .map, .encodedMap: .map
    case .vector: .vector
    case .bson: .other
    }
  }

  /// The ordinary number that a BSON number is compared and computed as, otherwise the value itself.
  var ordinary: ExpressionValue {
    guard case .bson(let bytes) = self else { return self }
    do throws(WireError) {
      guard let (type, content) = try EncodedMap(mapValue: bytes).bson else { return self }
      switch (type, try content.content) {
      case (.int32, .integer(let number)): return .integer(number)
      case (.decimal128, .string(let text)):
        switch BSONType.number(decimal: text) {
        case .integer(let number): return .double(Double(number))
        case .double(let number): return .double(number)
        default: return self
        }
      default: return self
      }
    } catch {
      return .error(ExpressionFault(.damaged))
    }
  }
}
