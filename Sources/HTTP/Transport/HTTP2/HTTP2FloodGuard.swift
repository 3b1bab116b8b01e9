/// Counts what a client may cost without asking for anything: a bucket of tokens that fills with time, and with every
/// frame that carries part of a request or a reply. Cancelled streams cost most, as each may have begun work
/// (CVE-2023-44487, CVE-2025-8671).
struct HTTP2FloodGuard {
  /// What a frame of bookkeeping costs: PING, SETTINGS, PRIORITY, DATA without data.
  static let controlCost = 10
  /// What a WINDOW_UPDATE costs: clients send one or two for each frame of a reply.
  static let windowCost = 4
  /// What a stream that is reset costs, whoever resets it.
  static let resetCost = 20
  /// What a frame of a reply pays back.
  static let responseGain = 20

  private static let tokensMax = 10_000
  private static let tokensPerSecond = 2_000

  private var tokens = tokensMax
  private var countedMilliseconds: Int

  /// Starts full.
  init(nowMilliseconds: Int) {
    countedMilliseconds = nowMilliseconds
  }

  /// Takes tokens; `false` when there are not so many, and the connection should end.
  mutating func spend(_ cost: Int, nowMilliseconds: Int) -> Bool {
    if tokens < cost { refill(nowMilliseconds) }
    guard tokens >= cost else { return false }
    tokens -= cost
    return true
  }

  /// Pays tokens back.
  mutating func gain(_ gain: Int) {
    tokens = min(tokens + gain, Self.tokensMax)
  }

  private mutating func refill(_ now: Int) {
    let elapsed = min(max(now - countedMilliseconds, 0), 1000 * Self.tokensMax / Self.tokensPerSecond)
    gain(elapsed * Self.tokensPerSecond / 1000)
    countedMilliseconds = now
  }
}
