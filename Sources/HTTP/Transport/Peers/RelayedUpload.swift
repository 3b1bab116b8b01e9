/// The body of a relayed request on its way to a peer: the bytes that have arrived and were not sent. A short body is kept
/// from its start, so that the request can be sent again.
struct RelayedUpload {
  /// The most sent bytes that are kept for another try. A peer's window is not larger, so no more can be sent to a peer
  /// that refuses the head of a request.
  static let keptBytesMax = 256 * 1024
  /// The unsent bytes above which the client has to wait.
  static let unsentBytesMax = 64 * 1024

  private var bytes: [UInt8] = []
  private var start = 0
  /// Whether all bytes so far are kept.
  private(set) var isKept = true
  /// Whether the client has sent the whole body.
  var isComplete = false

  var unsentCount: Int { bytes.count - start }
  /// Whether the whole body is on its way to the peer.
  var isSent: Bool { isComplete && unsentCount == 0 }
  /// Whether the client has to wait.
  var isFull: Bool { unsentCount > Self.unsentBytesMax }
  /// Whether there is room for a good deal of bytes.
  var hasRoom: Bool { unsentCount <= Self.unsentBytesMax / 2 }

  /// Adds bytes. Returns the number of bytes that are no longer held.
  mutating func append(_ more: UnsafeRawBufferPointer) -> Int {
    bytes.append(raw: more)
    return forgetSent()
  }

  /// Copies the next bytes to `space`. Returns their number, and the number of bytes that are no longer held.
  mutating func take(into space: UnsafeMutableRawBufferPointer) -> (count: Int, released: Int) {
    let count = min(space.count, unsentCount)
    bytes.withUnsafeBytes { space.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + count])) }
    start += count
    if start > Self.keptBytesMax { isKept = false }
    return (count, forgetSent())
  }

  /// Begins again, for another try.
  mutating func rewind() {
    precondition(isKept, "the body is not complete")
    start = 0
  }

  /// Keeps bytes no longer than until they are sent. Returns the number of bytes that are no longer held.
  mutating func forgetKept() -> Int {
    isKept = false
    return forgetSent()
  }

  private mutating func forgetSent() -> Int {
    // Moving bytes costs less if it happens rarely.
    guard !isKept, start > 0, start == bytes.count || start >= Self.unsentBytesMax else { return 0 }
    let released = start
    if start == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.unsentBytesMax)
    } else {
      bytes.removeFirst(start)
    }
    start = 0
    return released
  }
}
