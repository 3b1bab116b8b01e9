public import Foundation

/// A type whose values can be the value of a field: in a condition, as a bound of a query, and in the dictionaries of
/// writes.
///
///     let owner = "ann"
///     try await hearth.collection("todos").where("owner", .equal, owner).get()
///     try await hearth.document("todos/milk").update(["owner": owner, "asked": .increment(1)])
///
/// An enumeration with raw values needs only the declaration:
///
///     enum Role: String, Codable, ValueConvertible { case member, editor }
///
/// `UInt` and `UInt64` do not conform, because Firestore's integers are signed. Convert them to `Int`. For any other
/// `Encodable` type, use ``Value/init(encoding:)``.
public protocol ValueConvertible: FieldValueConvertible {
  /// The value that is stored.
  var documentValue: Value { get }
}

/// A ``ValueConvertible`` or a ``FieldValue``. The dictionary of a write can assign it to a field.
public protocol FieldValueConvertible: Sendable {
  /// The change of the field.
  var fieldValue: FieldValue { get }
}

extension ValueConvertible {
  /// Sets the field to the value.
  public var fieldValue: FieldValue { FieldValue(.set(documentValue)) }
}

extension ValueConvertible where Self: RawRepresentable, RawValue: ValueConvertible {
  /// The value of ``RawRepresentable/rawValue``.
  public var documentValue: Value { rawValue.documentValue }
}

extension FieldValue: FieldValueConvertible {
  /// The change itself.
  public var fieldValue: FieldValue { self }
}

extension Value: ValueConvertible {
  /// The value itself.
  public var documentValue: Value { self }
}

// MARK: - Types of the standard library

extension Bool: ValueConvertible {
  /// A boolean.
  public var documentValue: Value { .boolean(self) }
}

extension String: ValueConvertible {
  /// A string.
  public var documentValue: Value { .string(self) }
}

extension Substring: ValueConvertible {
  /// A string.
  public var documentValue: Value { .string(String(self)) }
}

extension Double: ValueConvertible {
  /// A floating-point number.
  public var documentValue: Value { .double(self) }
}

extension Float: ValueConvertible {
  /// A floating-point number of the same value.
  public var documentValue: Value { .double(Double(self)) }
}

extension ValueConvertible where Self: FixedWidthInteger {
  /// An integer. The conforming types fit in 64 bits.
  public var documentValue: Value { .integer(Int(self)) }
}

extension Int: ValueConvertible {}
extension Int8: ValueConvertible {}
extension Int16: ValueConvertible {}
extension Int32: ValueConvertible {}
extension Int64: ValueConvertible {}
extension UInt8: ValueConvertible {}
extension UInt16: ValueConvertible {}
extension UInt32: ValueConvertible {}

extension Optional: FieldValueConvertible where Wrapped: ValueConvertible {}
extension Optional: ValueConvertible where Wrapped: ValueConvertible {
  /// The value, or null for `nil`.
  public var documentValue: Value { self?.documentValue ?? .null }
}

extension Array: FieldValueConvertible where Element: ValueConvertible {}
extension Array: ValueConvertible where Element: ValueConvertible {
  /// An array of the elements' values.
  public var documentValue: Value { .array(map(\.documentValue)) }
}

extension Dictionary: FieldValueConvertible where Key == String, Value: ValueConvertible {}
extension Dictionary: ValueConvertible where Key == String, Value: ValueConvertible {
  /// A map of the values by name.
  public var documentValue: HearthValue { .map(mapValues(\.documentValue)) }
}

// MARK: - Types of Foundation

extension Date: ValueConvertible {
  /// A timestamp, rounded to microseconds.
  public var documentValue: Value { .timestamp(Timestamp(self)) }
}

extension Data: ValueConvertible {
  /// Bytes.
  public var documentValue: Value { .bytes(self) }
}

extension UUID: ValueConvertible {
  /// A string such as `E621E1F8-C36C-495A-93FC-0C247A3E6E5F`, as the encoding of `Codable` types writes it.
  public var documentValue: Value { .string(uuidString) }
}

extension URL: ValueConvertible {
  /// A string.
  public var documentValue: Value { .string(absoluteString) }
}

// MARK: - Types of documents

extension Timestamp: ValueConvertible {
  /// A timestamp.
  public var documentValue: Value { .timestamp(self) }
}

extension GeoPoint: ValueConvertible {
  /// A place on Earth.
  public var documentValue: Value { .geoPoint(self) }
}

extension VectorValue: ValueConvertible {
  /// A vector.
  public var documentValue: Value { .vector(self) }
}

extension DocumentReference: ValueConvertible {
  /// A reference to the document.
  public var documentValue: Value { .reference(self) }
}
