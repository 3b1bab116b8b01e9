/// The identity of a request that may arrive several times: 16 random bytes.
///
/// A node that relays a request to the owner of a database chooses one, and repeats the request with the same ID when it
/// has lost the response. The database does the request once; see ``DocumentStore/CommitRequest/id``.
package struct RequestID: Hashable, Sendable {
  /// The number of digits of the text form.
  package static let digits = 32

  private var high: UInt64
  private var low: UInt64

  /// Creates a random ID.
  package static func random() -> RequestID {
    var generator = SystemRandomNumberGenerator()
    return random(using: &generator)
  }

  /// Creates an ID with the numbers of a generator.
  package static func random(using generator: inout some RandomNumberGenerator) -> RequestID {
    RequestID(high: generator.next(), low: generator.next())
  }

  private init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  /// Reads the text form: 32 hexadecimal digits. Returns `nil` for any other text.
  package init?(text: UnsafeRawBufferPointer) {
    guard text.count == Self.digits else { return nil }
    var halves: (UInt64, UInt64) = (0, 0)
    for (place, digit) in text.enumerated() {
      let value: UInt8
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): value = digit - UInt8(ascii: "A") + 10
      default: return nil
      }
      if place < 16 { halves.0 = halves.0 << 4 | UInt64(value) } else { halves.1 = halves.1 << 4 | UInt64(value) }
    }
    self.init(high: halves.0, low: halves.1)
  }

  /// The 16 bytes, in the order of the text form.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(16)
    for half in [high, low] { withUnsafeBytes(of: half.bigEndian) { bytes.append(contentsOf: $0) } }
    return bytes
  }

  /// The text form, in lower case.
  package var text: String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
    return String(decoding: text, as: UTF8.self)
  }

  /// The two halves, as random numbers.
  package var numbers: (UInt64, UInt64) { (high, low) }

  /// Returns the ID of one part of the request, such as one write of a batch. Parts are numbered from 0. The IDs of all
  /// parts differ from each other and from that of the request.
  package func part(_ index: Int) -> RequestID {
    RequestID(high: high, low: low &+ UInt64(truncatingIfNeeded: index) &+ 1)
  }
}
