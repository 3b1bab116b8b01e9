import DocumentModel
import WireFormat

extension OrderedCode {
  /// Appends the code of a BSON value, given its type and the content of its one key. Returns whether the code is
  /// whole.
  ///
  /// A number has the code of the number it equals. A decimal that is neither an integer nor a double has the code
  /// of the nearest double.
  static func append(
    _ content: EncodedValue, _ type: BSONType, to out: inout [UInt8], limit: Int
  ) throws(WireError) -> Bool {
    switch (type, try content.content) {
    case (.int32, .integer(let number)): append(integer: number, to: &out)
    case (.decimal128, .string(let text)):
      switch BSONType.number(decimal: text) {
      case .integer(let number): append(integer: number, to: &out)
      case .double(let number): append(double: number, to: &out)
      default: break
      }
    case (.objectID, .string(let bytes)), (.binary, .bytes(let bytes)):
      out.append(type.bracket.rawValue)
      return appendBytes(bytes, to: &out, limit: limit)
    case (.timestamp, .map(let map)):
      out.append(type.bracket.rawValue)
      let seconds = try unsigned32(map, BSONType.secondsKey)
      let increment = try unsigned32(map, BSONType.incrementKey)
      append(signed: Int64(seconds) << 32 | Int64(increment), to: &out)
    case (.regex, .map(let map)):
      out.append(type.bracket.rawValue)
      guard try append(text: map, BSONType.patternKey, to: &out, limit: limit) else { return false }
      return try append(text: map, BSONType.optionsKey, to: &out, limit: limit)
    case (.minKey, _), (.maxKey, _): out.append(type.bracket.rawValue)
    // A stored value always has the content that its type requires.
    default: throw .malformedProtobuf("BSON value with content of another type")
    }
    return true
  }

  private static func unsigned32(_ map: EncodedMap, _ key: String) throws(WireError) -> UInt32 {
    guard case .integer(let number)? = try map.value(for: key)?.content else { return 0 }
    return UInt32(truncatingIfNeeded: number)
  }

  private static func append(
    text map: EncodedMap, _ key: String, to out: inout [UInt8], limit: Int
  ) throws(WireError) -> Bool {
    guard case .string(let text)? = try map.value(for: key)?.content else {
      throw .malformedProtobuf("BSON value with content of another type")
    }
    return appendBytes(text, to: &out, limit: limit)
  }
}
