/// A token bucket that limits the work a client can cause without making progress. It fills over time and with every
/// frame that carries part of a request or a response. Canceled streams cost most, because each may have started
/// work (CVE-2023-44487, CVE-2025-8671).
struct HTTP2FloodGuard {
  /// The cost of a control frame: PING, SETTINGS, PRIORITY, or DATA without data.
  static let controlCost = 10
  /// The cost of a WINDOW_UPDATE. Clients send one or two per frame of a response.
  static let windowCost = 4
  /// The cost of a stream reset by either side.
  static let resetCost = 20
  /// The bytes of header fields that cost one token, beyond those of ``HTTP2HeaderBlock/freeBytes``.
  static let fieldBytesPerToken = 512
  /// The tokens returned for a frame of a response.
  static let responseGain = 20

  private static let tokensMax = 10_000
  private static let tokensPerSecond = 2_000

  private var tokens = tokensMax
  private var countedMilliseconds: Int

  /// Creates a full bucket.
  init(nowMilliseconds: Int) {
    countedMilliseconds = nowMilliseconds
  }

  /// Takes tokens. Returns `false` if too few are left; the connection should then end.
  mutating func spend(_ cost: Int, nowMilliseconds: Int) -> Bool {
    if tokens < cost { refill(nowMilliseconds) }
    guard tokens >= cost else { return false }
    tokens -= cost
    return true
  }

  /// Returns tokens to the bucket.
  mutating func gain(_ gain: Int) {
    tokens = min(tokens + gain, Self.tokensMax)
  }

  private mutating func refill(_ now: Int) {
    let elapsed = min(max(now - countedMilliseconds, 0), 1000 * Self.tokensMax / Self.tokensPerSecond)
    gain(elapsed * Self.tokensPerSecond / 1000)
    countedMilliseconds = now
  }
}

/// The expansion of the header block that a connection receives. A byte of a block can repeat a field of 4 KiB, and each
/// repetition is checked and perhaps copied.
struct HTTP2HeaderBlock {
  /// The bytes of fields that are not charged, whatever the length of the block. The fields that a client has stored in
  /// the compression state, each repeated once, have at most 4,096 bytes.
  static let freeBytes = 8 * 1024

  private var receivedBytes = 0
  private var fieldBytes = 0
  private var chargedBytes = 0

  /// Counts a frame of the block.
  mutating func received(_ bytes: Int) { receivedBytes += bytes }

  /// Counts a field. Returns the tokens that it costs.
  mutating func expanded(_ bytes: Int) -> Int {
    fieldBytes += bytes + 32
    // Compressed text has at least five eighths of its length.
    let excess = fieldBytes - Self.freeBytes - 2 * receivedBytes - chargedBytes
    guard excess >= HTTP2FloodGuard.fieldBytesPerToken else { return 0 }
    let tokens = excess / HTTP2FloodGuard.fieldBytesPerToken
    chargedBytes += tokens * HTTP2FloodGuard.fieldBytesPerToken
    return tokens
  }
}
