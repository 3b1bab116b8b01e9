import CSimdjson
package import DocumentModel

/// A decoder of the API's JSON messages, following the rules of proto3 JSON (firestore-api.md, section 1.5).
///
/// One decoder serves many requests, one at a time, and keeps its buffers. A function that decodes a message
/// requires an object, accepts both spellings of member names, treats `null` as unset, and throws ``WireError``
/// with the path of the error. Other objects than messages are decoded with ``members(of:_:)``, the functions for
/// scalars, and ``enter(_:)``.
package final class JSONMessageDecoder: MessageDecoder {
  /// A parsed value.
  package typealias Encoded = JSONValue

  var path = MessagePath()
  var encoder = CanonicalEncoder()
  var names = DocumentNames()
  /// The edition of the database that the values are for.
  private(set) var edition = Edition.standard

  /// Creates a decoder.
  package init() {}

  /// Clears the path. Call it before each request, with the edition of the request's database.
  package func reset(_ edition: Edition = .standard, in database: DatabaseID? = nil) {
    path.removeAll()
    self.edition = edition
    self.database = database
  }

  /// The database of the request, to which its documents must belong. `nil` outside requests.
  package var database: DatabaseID? {
    get { names.database }
    set { names.database = newValue }
  }

  /// Enters a field, given its name in snake_case. ``leave()`` leaves it. Errors contain the path of the entered
  /// fields.
  package func enter(_ field: StaticString) { path.enter(field) }

  /// Sets the index of the current element in the entered list.
  package func element(_ index: Int) { path.element(index) }

  /// Leaves the innermost field.
  package func leave() { path.leave() }

  // MARK: Messages and lists

  /// An iterator over the members of a message that are not null.
  package struct Members {
    private var all: JSONValue.Members

    init(_ all: JSONValue.Members) { self.all = all }

    /// Returns the next member, or `nil` at the end.
    package mutating func next() -> (name: JSONName, value: JSONValue)? {
      while let member = all.next() {
        if !member.value.isNull { return member }
      }
      return nil
    }
  }

  /// Returns the members of a message. `type` is its full name, such as `google.firestore.v1.Write`.
  /// - Throws: ``WireError`` if the value is not an object.
  package func members(of value: JSONValue, _ type: StaticString) throws(WireError) -> Members {
    Members(try allMembers(of: value, type))
  }

  /// Returns the members of a message, including those that are null.
  func allMembers(of value: JSONValue, _ type: StaticString) throws(WireError) -> JSONValue.Members {
    guard case .object(let members) = value.kind else {
      if case .array = value.kind { throw notRepeated() }
      throw .invalidValue(path: path.text(), type: "type.googleapis.com/\(type)", text: Self.quote(value))
    }
    return members
  }

  /// Returns the elements of the entered list.
  /// - Throws: ``WireError`` if the value is not an array.
  package func elements(of value: JSONValue) throws(WireError) -> JSONValue.Elements {
    guard case .array(let elements) = value.kind else {
      throw .invalidValue(path: path.text(), type: "repeated", text: Self.quote(value))
    }
    return elements
  }

  /// Returns the error for a member that the current message does not have.
  package func unknown(_ name: JSONName) -> WireError {
    .unknownField(name: Self.cut(name.bytes), path: path.text())
  }

  /// Returns the error for a second member of a oneof.
  package func alreadySet(_ oneof: StaticString, _ member: JSONName) -> WireError {
    .oneofAlreadySet(path: path.text(), oneof: oneof.description, member: Self.cut(member.bytes))
  }

  /// Returns the error for a scalar that does not fit its field.
  package func invalid(_ value: JSONValue, _ field: StaticString, _ type: StaticString) -> WireError {
    switch value.kind {
    case .array: notRepeated(field)
    case .object:
      .invalidValue(path: path.text(field), type: type.description, text: "Starting an object on a scalar field")
    default: .invalidValue(path: path.text(field), type: type.description, text: Self.quote(value))
    }
  }

  private func notRepeated(_ field: StaticString = "") -> WireError {
    .invalidJSON("Invalid value at '\(path.text(field))': Proto field is not repeating, cannot start list.")
  }

  // MARK: Scalars

  /// Decodes a string field.
  /// - Throws: ``WireError`` if the value is not a string.
  package func string(_ value: JSONValue, _ field: StaticString) throws(WireError) -> UnsafeRawBufferPointer {
    guard case .string(let text) = value.kind else { throw invalid(value, field, "TYPE_STRING") }
    return text
  }

  /// Decodes a bool field.
  /// - Throws: ``WireError`` if the value is not a boolean.
  package func bool(_ value: JSONValue, _ field: StaticString) throws(WireError) -> Bool {
    guard case .boolean(let flag) = value.kind else { throw invalid(value, field, "TYPE_BOOL") }
    return flag
  }

  /// Decodes an int64 field: an integral number or a decimal string.
  /// - Throws: ``WireError`` if the value is something else or does not fit 64 bits.
  package func int64(_ value: JSONValue, _ field: StaticString) throws(WireError) -> Int64 {
    switch value.kind {
    case .integer(let number): return number
    case .double(let number):
      if let exact = Int64(exactly: number) { return exact }
    case .string(let text):
      if let number = Self.decimal(text) { return number }
    default: break
    }
    throw invalid(value, field, "TYPE_INT64")
  }

  /// Decodes an int32 field: an integral number or a decimal string.
  /// - Throws: ``WireError`` if the value is something else or does not fit 32 bits.
  package func int32(_ value: JSONValue, _ field: StaticString) throws(WireError) -> Int32 {
    switch value.kind {
    case .integer(let number):
      if let exact = Int32(exactly: number) { return exact }
    case .double(let number):
      if let exact = Int32(exactly: number) { return exact }
    case .string(let text):
      if let number = Self.decimal(text), let exact = Int32(exactly: number) { return exact }
    default: break
    }
    throw invalid(value, field, "TYPE_INT32")
  }

  /// Decodes a double field: a number, a numeric string, `NaN`, `Infinity` or `-Infinity`.
  /// - Throws: ``WireError`` if the value is something else.
  package func double(_ value: JSONValue, _ field: StaticString) throws(WireError) -> Double {
    switch value.kind {
    case .integer(let number): return Double(number)
    case .unsigned(let number): return Double(number)
    case .double(let number): return number
    case .string(let text):
      switch JSONName(bytes: text) {
      case "NaN": return .nan
      case "Infinity": return .infinity
      case "-Infinity": return -.infinity
      default: break
      }
      var number = 0.0
      if let start = text.baseAddress?.assumingMemoryBound(to: CChar.self),
        hearth_parse_double(start, text.count, &number)
      {
        return number
      }
    default: break
    }
    throw invalid(value, field, "TYPE_DOUBLE")
  }

  /// Decodes a bytes field: base64 in either alphabet, padded or not.
  /// - Throws: ``WireError`` if the value is not a base64 string.
  package func bytes(_ value: JSONValue, _ field: StaticString) throws(WireError) -> [UInt8] {
    let text = try bytesText(value, field)
    var isValid = true
    let bytes = [UInt8](unsafeUninitializedCapacity: Base64.decodedCountMax(text.count)) { buffer, count in
      let written = Base64.decode(text, into: UnsafeMutableRawBufferPointer(buffer))
      isValid = written != nil
      count = written ?? 0
    }
    guard isValid else { throw badBase64(text, field) }
    return bytes
  }

  func bytesText(_ value: JSONValue, _ field: StaticString) throws(WireError) -> UnsafeRawBufferPointer {
    guard case .string(let text) = value.kind else { throw invalid(value, field, "TYPE_BYTES") }
    return text
  }

  func badBase64(_ text: UnsafeRawBufferPointer, _ field: StaticString) -> WireError {
    .base64(path: path.text(field), text: Self.cut(text))
  }

  /// Decodes a Timestamp field, truncated to microseconds.
  /// - Throws: ``WireError`` if the value is not an RFC 3339 time in range.
  package func timestamp(_ value: JSONValue, _ field: StaticString) throws(WireError) -> Timestamp {
    guard case .string(let text) = value.kind, let moment = Timestamp(rfc3339: text) else {
      throw invalid(value, field, "type.googleapis.com/google.protobuf.Timestamp")
    }
    return moment
  }

  /// Decodes a Timestamp field that must have whole microseconds, as in preconditions and read times.
  /// - Throws: ``WireError/model(_:)`` with ``ModelError/timestampNotAligned`` if it is finer, or another
  ///   ``WireError`` if the value is not an RFC 3339 time in range.
  package func alignedTimestamp(_ value: JSONValue, _ field: StaticString) throws(WireError) -> Timestamp {
    var remainder = 0
    guard case .string(let text) = value.kind, let moment = Timestamp(rfc3339: text, nanosRemainder: &remainder) else {
      throw invalid(value, field, "type.googleapis.com/google.protobuf.Timestamp")
    }
    guard remainder == 0 else { throw .model(.timestampNotAligned) }
    return moment
  }

  /// Decodes an enum field: a number, or a name, whose number is its index in `names`. Gaps in the numbers are
  /// empty names.
  /// - Throws: ``WireError`` if the value is not one of the names or numbers.
  package func enumeration(
    _ value: JSONValue, _ field: StaticString, _ type: StaticString, _ names: [StaticString]
  ) throws(WireError) -> Int {
    try enumeration(value, field, type, of: names)
  }

  func enumeration(
    _ value: JSONValue, _ field: StaticString, _ type: StaticString, of names: [StaticString]
  ) throws(WireError) -> Int {
    switch value.kind {
    case .integer(let number):
      if let index = Int(exactly: number), names.indices.contains(index) { return index }
    case .string(let text):
      if !text.isEmpty, let index = names.firstIndex(where: { $0 ~= JSONName(bytes: text) }) { return index }
    default: break
    }
    throw invalid(value, field, type)
  }

  // MARK: Texts

  /// Returns the value of a decimal int64 without a leading `+`, spaces or exponent, or `nil` for any other text.
  private static func decimal(_ text: UnsafeRawBufferPointer) -> Int64? {
    let isNegative = text.first == UInt8(ascii: "-")
    guard text.count > (isNegative ? 1 : 0) else { return nil }
    var number: Int64 = 0
    for byte in text.dropFirst(isNegative ? 1 : 0) {
      guard (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) else { return nil }
      let digit = Int64(byte - UInt8(ascii: "0"))
      let (product, overflowed) = number.multipliedReportingOverflow(by: 10)
      let (sum, carried) =
        isNegative ? product.subtractingReportingOverflow(digit) : product.addingReportingOverflow(digit)
      guard !overflowed, !carried else { return nil }
      number = sum
    }
    return number
  }

  /// Returns a scalar in the form that errors quote.
  private static func quote(_ value: JSONValue) -> String {
    switch value.kind {
    case .null: "null"
    case .boolean(let flag): flag ? "true" : "false"
    case .integer(let number): "\(number)"
    case .unsigned(let number): "\(number)"
    case .double(let number): "\(number)"
    case .string(let text): "\"\(cut(text))\""
    case .object: "an object"
    case .array: "a list"
    }
  }

  /// Returns at most ``WireError/quotedBytesMax`` bytes of a text, truncated between characters.
  private static func cut(_ text: UnsafeRawBufferPointer) -> String {
    guard text.count > WireError.quotedBytesMax else { return String(decoding: text, as: UTF8.self) }
    var end = WireError.quotedBytesMax
    while end > 0, text[end] & 0xC0 == 0x80 { end -= 1 }
    return String(decoding: text[..<end], as: UTF8.self) + "…"
  }
}
