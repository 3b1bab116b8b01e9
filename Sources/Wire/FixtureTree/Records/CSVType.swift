import DocumentModel

/// The type of a column of CSV. A header such as `age:int` names it.
package enum CSVType: String, CaseIterable, Sendable {
  case string
  case integer = "int"
  case double
  /// An integer if it has neither fraction nor exponent, else a double, as in JSON.
  case number
  case boolean = "bool"
  /// RFC 3339, or a date, which is its first moment in UTC.
  case timestamp
  /// Base64.
  case bytes
  /// A path in the target database or a full name.
  case reference = "ref"
  /// Latitude and longitude, separated by a comma.
  case geoPoint = "geo"
  /// Any value, in the notation of fixture trees.
  case json

  /// Other names of types in headers.
  private static let synonyms: [String: CSVType] = [
    "text": .string, "integer": .integer, "float": .double, "boolean": .boolean, "date": .timestamp,
    "datetime": .timestamp, "reference": .reference, "geopoint": .geoPoint,
  ]

  /// The names for errors.
  static let names = allCases.map(\.rawValue).joined(separator: ", ")

  /// Returns the type with a name, in any case, or `nil`.
  init?(name: Substring) {
    let name = name.lowercased()
    guard let type = CSVType(rawValue: name) ?? Self.synonyms[name] else { return nil }
    self = type
  }

  /// Returns whether a cell is a value of the type. Used to infer types only from forms that leave no doubt.
  func accepts(_ text: UnsafeRawBufferPointer) -> Bool {
    switch self {
    case .integer: JSONNumber.check(text) == true && JSONNumber.integer(text) != nil
    case .number:
      JSONNumber.check(text).map { isInteger in
        isInteger ? JSONNumber.integer(text) != nil : JSONNumber.double(text) != nil
      } ?? false
    case .boolean: Self.boolean(text) != nil
    case .timestamp: Self.timestamp(text) != nil
    case .string: true
    default: false
    }
  }

  /// The types that are inferred, the narrowest first.
  static let inferred: [CSVType] = [.integer, .number, .boolean, .timestamp, .string]

  /// Returns the moment of a time in RFC 3339, or the first moment in UTC of a date, or `nil`.
  static func timestamp(_ text: UnsafeRawBufferPointer) -> Timestamp? {
    if let moment = Timestamp(rfc3339: text) { return moment }
    return (Array(text) + Array("T00:00:00Z".utf8)).withUnsafeBytes { Timestamp(rfc3339: $0) }
  }

  /// Returns the value of `true` or `false` in any case, or `nil`.
  static func boolean(_ text: UnsafeRawBufferPointer) -> Bool? {
    func isEqual(_ word: StaticString) -> Bool {
      guard text.count == word.utf8CodeUnitCount else { return false }
      for index in 0..<text.count where text[index] | 0x20 != word.utf8Start[index] { return false }
      return true
    }
    return isEqual("true") ? true : isEqual("false") ? false : nil
  }
}
