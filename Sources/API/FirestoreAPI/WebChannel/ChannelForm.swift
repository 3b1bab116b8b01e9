import GatewayCore
import Transport

/// The form in a POST on a channel (listen-and-webchannel.md, sections 3.3 and 3.4): the client's messages, and in
/// the first POST the header fields that a browser could not send without a CORS preflight.
struct ChannelForm: Equatable, Sendable {
  /// A message of the client.
  struct Map: Equatable, Sendable {
    /// The message's number in the channel, from 0.
    var number: Int
    /// The JSON text, or `nil` for a message that the client could not encode. Such a message only takes up a
    /// number.
    var text: [UInt8]?
  }

  /// The largest number of messages that clients send at once.
  static let mapsMax = 1000
  /// The limit of message numbers. No client can count that far.
  private static let numberMax = 1 << 52

  /// The header block, in lines that end with CRLF, or `nil` if the form has none.
  private(set) var headers: [UInt8]?
  /// The messages, in the order of the form.
  private(set) var maps: [Map] = []

  /// Reads a form, which may be empty. Costs one pass and a copy of each message.
  ///
  /// - Throws: ``ChannelFault/malformed(_:)`` if the form is malformed.
  init(_ body: UnsafeRawBufferPointer) throws(ChannelFault) {
    var offset = 0
    for part in body.split(separator: UInt8(ascii: "&")) {
      let part = UnsafeRawBufferPointer(rebasing: part)
      let equals = part.firstIndex(of: UInt8(ascii: "=")) ?? part.count
      let name = UnsafeRawBufferPointer(rebasing: part[..<equals])
      let value = UnsafeRawBufferPointer(rebasing: part[min(equals + 1, part.count)...])
      if name.elementsEqual("headers".utf8) {
        headers = try Self.decode(value)
      } else if name.elementsEqual("ofs".utf8) {
        offset = try Self.number(value)
      } else if let key = name.dropping("req") {
        maps.append(try Self.map(key, value))
        guard maps.count <= Self.mapsMax else { throw .malformed("The form contains too many messages") }
      }
      // Ignore `count`: the names contain all information, and a retry may omit some messages.
    }
    for index in maps.indices { maps[index].number += offset }
  }

  /// Returns the header block of a form without reading its messages, or `nil` if the form has none.
  ///
  /// - Throws: ``ChannelFault/malformed(_:)`` if the encoding of the block is malformed.
  static func headers(in body: UnsafeRawBufferPointer) throws(ChannelFault) -> [UInt8]? {
    for part in body.split(separator: UInt8(ascii: "&")) {
      if let value = UnsafeRawBufferPointer(rebasing: part).dropping("headers=") { return try decode(value) }
    }
    return nil
  }

  /// Parses the name after `req`: the index in this form, `_`, the key.
  private static func map(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
  ) throws(ChannelFault) -> Map {
    guard let underscore = key.firstIndex(of: UInt8(ascii: "_")) else { throw .malformed("A message has no key") }
    let number = try Self.number(UnsafeRawBufferPointer(rebasing: key[..<underscore]))
    let key = UnsafeRawBufferPointer(rebasing: key[(underscore + 1)...])
    if key.elementsEqual("__data__".utf8) { return Map(number: number, text: try decode(value)) }
    guard key.elementsEqual("type".utf8), value.elementsEqual("_badmap".utf8) else {
      throw .malformed("A message has an unknown key")
    }
    return Map(number: number, text: nil)
  }

  private static func decode(_ value: UnsafeRawBufferPointer) throws(ChannelFault) -> [UInt8] {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(value.count)
    guard PercentEncoding.decode(value, plusIsSpace: true, into: &decoded) else {
      throw .malformed("Malformed percent-encoding in the form")
    }
    return decoded
  }

  private static func number(_ digits: UnsafeRawBufferPointer) throws(ChannelFault) -> Int {
    var number = 0
    for digit in digits {
      guard digit >= UInt8(ascii: "0"), digit <= UInt8(ascii: "9"), number < numberMax / 10 else {
        throw .malformed("A number in the form is malformed")
      }
      number = number * 10 + Int(digit - UInt8(ascii: "0"))
    }
    guard !digits.isEmpty else { throw .malformed("A number in the form is missing") }
    return number
  }
}

extension ChannelForm {
  /// The value of a field in a header block, without surrounding spaces.
  static func header(_ lowercasedName: StaticString, in block: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    for line in block.split(whereSeparator: { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }) {
      let line = UnsafeRawBufferPointer(rebasing: line)
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon == lowercasedName.utf8CodeUnitCount,
        (0..<colon).allSatisfy({ lowercased(line[$0]) == lowercasedName.utf8Start[$0] })
      else { continue }
      var value = line[(colon + 1)...].drop { $0 == UInt8(ascii: " ") }
      while value.last == UInt8(ascii: " ") { value.removeLast() }
      return UnsafeRawBufferPointer(rebasing: value)
    }
    return nil
  }

  private static func lowercased(_ byte: UInt8) -> UInt8 {
    byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
  }
}
