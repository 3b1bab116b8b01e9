import DocumentModel
import Testing
import TestSupport

@testable import WireFormat

/// Values that are written and read by a short way, compared with the long way.
@Suite struct ShortTokenTests {
  /// The significant digits of a decimal text, and the exponent of the first one.
  private static func digits(_ text: String) -> (digits: [UInt8], exponent: Int) {
    let parts = text.drop { $0 == "-" }.split(separator: "e")
    let number = parts[0].split(separator: ".", omittingEmptySubsequences: false)
    var digits = Array(number.joined().utf8)
    var exponent = number[0].count - 1 + (parts.count > 1 ? Int(parts[1]) ?? 0 : 0)
    while digits.first == UInt8(ascii: "0") {
      digits.removeFirst()
      exponent -= 1
    }
    while digits.last == UInt8(ascii: "0") { digits.removeLast() }
    return (digits, exponent)
  }

  @Test func decimalsHaveTheirShortestText() {
    let seed = TestSeeds.of("DECIMAL_SEED", otherwise: [1])[0]
    var random = SplitMix(seed: seed)
    for round in 0..<20_000 {
      let integer = random.next() >> UInt64.random(in: 11..<64, using: &random)
      let places = Int.random(in: 0...8, using: &random)
      let decimal = Double("\(integer)e-\(places)") ?? 0
      // The neighbors of a short decimal need up to 17 digits.
      for value in [decimal, decimal.nextUp, -decimal.nextDown] where value != 0 {
        var writer = JSONWriter(.compact)
        writer.double(value)
        let text = String(decoding: writer.bytes, as: UTF8.self)
        let (found, wanted) = (Self.digits(text), Self.digits(value.description))
        #expect(Double(text) == value, "round \(round) of seed \(seed): \(value)")
        #expect(
          found.digits == wanted.digits && found.exponent == wanted.exponent, "\(text) for \(value), seed \(seed)")
      }
    }
  }

  @Test func everyPlaceOfATextIsExamined() {
    for count in 0..<40 {
      for top in [0, JSONWriter.tops] {
        var text = [UInt8](repeating: UInt8(ascii: "a"), count: count)
        #expect(text.withUnsafeBytes { JSONWriter.isPlain($0, excluding: top) })
        for place in 0..<count {
          for byte: UInt8 in [0x00, 0x1F, 0x20, 0x21, 0x22, 0x23, 0x5B, 0x5C, 0x5D, 0x7F, 0x80, 0xA2, 0xDC, 0xFF] {
            text[place] = byte
            let isPlain = text.withUnsafeBytes { JSONWriter.isPlain($0, excluding: top) }
            let mustEscape = byte < 0x20 || byte == 0x22 || byte == 0x5C || (top != 0 && byte >= 0x80)
            #expect(isPlain == !mustEscape, "\(byte) at \(place) of \(count)")
          }
          text[place] = UInt8(ascii: "a")
        }
      }
    }
  }

  @Test func truncatedAndChangedEntriesAreRefusedOrRead() throws {
    let fields: [(String, Value)] = [
      ("b", .boolean(true)), ("d", .double(3.75)), ("long", .string(String(repeating: "x", count: 200))),
      ("s", .string("text")), ("t", .timestamp(Timestamp(uncheckedMicroseconds: 1))),
    ]
    let bytes = EncodedFields(MapValue(fields)).bytes
    func read(_ bytes: [UInt8]) throws -> [String] {
      try bytes.withUnsafeBytes { bytes in
        var names: [String] = []
        var iterator = EncodedMap(documentFields: bytes).makeIterator()
        while let entry = try iterator.next() {
          _ = try entry.value.content
          names.append(String(decoding: entry.key, as: UTF8.self))
        }
        return names
      }
    }
    #expect(try read(bytes) == fields.map(\.0))
    var ends: [Int] = []
    for count in bytes.indices {
      // A copy of the exact length, so that a read after the end is noticed by the checks of the buffer.
      guard let names = try? read(Array(bytes[..<count])) else { continue }
      #expect(names == fields.prefix(names.count).map(\.0))
      ends.append(count)
    }
    // Only the ends of entries are ends of maps.
    #expect(ends.count == fields.count)
    for place in bytes.indices {
      for byte: UInt8 in [0x00, 0x01, 0x7F, 0x80, 0xFF] {
        var changed = bytes
        changed[place] = byte
        _ = try? read(changed)
      }
    }
  }

  /// Numbers and times of all lengths, and the same bytes with each byte changed or cut off.
  @Test func numbersAndTimesHaveTheContentOfTheLongWay() {
    var values: [Value] = [.timestamp(.init(uncheckedMicroseconds: 0)), .timestamp(.init(uncheckedMicroseconds: -1))]
    for bits in 0..<64 as Range<Int64> {
      for number in [1 << bits, (1 << bits) &- 1, -(1 << (bits % 63))] as [Int64] { values.append(.integer(number)) }
      guard bits < 58 else { continue }
      for time in [1 << bits, (1 << bits) / 1_000_000 * 1_000_000] as [Int64] {
        values.append(.timestamp(.init(uncheckedMicroseconds: min(time, 253_402_300_799_999_999))))
      }
    }
    func check(_ bytes: [UInt8], _ text: String) {
      bytes.withUnsafeBytes { bytes in
        let value = EncodedValue(bytes)
        let short = Result { try value.content }
        let long = Result { try value.anyContent }
        #expect("\(short)" == "\(long)", "\(text): \(Array(bytes))")
      }
    }
    for value in values {
      var bytes: [UInt8] = []
      ValueCodec.append(value, to: &bytes)
      check(bytes, "\(value)")
      for place in bytes.indices {
        check(Array(bytes[..<place]), "\(value), cut")
        for byte: UInt8 in [0x00, 0x01, 0x08, 0x10, 0x7F, 0x80, 0xFF] {
          var changed = bytes
          changed[place] = byte
          check(changed, "\(value), \(byte) at \(place)")
          check(bytes[..<place] + [byte] + bytes[place...], "\(value), \(byte) before \(place)")
        }
      }
    }
  }
}
