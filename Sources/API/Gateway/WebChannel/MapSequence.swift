/// Brings the messages of a client into their order: each is taken once, however often and in whatever order POSTs
/// bring it (listen-and-webchannel.md, section 3.4).
struct MapSequence {
  /// How far ahead of the next message one may be: as many as a client keeps.
  static let gapMax = ChannelForm.mapsMax
  /// Bytes of messages that wait for an earlier one. A client has ten POSTs under way at most.
  static let heldBytesMax = 16 << 20

  /// The number of the message that comes next.
  private(set) var next = 0
  /// Bytes of messages that wait for an earlier one.
  private(set) var heldBytes = 0
  private var held: [Int: [UInt8]?] = [:]

  /// Takes a message in; one that was there before is ignored.
  /// - Throws: ``ChannelFault/malformed(_:)`` beyond the bounds above.
  mutating func add(_ map: ChannelForm.Map) throws(ChannelFault) {
    guard map.number >= next, held[map.number] == nil else { return }
    let bytes = map.text?.count ?? 0
    // The next one does not wait.
    if map.number > next {
      guard map.number <= next + Self.gapMax else { throw .malformed("Too many messages are missing") }
      guard heldBytes + bytes <= Self.heldBytesMax else { throw .malformed("Too much waits for a missing message") }
    }
    heldBytes += bytes
    held.updateValue(map.text, forKey: map.number)
  }

  /// The next message, if it is there; those that only count are passed over.
  mutating func takeNext() -> [UInt8]? {
    while let map = held.removeValue(forKey: next) {
      next += 1
      guard let map else { continue }
      heldBytes -= map.count
      return map
    }
    return nil
  }
}
