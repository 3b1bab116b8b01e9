/// What an update does to a field: a value for it, or something that the server does with what is there.
///
///     try await hearth.document("users/ann").update([
///       "address.city": "Oslo",
///       "visits": .increment(1),
///       "tags": .arrayUnion(["new"]),
///       "seen": .serverTimestamp,
///       "draft": .delete,
///     ])
public enum FieldValue: Sendable, Hashable {
  /// The field becomes this.
  case value(Value)
  /// The field goes.
  case delete
  /// The field becomes the time at which the server writes.
  case serverTimestamp
  /// A number is added; a field that is no number becomes it.
  case increment(Value)
  /// The field becomes the larger of what it is and this number.
  case maximum(Value)
  /// The field becomes the smaller of what it is and this number.
  case minimum(Value)
  /// Elements are appended that the array does not have.
  case arrayUnion([Value])
  /// Elements go from the array, wherever they occur.
  case arrayRemove([Value])

  /// The transform as the API has it; `nil` for what is none.
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
  /// Null.
  public init(nilLiteral: ()) { self = .value(.null) }
  /// True or false.
  public init(booleanLiteral value: Bool) { self = .value(.boolean(value)) }
  /// A whole number.
  public init(integerLiteral value: Int) { self = .value(.integer(value)) }
  /// A floating-point number.
  public init(floatLiteral value: Double) { self = .value(.double(value)) }
  /// A text.
  public init(stringLiteral value: String) { self = .value(.string(value)) }
  /// An array.
  public init(arrayLiteral elements: Value...) { self = .value(.array(elements)) }
  /// A map, which replaces the one that is there.
  public init(dictionaryLiteral elements: (String, Value)...) {
    self = .value(.map(Dictionary(elements) { _, later in later }))
  }
}
