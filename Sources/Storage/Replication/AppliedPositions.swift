import LogEngine

/// The newest positions of the log that a replica has applied. A position has a hash of all entries up to it, so a replica
/// that has the owner's position has the owner's entries, and no others.
struct AppliedPositions: Sendable {
  /// The number of positions that are kept.
  static let countMax = 256

  private var chains = [UInt64](repeating: 0, count: Self.countMax)
  private var last: UInt64 = 0
  private var count = 0

  /// Notes the next position. If it does not follow the last one, the others are forgotten.
  mutating func append(_ position: LogPosition) {
    count = position.sequence == last &+ 1 ? min(count + 1, Self.countMax) : 1
    last = position.sequence
    chains[Int(position.sequence % UInt64(Self.countMax))] = position.chain
  }

  /// Forgets all positions.
  mutating func removeAll() { count = 0 }

  /// Whether a position is the last one.
  func isLast(_ position: LogPosition) -> Bool { position.sequence == last && comparison(with: position) == .reached }

  /// Compares with a position of the owner.
  func comparison(with position: LogPosition) -> ReadIndex.Comparison {
    guard count > 0, position.sequence <= last else { return .ahead }
    guard last - position.sequence < UInt64(count) else { return .unknown }
    return chains[Int(position.sequence % UInt64(Self.countMax))] == position.chain ? .reached : .unknown
  }
}
