import Foundation

// Values in the JSON format of the API: `{"integerValue": "1"}`.
extension Value {
  /// The JSON of the value.
  var json: JSON {
    switch self {
    case .null: .of(["nullValue": .null])
    case .boolean(let flag): .of(["booleanValue": .boolean(flag)])
    case .integer(let number): .of(["integerValue": .string(String(number))])
    case .double(let number): .of(["doubleValue": Self.json(number)])
    case .timestamp(let timestamp): .of(["timestampValue": .string(timestamp.description)])
    case .string(let text): .of(["stringValue": .string(text)])
    case .bytes(let data): .of(["bytesValue": .string(data.base64EncodedString())])
    case .reference(let reference): .of(["referenceValue": .string(reference.name)])
    case .geoPoint(let point):
      .of(["geoPointValue": .of(["latitude": Self.json(point.latitude), "longitude": Self.json(point.longitude)])])
    case .vector(let vector):
      .of([
        "mapValue": .of([
          "fields": .of([
            "__type__": .of(["stringValue": .string("__vector__")]),
            "value": Value.array(vector.components.map { .double($0) }).json,
          ])
        ])
      ])
    case .array(let elements): .of(["arrayValue": .of(["values": .array(elements.map(\.json))])])
    case .map(let fields): .of(["mapValue": .of(["fields": Self.json(fields)])])
    }
  }

  /// Returns the JSON of the fields of a document or map.
  static func json(_ fields: [String: Value]) -> JSON {
    .object(fields.map { JSON.Member($0.key, $0.value.json) })
  }

  private static func json(_ number: Double) -> JSON {
    if number.isNaN { return .string("NaN") }
    if number.isInfinite { return .string(number > 0 ? "Infinity" : "-Infinity") }
    return .number("\(number)")
  }

  /// Parses the JSON of a value.
  /// - Throws: ``HearthClientError`` if the JSON is not a value.
  init(json: JSON, in client: Hearth) throws {
    guard let member = json.members.first else { throw HearthClientError.unreadable("a value has no type") }
    let content = member.value
    switch member.name {
    case "nullValue": self = .null
    case "booleanValue": self = .boolean(content.flag ?? false)
    case "integerValue":
      guard let number = content.integer else { throw Self.fault(member) }
      self = .integer(number)
    case "doubleValue": self = .double(try Self.double(content, member))
    case "timestampValue":
      guard let timestamp = content.text.flatMap(Timestamp.init(text:)) else { throw Self.fault(member) }
      self = .timestamp(timestamp)
    case "stringValue":
      guard let text = content.text else { throw Self.fault(member) }
      self = .string(text)
    case "bytesValue":
      guard let data = content.text.flatMap({ Data(base64Encoded: $0) }) else { throw Self.fault(member) }
      self = .bytes(data)
    case "referenceValue":
      guard let reference = content.text.flatMap({ DocumentReference(name: $0, client) }) else {
        throw Self.fault(member)
      }
      self = .reference(reference)
    case "geoPointValue":
      self = .geoPoint(
        GeoPoint(
          latitude: try content["latitude"].map { try Self.double($0, member) } ?? 0,
          longitude: try content["longitude"].map { try Self.double($0, member) } ?? 0))
    case "arrayValue": self = .array(try (content["values"]?.elements ?? []).map { try Value(json: $0, in: client) })
    case "mapValue":
      let fields = try Self.fields(content["fields"], in: client)
      self = Self.vector(fields).map { .vector($0) } ?? .map(fields)
    default: throw HearthClientError.unreadable("unknown value type \(member.name)")
    }
  }

  /// Parses the fields of a document or map.
  /// - Throws: ``HearthClientError`` if a field is not a value.
  static func fields(_ json: JSON?, in client: Hearth) throws -> [String: Value] {
    var fields: [String: Value] = [:]
    for member in json?.members ?? [] { fields[member.name] = try Value(json: member.value, in: client) }
    return fields
  }

  private static func double(_ json: JSON, _ member: JSON.Member) throws -> Double {
    switch json {
    case .number(let text):
      if let number = Double(text) { return number }
    case .string("NaN"): return .nan
    case .string("Infinity"): return .infinity
    case .string("-Infinity"): return -.infinity
    default: break
    }
    throw fault(member)
  }

  private static func vector(_ fields: [String: Value]) -> VectorValue? {
    guard fields.count == 2, fields["__type__"] == .string("__vector__"), case .array(let elements)? = fields["value"]
    else { return nil }
    var components: [Double] = []
    for element in elements {
      switch element {
      case .double(let number): components.append(number)
      case .integer(let number): components.append(Double(number))
      default: return nil
      }
    }
    return VectorValue(components)
  }

  private static func fault(_ member: JSON.Member) -> HearthClientError { .unreadable("invalid \(member.name)") }
}
