/// The bytes of responses that a connection holds because its client has not taken them.
struct HeldBytes {
  /// Bytes that a client always seems to have taken, so that one that has just begun to read does not look slow.
  private static let headStartBytes = 16 * 1024

  private(set) var count = 0
  private var sinceMilliseconds = 0
  private var takenBytes = 0

  /// Sets the number of bytes.
  mutating func update(_ bytes: Int, nowMilliseconds: Int) {
    if count == 0 {
      sinceMilliseconds = nowMilliseconds
      takenBytes = 0
    }
    count = bytes
  }

  /// Counts bytes that the client took.
  mutating func taken(_ bytes: Int) {
    if count > 0 { takenBytes += bytes }
  }

  /// The milliseconds that the client would need for these bytes, at its pace since it has held any. `takenBytes` are
  /// taken but not counted yet.
  func drainMilliseconds(_ now: Int, takenBytes more: Int) -> Int {
    count * (now - sinceMilliseconds + 1) / (takenBytes + more + Self.headStartBytes)
  }
}
