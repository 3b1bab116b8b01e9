import CHTTPParser

/// Reads the heads of requests in the form in which nearly all of them come, in one pass: HTTP/1.1, a target that is a
/// path of usual characters, and fields with usual characters that do not change the framing, except one
/// `Content-Length`.
///
/// All other heads, incomplete ones too, are left to http-parser, which reads these in the same way but takes several
/// times as long. So this type never refuses anything.
enum PlainHead {
  /// The parts of a head besides its fields.
  struct Parts {
    var method: http_method
    var target: Range<Int>
    var fieldCount: Int
    var contentLength: UInt64?
    /// The length of the head, in bytes.
    var byteCount: Int
  }

  /// The digits of a length that cannot overflow.
  private static let lengthDigitsMax = 18

  /// Returns the parts of the head at the start of `message`, and stores its fields. Returns `nil` if http-parser must
  /// read the head, or if there are too many fields.
  static func read(_ message: UnsafeRawBufferPointer, fields: UnsafeMutableBufferPointer<HeaderField>) -> Parts? {
    guard let start = message.baseAddress, let method = readMethod(message) else { return nil }
    let count = message.count
    var at = method.byteCount
    let targetStart = at
    guard at < count, byte(start, at) == UInt8(ascii: "/") else { return nil }
    while at < count, isOfTarget(byte(start, at)) { at += 1 }
    let target = targetStart..<at
    guard matches(" HTTP/1.1\r\n", message, at) else { return nil }
    at += 11
    var fieldCount = 0
    var contentLength: UInt64?
    while true {
      let nameStart = at
      while at < count, isOfName(byte(start, at)) { at += 1 }
      let nameCount = at - nameStart
      if nameCount == 0 {
        guard matches("\r\n", message, at) else { return nil }
        at += 2
        break
      }
      guard at < count, byte(start, at) == UInt8(ascii: ":"), fieldCount < fields.count else { return nil }
      at += 1
      while at < count, byte(start, at) == 0x20 { at += 1 }
      let valueStart = at
      while at < count, isOfValue(byte(start, at)) { at += 1 }
      guard at > valueStart, matches("\r\n", message, at) else { return nil }
      let name = start + nameStart
      switch nameCount {
      case 7: if equalIgnoringCase(name, "upgrade") { return nil }
      case 10: if equalIgnoringCase(name, "connection") { return nil }
      case 14:
        if equalIgnoringCase(name, "content-length") {
          guard contentLength == nil, let length = number(message[valueStart..<at]) else { return nil }
          contentLength = length
        }
      case 16: if equalIgnoringCase(name, "proxy-connection") { return nil }
      case 17: if equalIgnoringCase(name, "transfer-encoding") { return nil }
      default: break
      }
      fields[fieldCount] = HeaderField(
        nameStart: UInt32(nameStart), nameCount: UInt32(nameCount), valueStart: UInt32(valueStart),
        valueCount: UInt32(at - valueStart))
      fieldCount += 1
      at += 2
    }
    return Parts(
      method: method.value, target: target, fieldCount: fieldCount, contentLength: contentLength, byteCount: at)
  }

  // MARK: - Characters

  // Each function accepts a part of what http-parser accepts.

  @inline(__always)
  private static func isLetter(_ byte: UInt8) -> Bool { (byte | 0x20) &- UInt8(ascii: "a") < 26 }

  /// Whether a byte may be in a target: a letter, a digit, `-`, `.`, `/` or one of some marks.
  @inline(__always)
  private static func isOfTarget(_ byte: UInt8) -> Bool {
    if isLetter(byte) || byte &- UInt8(ascii: "-") <= UInt8(ascii: "9") - UInt8(ascii: "-") { return true }
    return switch byte {
    case UInt8(ascii: "%"), UInt8(ascii: "("), UInt8(ascii: ")"), UInt8(ascii: ":"), UInt8(ascii: "?"),
      UInt8(ascii: "&"), UInt8(ascii: "="), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "+"), UInt8(ascii: "@"),
      UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "!"), UInt8(ascii: "*"), UInt8(ascii: "$"), UInt8(ascii: "'"):
      true
    default: false
    }
  }

  /// Whether a byte may be in the name of a field: a letter, a digit, `-` or `_`.
  @inline(__always)
  private static func isOfName(_ byte: UInt8) -> Bool {
    isLetter(byte) || byte == UInt8(ascii: "-") || byte &- UInt8(ascii: "0") < 10 || byte == UInt8(ascii: "_")
  }

  /// Whether a byte may be in the value of a field: a visible character of ASCII or a blank.
  @inline(__always)
  private static func isOfValue(_ byte: UInt8) -> Bool { byte &- 0x20 < 0x5f }

  @inline(__always)
  private static func byte(_ start: UnsafeRawPointer, _ at: Int) -> UInt8 {
    start.load(fromByteOffset: at, as: UInt8.self)
  }

  /// Whether the text is at a place. It must be complete.
  @inline(__always)
  private static func matches(_ text: StaticString, _ message: UnsafeRawBufferPointer, _ at: Int) -> Bool {
    let count = text.utf8CodeUnitCount
    guard message.count - at >= count else { return false }
    for index in 0..<count where message[at + index] != text.utf8Start[index] { return false }
    return true
  }

  /// The method at the start, and its length with the blank after it.
  private static func readMethod(_ message: UnsafeRawBufferPointer) -> (value: http_method, byteCount: Int)? {
    switch message.first {
    case UInt8(ascii: "G"): matches("GET ", message, 0) ? (HTTP_GET, 4) : nil
    case UInt8(ascii: "P"):
      if matches("POST ", message, 0) {
        (HTTP_POST, 5)
      } else if matches("PATCH ", message, 0) {
        (HTTP_PATCH, 6)
      } else {
        matches("PUT ", message, 0) ? (HTTP_PUT, 4) : nil
      }
    case UInt8(ascii: "D"): matches("DELETE ", message, 0) ? (HTTP_DELETE, 7) : nil
    default: nil
    }
  }

  /// The number that digits without anything else form.
  private static func number(_ text: Slice<UnsafeRawBufferPointer>) -> UInt64? {
    guard text.count <= lengthDigitsMax else { return nil }
    var number: UInt64 = 0
    for byte in text {
      let digit = byte &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      number = number * 10 + UInt64(digit)
    }
    return number
  }
}
