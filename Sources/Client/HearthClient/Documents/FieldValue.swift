/// The change of a field in a write: a new value, or a transform that the server applies.
///
///     try await hearth.document("users/ann").update([
///       "address.city": city,
///       "visits": .increment(1),
///       "tags": .arrayUnion(["new"]),
///       "seen": .serverTimestamp,
///       "draft": .delete,
///     ])
public struct FieldValue: Sendable, Hashable {
  enum Change: Sendable, Hashable {
    case set(Value)
    case delete
    case serverTimestamp
    case increment(Value)
    case maximum(Value)
    case minimum(Value)
    case arrayUnion([Value])
    case arrayRemove([Value])
  }

  let change: Change

  init(_ change: Change) { self.change = change }

  /// The transform in the JSON format of the API, or `nil` if the change is not a transform.
  var transform: JSON? {
    switch change {
    case .set, .delete: nil
    case .serverTimestamp: .of(["setToServerValue": .string("REQUEST_TIME")])
    case .increment(let number): .of(["increment": number.json])
    case .maximum(let number): .of(["maximum": number.json])
    case .minimum(let number): .of(["minimum": number.json])
    case .arrayUnion(let elements): .of(["appendMissingElements": .of(["values": .array(elements.map(\.json))])])
    case .arrayRemove(let elements): .of(["removeAllFromArray": .of(["values": .array(elements.map(\.json))])])
    }
  }
}

// In an extension of the protocol, because a dictionary whose values have different types finds `.delete` only there.
extension FieldValueConvertible where Self == FieldValue {
  /// Removes the field.
  public static var delete: FieldValue { FieldValue(.delete) }

  /// Sets the field to the time of the write on the server.
  public static var serverTimestamp: FieldValue { FieldValue(.serverTimestamp) }

  /// Adds a number to the field. A field that is not a number is set to it.
  public static func increment(_ number: some ValueConvertible & Numeric) -> FieldValue {
    FieldValue(.increment(number.documentValue))
  }

  /// Sets the field to the greater of its value and this number.
  public static func maximum(_ number: some ValueConvertible & Numeric) -> FieldValue {
    FieldValue(.maximum(number.documentValue))
  }

  /// Sets the field to the lesser of its value and this number.
  public static func minimum(_ number: some ValueConvertible & Numeric) -> FieldValue {
    FieldValue(.minimum(number.documentValue))
  }

  /// Appends the elements that the array does not contain.
  public static func arrayUnion(_ elements: [Value]) -> FieldValue { FieldValue(.arrayUnion(elements)) }

  /// Appends the elements that the array does not contain.
  public static func arrayUnion(_ elements: [(any ValueConvertible)?]) -> FieldValue {
    FieldValue(.arrayUnion(elements.values))
  }

  /// Removes all occurrences of the elements from the array.
  public static func arrayRemove(_ elements: [Value]) -> FieldValue { FieldValue(.arrayRemove(elements)) }

  /// Removes all occurrences of the elements from the array.
  public static func arrayRemove(_ elements: [(any ValueConvertible)?]) -> FieldValue {
    FieldValue(.arrayRemove(elements.values))
  }

  /// Sets the field to a map, which replaces the existing one. Use this form if the values of a nested map include
  /// variables of different types.
  public static func map(_ fields: [String: (any ValueConvertible)?]) -> FieldValue {
    FieldValue(.set(.map(fields.mapValues { $0?.documentValue ?? .null })))
  }

  /// Sets the field to an array, which replaces the existing one. Use this form if the elements of a nested array
  /// include variables of different types.
  public static func array(_ elements: [(any ValueConvertible)?]) -> FieldValue {
    FieldValue(.set(.array(elements.values)))
  }
}

extension [(any ValueConvertible)?] {
  /// The values, with null for `nil`.
  var values: [Value] { map { $0?.documentValue ?? .null } }
}

extension FieldValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  /// Sets the field to null.
  public init(nilLiteral: ()) { self.init(.set(.null)) }
  /// Sets the field to a boolean.
  public init(booleanLiteral value: Bool) { self.init(.set(.boolean(value))) }
  /// Sets the field to an integer.
  public init(integerLiteral value: Int) { self.init(.set(.integer(value))) }
  /// Sets the field to a floating-point number.
  public init(floatLiteral value: Double) { self.init(.set(.double(value))) }
  /// Sets the field to a string.
  public init(stringLiteral value: String) { self.init(.set(.string(value))) }
  /// Sets the field to an array.
  public init(arrayLiteral elements: Value...) { self.init(.set(.array(elements))) }
  /// Sets the field to a map, which replaces the existing one.
  public init(dictionaryLiteral elements: (String, Value)...) {
    self.init(.set(.map(Dictionary(elements) { _, later in later })))
  }
}
