/// The ID of a channel's session: 128 random bits, so that it cannot be guessed. In a cluster, the number of the node that has
/// the channel is in place of 16 of them. As text it has 32 hexadecimal digits, which need no escaping.
struct SessionID: Hashable, Sendable {
  private let high: UInt64
  private let low: UInt64

  /// Creates a random ID with the system's generator, for a channel of a node, or with 0 of a server alone.
  init(node: UInt16 = 0) {
    var generator = SystemRandomNumberGenerator()
    let random: UInt64 = generator.next()
    high = node == 0 ? random : random >> 16 | UInt64(node) << 48
    low = generator.next()
  }

  /// The number of the node that has the channel. Meaningless if a server alone made the ID.
  var node: UInt16 { UInt16(high >> 48) }

  /// Parses the form of ``text``. Returns `nil` for any other text.
  init?(_ text: String) {
    var parts: [UInt64] = [0, 0]
    let digits = text.utf8
    guard digits.count == 32 else { return nil }
    for (index, digit) in digits.enumerated() {
      let value: UInt8
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
      default: return nil
      }
      parts[index / 16] = parts[index / 16] << 4 | UInt64(value)
    }
    (high, low) = (parts[0], parts[1])
  }

  /// The text that clients send back.
  var text: String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    text.reserveCapacity(32)
    for part in [high, low] {
      for shift in stride(from: 60, through: 0, by: -4) {
        text.append(digits[Int(truncatingIfNeeded: part >> UInt64(shift) & 15)])
      }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
