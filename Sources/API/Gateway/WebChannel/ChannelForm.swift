import Transport

/// The form that a POST on a channel carries (listen-and-webchannel.md, sections 3.3 and 3.4): the client's messages,
/// and in the first one the headers that a browser could not send without asking.
struct ChannelForm: Equatable, Sendable {
  /// One message of the client.
  struct Map: Equatable, Sendable {
    /// Its place among all messages of the channel, from 0.
    var number: Int
    /// Its JSON text; `nil` for one that the client could not encode, which only counts.
    var text: [UInt8]?
  }

  /// Clients send at most so many at a time.
  static let mapsMax = 1000
  /// Beyond what a client could count up to.
  private static let numberMax = 1 << 52

  /// The header block, lines that end with CRLF; `nil` where the form has none.
  private(set) var headers: [UInt8]?
  /// The messages, in the order of the form.
  private(set) var maps: [Map] = []

  /// Reads a form; an empty one holds nothing. Cost: one pass, and a copy of each message.
  /// - Throws: ``ChannelFault/malformed(_:)``.
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
        guard maps.count <= Self.mapsMax else { throw .malformed("The form holds too many messages") }
      }
      // `count` says nothing that the names do not: a retry may leave some out.
    }
    for index in maps.indices { maps[index].number += offset }
  }

  /// Reads what stands behind `req`: the place in this form, `_`, the key.
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
        throw .malformed("A number of the form is none")
      }
      number = number * 10 + Int(digit - UInt8(ascii: "0"))
    }
    guard !digits.isEmpty else { throw .malformed("A number of the form is missing") }
    return number
  }
}

extension ChannelForm {
  /// The value of a line of a header block, without surrounding blanks. `lowercasedName` must be lower case.
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
