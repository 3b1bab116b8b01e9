import CSimdjson
import DocumentModel

/// A reusable parser of JSON texts.
///
/// Its buffers take about 12 bytes a byte of input; after a text longer than `keptBytesMax` they are given back.
/// Belongs to one thread of work.
package final class JSONDocument {
  /// How deep objects and arrays may nest. A legal request needs about 70: a value takes three levels for each of
  /// its ``Limits/nestingDepthMax``.
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

  /// Bytes that must be readable behind a text given with `isPadded`.
  package static let paddingBytes = Int(hearth_json_padding)

  /// Parses one text and calls `body` with its root value, which is valid during the call.
  ///
  /// With `isPadded` the caller promises that ``paddingBytes`` more bytes behind the text may be read; otherwise
  /// the text is copied. `body` must not parse another text with the same parser.
  /// - Throws: ``WireError/invalidJSON(_:)`` when the text is no JSON, and what `body` throws.
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
    // Word 0 is the root; the value follows.
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

/// A value of a parsed JSON text: a position on the parser's tape.
///
/// Valid inside ``JSONDocument/withParsed(_:isPadded:_:)``. Nothing here allocates or throws: the tape is the
/// parser's own and well formed.
package struct JSONValue {
  fileprivate let tape: UnsafePointer<UInt64>
  fileprivate let strings: UnsafePointer<UInt8>
  fileprivate let index: Int

  fileprivate init(tape: UnsafePointer<UInt64>, strings: UnsafePointer<UInt8>, index: Int) {
    self.tape = tape
    self.strings = strings
    self.index = index
  }

  /// What a value is.
  package enum Kind {
    case null
    case boolean(Bool)
    /// An integer that fits int64.
    case integer(Int64)
    /// An integer above that, which fits uint64.
    case unsigned(UInt64)
    /// Any other number.
    case double(Double)
    /// The text without quotes and escapes, UTF-8.
    case string(UnsafeRawBufferPointer)
    case object(Members)
    case array(Elements)
  }

  /// What the value is.
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

  /// The bytes of a string; only for the strings of the tape.
  fileprivate var text: UnsafeRawBufferPointer {
    let start = strings + Int(tape[index] & (1 << 56 - 1))
    let count = UnsafeRawPointer(start).loadUnaligned(as: UInt32.self)
    return UnsafeRawBufferPointer(start: start + 4, count: Int(count))
  }

  /// The index behind the value.
  fileprivate var end: Int {
    switch UInt8(truncatingIfNeeded: tape[index] >> 56) {
    case UInt8(ascii: "{"), UInt8(ascii: "["): Int(tape[index] & 0xFFFF_FFFF)
    case UInt8(ascii: "l"), UInt8(ascii: "u"), UInt8(ascii: "d"): index + 2
    default: index + 1
    }
  }

  fileprivate func at(_ index: Int) -> JSONValue { JSONValue(tape: tape, strings: strings, index: index) }

  /// The members of an object in the order of the text, duplicates included.
  package struct Members {
    private var position: JSONValue
    private let end: Int

    fileprivate init(first: JSONValue, end: Int) {
      position = first
      self.end = end
    }

    /// The next member, or `nil` at the end.
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

    /// The next element, or `nil` at the end.
    package mutating func next() -> JSONValue? {
      guard position.index < end else { return nil }
      defer { position = position.at(position.end) }
      return position
    }
  }
}

/// The name of a member of a JSON object; matches string literals in a `switch`, by bytes.
package struct JSONName {
  /// The name, UTF-8.
  package let bytes: UnsafeRawBufferPointer

  /// Whether the name is exactly `literal`.
  @inline(__always)
  package static func ~= (literal: StaticString, name: JSONName) -> Bool { EncodedMap.isEqual(name.bytes, literal) }

  /// The name as text.
  package var text: String { String(decoding: bytes, as: UTF8.self) }
}
