import Glibc
package import RulesEngine
import Synchronization

/// The limits of what callers may request in a minute; `nil` for no limit.
package struct RequestRates: Equatable, Sendable {
  /// Requests of one signed-in user.
  package var userRequests: Int?
  /// Requests of unauthenticated callers from one address.
  package var addressRequests: Int?
  /// Documents that one signed-in user reads.
  package var userReads: Int?
  /// Documents that one signed-in user writes.
  package var userWrites: Int?

  package init(userRequests: Int? = nil, addressRequests: Int? = nil, userReads: Int? = nil, userWrites: Int? = nil) {
    (self.userRequests, self.addressRequests) = (userRequests, addressRequests)
    (self.userReads, self.userWrites) = (userReads, userWrites)
  }

  /// Whether nothing is limited.
  package var isEmpty: Bool { self == RequestRates() }

  fileprivate subscript(kind: RateLimiter.Kind) -> Int? {
    switch kind {
    case .userRequests: userRequests
    case .addressRequests: addressRequests
    case .userReads: userReads
    case .userWrites: userWrites
    }
  }
}

/// Limits the requests, reads and writes of each caller in a minute. Administrators are not limited.
///
/// Each caller has an allowance that requests consume and time restores evenly. An idle caller may use the allowance of
/// a whole minute at once. A request is refused only if nothing is left, so a large one can consume more than that, and
/// delays the next ones.
///
/// Memory is bounded: a fixed table contains the callers. If more call at the same time, the one with the most left of
/// its allowance is forgotten. Cost: one short lock for each check, and no allocation.
package final class RateLimiter: Sendable {
  /// The kinds of allowances.
  package enum Kind: Int, CaseIterable, Sendable {
    case userRequests, addressRequests, userReads, userWrites

    /// The name in metrics.
    package var name: String {
      switch self {
      case .userRequests: "user_requests"
      case .addressRequests: "address_requests"
      case .userReads: "user_reads"
      case .userWrites: "user_writes"
      }
    }

    fileprivate var what: String {
      switch self {
      case .userRequests: "requests per minute and user"
      case .addressRequests: "requests per minute and address without sign-in"
      case .userReads: "documents read per minute and user"
      case .userWrites: "documents written per minute and user"
      }
    }
  }

  /// An allowance of a caller. It is consumed until the time at which it is full again.
  private struct Slot {
    var key: UInt64 = 0
    /// Nanoseconds of the clock.
    var fullAt: Int64 = 0
  }

  /// A part of the table with a lock of its own.
  private final class Shard: Sendable {
    let slots = Mutex([Slot](repeating: Slot(), count: RateLimits.callersMax / RateLimiter.shards))
  }

  private static let shards = 64
  /// The slots in which a caller can be.
  private static let ways = 8
  private static let minute: Int64 = 60_000_000_000

  private let rates: RequestRates
  private let table = (0..<RateLimiter.shards).map { _ in Shard() }
  private let refusals = InlineArray<4, Atomic<Int>> { _ in Atomic(0) }
  private let now: @Sendable () -> Int64

  /// Creates a limiter. `now` returns the time of a monotonic clock, in nanoseconds.
  package init(_ rates: RequestRates, now: @escaping @Sendable () -> Int64 = RateLimiter.monotonic) {
    self.rates = rates
    self.now = now
  }

  /// The time of the system's monotonic clock, in nanoseconds.
  package static let monotonic: @Sendable () -> Int64 = {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// Whether something of this kind is limited.
  package func limits(_ kind: Kind) -> Bool { rates[kind] != nil }

  /// The number of refused requests since the start.
  package func refusals(_ kind: Kind) -> Int { refusals[kind.rawValue].load(ordering: .relaxed) }

  /// Consumes `cost` of the allowance of a caller, which `caller` identifies.
  /// - Throws: `RESOURCE_EXHAUSTED` if nothing is left.
  package func take(_ kind: Kind, _ cost: Int = 1, of caller: (inout Hasher) -> Void) throws(Status) {
    guard let rate = rates[kind] else { return }
    let seconds = change(kind, rate, cost, isCheck: true, caller)
    guard seconds > 0 else { return }
    refusals[kind.rawValue].wrappingAdd(1, ordering: .relaxed)
    var status = Status(
      .resourceExhausted, "Too many requests: the limit is \(rate) \(kind.what). Try again in \(seconds) s.")
    status.retryAfterSeconds = seconds
    throw status
  }

  /// Consumes `cost` of the allowance of a caller even if nothing is left.
  package func charge(_ kind: Kind, _ cost: Int, of caller: (inout Hasher) -> Void) {
    guard cost > 0, let rate = rates[kind] else { return }
    _ = change(kind, rate, cost, isCheck: false, caller)
  }

  /// Returns the seconds after which the caller may try again, or 0 if the cost was consumed.
  private func change(
    _ kind: Kind, _ rate: Int, _ cost: Int, isCheck: Bool, _ caller: (inout Hasher) -> Void
  ) -> Int {
    var hasher = Hasher()
    hasher.combine(kind.rawValue)
    caller(&hasher)
    let hash = UInt64(bitPattern: Int64(hasher.finalize()))
    let now = now()
    let interval = Self.minute / Int64(rate)
    return table[Int(hash % UInt64(Self.shards))].slots.withLock { slots in
      let sets = slots.count / Self.ways
      let first = Int(hash / UInt64(Self.shards) % UInt64(sets)) * Self.ways
      var index = first
      for candidate in first..<first + Self.ways {
        if slots[candidate].key == hash {
          index = candidate
          break
        }
        if slots[candidate].fullAt < slots[index].fullAt { index = candidate }
      }
      let fullAt = slots[index].key == hash ? max(slots[index].fullAt, now) : now
      let wait = fullAt + interval - now - Self.minute
      if isCheck, wait > 0 { return Int((wait + 999_999_999) / 1_000_000_000) }
      // A caller with many concurrent requests owes no more than one can cost.
      let debtMax = interval * Int64(RateLimits.costMax)
      let debt = interval * Int64(min(cost, RateLimits.costMax))
      slots[index] = Slot(key: hash, fullAt: min(fullAt + debt, now + Self.minute + debtMax))
      return 0
    }
  }
}

extension RateLimiter {
  /// Consumes an allowance of a user. Callers without a user ID are not limited.
  /// - Throws: `RESOURCE_EXHAUSTED` if nothing is left.
  package func take(_ kind: Kind, _ cost: Int = 1, of user: RulesAuth?) throws(Status) {
    guard let uid = user?.uid else { return }
    try take(kind, cost) { $0.combine(uid) }
  }

  /// Consumes an allowance of a user even if nothing is left.
  func charge(_ kind: Kind, _ cost: Int, of user: RulesAuth?) {
    guard let uid = user?.uid else { return }
    charge(kind, cost) { $0.combine(uid) }
  }
}

/// Limits of ``RateLimiter``.
package enum RateLimits {
  /// The callers whose requests are counted, for all limits together. Each takes 16 bytes, and only if a limit is set.
  /// Beyond it, the callers with the most left of their allowance are forgotten.
  package static let callersMax = 65_536
  /// The largest limit for a minute.
  package static let perMinuteMax = 1_000_000_000
  /// The most that one request consumes, and that a caller can owe beyond its allowance.
  package static let costMax = 100_000
}
