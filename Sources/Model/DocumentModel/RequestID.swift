/// The identity of a request that may arrive several times: 16 bytes, of which the last eight are random.
///
/// A node that relays a request to the owner of a database chooses one, and repeats the request with the same ID when it
/// has lost the response. The database does the request once; see ``DocumentStore/CommitRequest/id``.
package struct RequestID: Hashable, Sendable {
  /// The number of bytes.
  package static let byteCount = 16

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

  /// Creates the ID of 16 bytes. Returns `nil` for any other number of bytes.
  package init?(bytes: some Collection<UInt8>) {
    guard bytes.count == Self.byteCount else { return nil }
    var halves: (UInt64, UInt64) = (0, 0)
    for (place, byte) in bytes.enumerated() {
      if place < 8 { halves.0 = halves.0 << 8 | UInt64(byte) } else { halves.1 = halves.1 << 8 | UInt64(byte) }
    }
    self.init(high: halves.0, low: halves.1)
  }

  /// The 16 bytes.
  package var bytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Self.byteCount)
    for half in [high, low] { withUnsafeBytes(of: half.bigEndian) { bytes.append(contentsOf: $0) } }
    return bytes
  }

  /// The two halves. The first halves of the IDs that a relay chooses ascend in bursts.
  package var numbers: (UInt64, UInt64) { (high, low) }

  /// Returns the ID of a part of the request. For example, each write of a batch is a part. Parts are numbered from 0. The
  /// IDs of all parts differ from each other and from that of the request.
  package func part(_ index: Int) -> RequestID {
    RequestID(high: high, low: low &+ UInt64(truncatingIfNeeded: index) &+ 1)
  }
}
