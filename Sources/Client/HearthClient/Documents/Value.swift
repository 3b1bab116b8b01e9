public import Foundation

/// The value of a field.
///
///     let fields: [String: Value] = ["name": "Ann", "age": 41, "tags": ["a", "b"], "left": nil]
///
/// Swift compares strings by canonical equivalence, Firestore by bytes. If two names in one map differ only in how
/// an accent is composed, Swift treats them as equal, and the map contains only the later one.
public enum Value: Sendable, Hashable {
  /// Null. A null field differs from a missing one.
  case null
  /// True or false.
  case boolean(Bool)
  /// A 64-bit integer.
  case integer(Int)
  /// A floating-point number.
  case double(Double)
  /// A time with microsecond precision.
  case timestamp(Timestamp)
  /// A string.
  case string(String)
  /// Bytes.
  case bytes(Data)
  /// A reference to a document.
  case reference(DocumentReference)
  /// A place on Earth.
  case geoPoint(GeoPoint)
  /// A vector, for nearest-neighbor queries.
  case vector(VectorValue)
  /// Values in order. An array cannot directly contain an array.
  case array([Value])
  /// Values by name.
  case map([String: Value])

  /// Encodes a value of any `Encodable` type.
  ///
  ///     try await hearth.document("users/ann").update(["address": Value(encoding: address)])
  /// - Throws: `EncodingError` if a number does not fit in 64 bits, or the error of the type's own encoding.
  public init(encoding value: some Encodable) throws {
    self = try DocumentEncoder().encode(value).value
  }

  /// Decodes the value as a type.
  /// - Throws: `DecodingError` if the value does not match the type.
  public func decoded<T: Decodable>(as type: T.Type) throws -> T {
    try DocumentDecoder(reference: nil).decode(type, from: self)
  }
}

/// A location on Earth, in degrees.
public struct GeoPoint: Sendable, Hashable, Codable {
  /// The latitude, from -90 to 90.
  public var latitude: Double
  /// The longitude, from -180 to 180.
  public var longitude: Double

  public init(latitude: Double, longitude: Double) {
    self.latitude = latitude
    self.longitude = longitude
  }
}

/// A vector with up to 2,048 dimensions, for ``Queryable/findNearest(_:to:limit:measure:distanceField:)``.
public struct VectorValue: Sendable, Hashable, Codable, ExpressibleByArrayLiteral {
  public var components: [Double]

  public init(_ components: [Double]) { self.components = components }

  /// Creates a vector from a literal.
  public init(arrayLiteral elements: Double...) { components = elements }
}

// MARK: - Literals

extension Value: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Creates ``Value/null``.
  public init(nilLiteral: ()) { self = .null }
  /// Creates ``Value/boolean(_:)``.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  /// Creates ``Value/integer(_:)``.
  public init(integerLiteral value: Int) { self = .integer(value) }
  /// Creates ``Value/double(_:)``.
  public init(floatLiteral value: Double) { self = .double(value) }
  /// Creates ``Value/string(_:)``.
  public init(stringLiteral value: String) { self = .string(value) }
  /// Creates ``Value/array(_:)``.
  public init(arrayLiteral elements: Value...) { self = .array(elements) }
  /// Creates ``Value/map(_:)``. If a name occurs twice, the last value is kept.
  public init(dictionaryLiteral elements: (String, Value)...) {
    self = .map(Dictionary(elements) { _, later in later })
  }
}

// MARK: - Other coders

extension Value: Codable {
  /// Decodes a value of a document. With other decoders, decodes the types that JSON distinguishes.
  /// - Throws: `DecodingError` if the value has none of these types.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let flag = try? container.decode(Bool.self) {
      self = .boolean(flag)
    } else if let number = try? container.decode(Int.self) {
      self = .integer(number)
    } else if let number = try? container.decode(Double.self) {
      self = .double(number)
    } else if let text = try? container.decode(String.self) {
      self = .string(text)
    } else if let elements = try? container.decode([Value].self) {
      self = .array(elements)
    } else {
      self = .map(try container.decode([String: Value].self))
    }
  }

  /// Encodes a value of a document. With other encoders, encodes the content of the value.
  /// - Throws: The error of the encoder.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .boolean(let flag): try container.encode(flag)
    case .integer(let number): try container.encode(number)
    case .double(let number): try container.encode(number)
    case .timestamp(let timestamp): try container.encode(timestamp)
    case .string(let text): try container.encode(text)
    case .bytes(let data): try container.encode(data)
    case .reference(let reference): try container.encode(reference)
    case .geoPoint(let point): try container.encode(point)
    case .vector(let vector): try container.encode(vector)
    case .array(let elements): try container.encode(elements)
    case .map(let fields): try container.encode(fields)
    }
  }
}
