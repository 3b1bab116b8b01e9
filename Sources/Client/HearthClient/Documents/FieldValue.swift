/// The change of a field in an update: a new value, or a transform that the server applies.
///
///     try await hearth.document("users/ann").update([
///       "address.city": "Oslo",
///       "visits": .increment(1),
///       "tags": .arrayUnion(["new"]),
///       "seen": .serverTimestamp,
///       "draft": .delete,
///     ])
public enum FieldValue: Sendable, Hashable {
  /// Sets the field to a value.
  case value(Value)
  /// Removes the field.
  case delete
  /// Sets the field to the time of the write on the server.
  case serverTimestamp
  /// Adds a number to the field. A field that is not a number is set to it.
  case increment(Value)
  /// Sets the field to the greater of its value and this number.
  case maximum(Value)
  /// Sets the field to the lesser of its value and this number.
  case minimum(Value)
  /// Appends the elements that the array does not contain.
  case arrayUnion([Value])
  /// Removes all occurrences of the elements from the array.
  case arrayRemove([Value])

  /// The transform in the JSON format of the API, or `nil` if the change is not a transform.
  var transform: JSON? {
    switch self {
    case .value, .delete: nil
    case .serverTimestamp: .of(["setToServerValue": .string("REQUEST_TIME")])
    case .increment(let number): .of(["increment": number.json])
    case .maximum(let number): .of(["maximum": number.json])
    case .minimum(let number): .of(["minimum": number.json])
    case .arrayUnion(let elements): .of(["appendMissingElements": .of(["values": .array(elements.map(\.json))])])
    case .arrayRemove(let elements): .of(["removeAllFromArray": .of(["values": .array(elements.map(\.json))])])
    }
  }
}

extension FieldValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Sets the field to null.
  public init(nilLiteral: ()) { self = .value(.null) }
  /// Sets the field to a boolean.
  public init(booleanLiteral value: Bool) { self = .value(.boolean(value)) }
  /// Sets the field to an integer.
  public init(integerLiteral value: Int) { self = .value(.integer(value)) }
  /// Sets the field to a floating-point number.
  public init(floatLiteral value: Double) { self = .value(.double(value)) }
  /// Sets the field to a string.
  public init(stringLiteral value: String) { self = .value(.string(value)) }
  /// Sets the field to an array.
  public init(arrayLiteral elements: Value...) { self = .value(.array(elements)) }
  /// Sets the field to a map, which replaces the existing one.
  public init(dictionaryLiteral elements: (String, Value)...) {
    self = .value(.map(Dictionary(elements) { _, later in later }))
  }
}
