import CSimdjson
import DocumentModel

/// A reusable parser of JSON texts.
///
/// Its buffers take about 12 bytes per byte of input. After a text longer than `keptBytesMax` they are released.
/// Use a parser from one thread at a time.
package final class JSONDocument {
  /// The maximum nesting of objects and arrays. A valid request needs about 70 levels: a value takes three for each
  /// of its ``Limits/nestingDepthMax`` levels.
  package static let depthMax = 256

  private let parser: OpaquePointer?
  private let keptBytesMax: Int
  private let bytesMax: Int

  /// Creates a parser for texts of up to `bytesMax` bytes.
  package init(bytesMax: Int = 2 * Limits.requestBytesMax, keptBytesMax: Int = 1 << 20) {
    parser = hearth_json_parser_create(bytesMax, Self.depthMax)
    self.bytesMax = bytesMax
    self.keptBytesMax = keptBytesMax
  }

  deinit {
    if let parser { hearth_json_parser_destroy(parser) }
  }

  /// The number of bytes that must be readable after a text that is passed with `isPadded`.
  package static let paddingBytes = Int(hearth_json_padding)

  /// Parses one text and calls `body` with its root value, which is valid during the call.
  ///
  /// With `isPadded` the caller guarantees that ``paddingBytes`` more bytes after the text can be read. Otherwise
  /// the text is copied. `body` must not parse another text with the same parser.
  /// - Throws: ``WireError/invalidJSON(_:)`` if the text is not valid JSON, or the error that `body` throws.
  package func withParsed<R>(
    _ text: UnsafeRawBufferPointer, isPadded: Bool = false, _ body: (JSONValue) throws(WireError) -> R
  ) throws(WireError) -> R {
    guard let parser else { throw .invalidJSON("Out of memory.") }
    guard let bytes = text.baseAddress, !text.isEmpty else { throw Self.error(hearth_json_empty, bytesMax) }
    var tape: UnsafePointer<UInt64>?
    var strings: UnsafePointer<UInt8>?
    defer { hearth_json_parser_trim(parser, keptBytesMax) }
    let status = hearth_json_parse(
      parser, bytes.assumingMemoryBound(to: UInt8.self), text.count, isPadded, &tape, &strings)
    guard status == hearth_json_ok, let tape, let strings else { throw Self.error(status, bytesMax) }
    // Word 0 is the root marker. The value follows it.
    return try body(JSONValue(tape: tape, strings: strings, index: 1))
  }

  private static func error(_ status: hearth_json_status, _ bytesMax: Int) -> WireError {
    switch status {
    case hearth_json_empty: .invalidJSON("Unexpected end of string. Expected a value.")
    case hearth_json_too_large: .invalidJSON("Payload is longer than \(bytesMax) bytes.")
    case hearth_json_too_deep: .invalidJSON("Message too deep. Max recursion depth of \(depthMax) reached.")
    case hearth_json_bad_utf8: .invalidJSON("Encountered non UTF-8 code points.")
    case hearth_json_bad_string: .invalidJSON("Malformed string: closing quote or legal escape expected.")
    case hearth_json_bad_number: .invalidJSON("Unable to parse number.")
    case hearth_json_out_of_memory: .invalidJSON("Out of memory.")
    default: .invalidJSON("Unexpected token.")
    }
  }
}

/// A value of a parsed JSON text, which is a position on the parser's tape.
///
/// It is valid inside ``JSONDocument/withParsed(_:isPadded:_:)``. Nothing here allocates or throws, because the
/// parser wrote the tape and it is well formed.
package struct JSONValue {
  fileprivate let tape: UnsafePointer<UInt64>
  fileprivate let strings: UnsafePointer<UInt8>
  fileprivate let index: Int

  fileprivate init(tape: UnsafePointer<UInt64>, strings: UnsafePointer<UInt8>, index: Int) {
    self.tape = tape
    self.strings = strings
    self.index = index
  }

  /// The type and content of a value.
  package enum Kind {
    case null
    case boolean(Bool)
    /// An integer that fits int64.
    case integer(Int64)
    /// A larger integer, which fits uint64.
    case unsigned(UInt64)
    /// Any other number.
    case double(Double)
    /// The UTF-8 text without quotes, with escapes resolved.
    case string(UnsafeRawBufferPointer)
    case object(Members)
    case array(Elements)
  }

  /// The type and content of the value.
  package var kind: Kind {
    switch UInt8(truncatingIfNeeded: tape[index] >> 56) {
    case UInt8(ascii: "\""): .string(text)
    case UInt8(ascii: "{"): .object(Members(first: at(index + 1), end: end - 1))
    case UInt8(ascii: "["): .array(Elements(first: at(index + 1), end: end - 1))
    case UInt8(ascii: "l"): .integer(Int64(bitPattern: tape[index + 1]))
    case UInt8(ascii: "u"): .unsigned(tape[index + 1])
    case UInt8(ascii: "d"): .double(Double(bitPattern: tape[index + 1]))
    case UInt8(ascii: "t"): .boolean(true)
    case UInt8(ascii: "f"): .boolean(false)
    default: .null
    }
  }

  /// Whether this is `null`.
  package var isNull: Bool { tape[index] >> 56 == UInt64(UInt8(ascii: "n")) }

  /// The bytes of a string. The value must be a string.
  fileprivate var text: UnsafeRawBufferPointer {
    let start = strings + Int(tape[index] & (1 << 56 - 1))
    let count = UnsafeRawPointer(start).loadUnaligned(as: UInt32.self)
    return UnsafeRawBufferPointer(start: start + 4, count: Int(count))
  }

  /// The index after the value.
  fileprivate var end: Int {
    switch UInt8(truncatingIfNeeded: tape[index] >> 56) {
    case UInt8(ascii: "{"), UInt8(ascii: "["): Int(tape[index] & 0xFFFF_FFFF)
    case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): index + 2
    default: index + 1
    }
  }

  fileprivate func at(_ index: Int) -> JSONValue { JSONValue(tape: tape, strings: strings, index: index) }

  /// The members of an object in the order of the text, including repeated names.
  package struct Members {
    private var position: JSONValue
    private let end: Int

    fileprivate init(first: JSONValue, end: Int) {
      position = first
      self.end = end
    }

    /// Returns the next member, or `nil` at the end.
    package mutating func next() -> (name: JSONName, value: JSONValue)? {
      guard position.index < end else { return nil }
      let name = JSONName(bytes: position.text)
      let value = position.at(position.index + 1)
      position = position.at(value.end)
      return (name, value)
    }
  }

  /// The elements of an array in order.
  package struct Elements {
    private var position: JSONValue
    private let end: Int

    fileprivate init(first: JSONValue, end: Int) {
      position = first
      self.end = end
    }

    /// Returns the next element, or `nil` at the end.
    package mutating func next() -> JSONValue? {
      guard position.index < end else { return nil }
      defer { position = position.at(position.end) }
      return position
    }
  }
}

/// The name of a member of a JSON object. It matches string literals in a `switch`, compared as bytes.
package struct JSONName {
  /// The name in UTF-8.
  package let bytes: UnsafeRawBufferPointer

  /// Returns whether the name is exactly `literal`.
  @inline(__always)
  package static func ~= (literal: StaticString, name: JSONName) -> Bool { EncodedMap.isEqual(name.bytes, literal) }

  /// The name as text.
  package var text: String { String(decoding: bytes, as: UTF8.self) }
}
