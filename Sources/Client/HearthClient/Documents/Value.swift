public import Foundation

/// A field of a document, whatever it holds.
///
///     let fields: [String: Value] = ["name": "Ann", "age": 41, "tags": ["a", "b"], "left": nil]
///
/// Swift compares texts by what they look like, Firestore by their bytes: two names of one map that differ only in how
/// an accent is composed are one here, and the later of the two is seen.
public enum Value: Sendable, Hashable {
  /// Null, which is something else than no field.
  case null
  /// True or false.
  case boolean(Bool)
  /// A whole number of 64 bits.
  case integer(Int)
  /// A floating-point number.
  case double(Double)
  /// A moment, in microseconds.
  case timestamp(Timestamp)
  /// A text.
  case string(String)
  /// Bytes.
  case bytes(Data)
  /// The name of a document.
  case reference(DocumentReference)
  /// A place on Earth.
  case geoPoint(GeoPoint)
  /// A vector, for queries of the nearest.
  case vector(VectorValue)
  /// Values in order; none of them is an array itself.
  case array([Value])
  /// Values by name.
  case map([String: Value])

  /// Encodes anything that is `Encodable`.
  ///
  ///     try await hearth.document("users/ann").update(["address": .value(try Value(encoding: address))])
  /// - Throws: `EncodingError` for numbers beyond 64 bits, and what the type's own encoding throws.
  public init(encoding value: some Encodable) throws {
    self = try DocumentEncoder().encode(value).value
  }

  /// Decodes a type from the value.
  /// - Throws: `DecodingError` where the value is not what the type wants.
  public func decoded<T: Decodable>(as type: T.Type) throws -> T {
    try DocumentDecoder(reference: nil).decode(type, from: self)
  }
}

/// A place on Earth, in degrees.
public struct GeoPoint: Sendable, Hashable, Codable {
  /// From -90 to 90.
  public var latitude: Double
  /// From -180 to 180.
  public var longitude: Double

  /// Makes a place.
  public init(latitude: Double, longitude: Double) {
    self.latitude = latitude
    self.longitude = longitude
  }
}

/// A vector, which ``Queryable/findNearest(_:to:limit:measure:)`` compares. Up to 2,048 dimensions.
public struct VectorValue: Sendable, Hashable, Codable, ExpressibleByArrayLiteral {
  /// The components.
  public var components: [Double]

  /// Makes a vector.
  public init(_ components: [Double]) { self.components = components }

  /// Makes a vector of a literal.
  public init(arrayLiteral elements: Double...) { components = elements }
}

// MARK: - Literals

extension Value: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// ``Value/null``.
  public init(nilLiteral: ()) { self = .null }
  /// ``Value/boolean(_:)``.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }
  /// ``Value/integer(_:)``.
  public init(integerLiteral value: Int) { self = .integer(value) }
  /// ``Value/double(_:)``.
  public init(floatLiteral value: Double) { self = .double(value) }
  /// ``Value/string(_:)``.
  public init(stringLiteral value: String) { self = .string(value) }
  /// ``Value/array(_:)``.
  public init(arrayLiteral elements: Value...) { self = .array(elements) }
  /// ``Value/map(_:)``; of a name that comes twice, the later counts.
  public init(dictionaryLiteral elements: (String, Value)...) {
    self = .map(Dictionary(elements) { _, later in later })
  }
}

// MARK: - With other coders

extension Value: Codable {
  /// Reads a value of a document, or what JSON and its like can tell apart.
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

  /// Writes a value of a document, or to other encoders what it holds.
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
