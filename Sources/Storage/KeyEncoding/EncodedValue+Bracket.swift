package import DocumentModel
package import WireFormat

extension EncodedValue {
  /// The bracket that the value belongs to in the order of values.
  /// - Throws: ``WireError`` if the stored bytes are not a valid value.
  package var bracket: TypeBracket {
    get throws(WireError) {
      switch try content {
      case .null: return .null
      case .boolean: return .boolean
      case .integer: return .number
      case .double(let number): return number.isNaN ? .nan : .number
      case .timestamp: return .timestamp
      case .string: return .string
      case .bytes: return .bytes
      case .reference: return .reference
      case .geoPoint: return .geoPoint
      case .array: return .array
      case .map(let map):
        if try map.isVector { return .vector }
        guard let (type, content) = try map.bson else { return .map }
        if type == .decimal128, case .string(let text) = try content.content {
          return BSONType.number(decimal: text).bracket
        }
        return type.bracket
      }
    }
  }
}
