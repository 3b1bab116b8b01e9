/// Puts the messages of a client in order. It returns each message once, however often and in whatever order POSTs
/// deliver it (listen-and-webchannel.md, section 3.4).
struct MapSequence {
  /// The largest distance of a message from the next one: the number of messages that a client keeps.
  static let gapMax = ChannelForm.mapsMax
  /// The limit of bytes that wait for an earlier message. A client has at most ten POSTs in progress.
  static let heldBytesMax = 16 << 20

  /// The number of the next message.
  private(set) var next = 0
  /// The number of bytes that wait for an earlier message.
  private(set) var heldBytes = 0
  private var held: [Int: [UInt8]?] = [:]

  /// Adds a message. A repeated message is ignored.
  ///
  /// - Throws: ``ChannelFault/malformed(_:)`` if a limit is exceeded.
  mutating func add(_ map: ChannelForm.Map) throws(ChannelFault) {
    guard map.number >= next, held[map.number] == nil else { return }
    let bytes = map.text?.count ?? 0
    // The next message does not wait, so it does not count.
    if map.number > next {
      guard map.number <= next + Self.gapMax else { throw .malformed("Too many messages are missing") }
      guard heldBytes + bytes <= Self.heldBytesMax else { throw .malformed("Too much waits for a missing message") }
    }
    heldBytes += bytes
    held.updateValue(map.text, forKey: map.number)
  }

  /// Returns the next message if it has arrived. Messages without text are skipped.
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
