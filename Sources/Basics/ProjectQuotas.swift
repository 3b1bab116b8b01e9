import Synchronization

/// The limits of a project; `nil` for no limit.
package struct QuotaLimits: Equatable, Sendable {
  /// The largest limit of bytes.
  package static let max = 1 << 60

  private var limits: [Quota.Kind: Int] = [:]

  /// Creates limits that limit nothing.
  package init() {}

  package subscript(_ kind: Quota.Kind) -> Int? {
    get { limits[kind] }
    set { limits[kind] = newValue }
  }

  /// Whether nothing is limited.
  package var isEmpty: Bool { limits.isEmpty }

  /// Returns these limits, and those of `defaults` where these have none.
  package func filled(from defaults: QuotaLimits) -> QuotaLimits {
    var filled = self
    filled.limits.merge(defaults.limits) { own, _ in own }
    return filled
  }
}

/// The quotas of a project.
package final class ProjectQuotas: Sendable {
  package let documents: Quota
  package let files: Quota
  package let accounts: Quota
  package let streams: Quota
  /// The quota of requests, whose `used` is always 0.
  package let requests: Quota
  /// The quota of requests as an allowance.
  package let requestRate: RequestQuota

  /// Creates quotas of which nothing is used. `now` returns the time of a monotonic clock, in nanoseconds.
  package init(of project: String, _ limits: QuotaLimits = QuotaLimits(), now: @escaping @Sendable () -> Int64) {
    func quota(_ kind: Quota.Kind) -> Quota { Quota(kind, of: project, limit: limits[kind]) }
    (documents, files, accounts) = (quota(.documents), quota(.files), quota(.accounts))
    (streams, requests) = (quota(.streams), quota(.requests))
    requestRate = RequestQuota(requests, now: now)
  }

  /// All quotas.
  package var all: [Quota] { [documents, files, accounts, streams, requests] }

  /// Changes the limits.
  package func apply(_ limits: QuotaLimits) { for quota in all { quota.setLimit(limits[quota.kind]) } }
}

/// The requests that a project may receive in a minute. The allowance is restored evenly. After a minute without
/// requests, the requests of a minute are accepted at once.
package final class RequestQuota: Sendable {
  private static let minute: Int64 = 60_000_000_000

  private let quota: Quota
  private let now: @Sendable () -> Int64
  /// The time at which the allowance is full again, in nanoseconds of the clock.
  private let fullAt = Atomic<Int64>(.min)

  /// Creates a full allowance. `now` returns the time of a monotonic clock, in nanoseconds.
  init(_ quota: Quota, now: @escaping @Sendable () -> Int64) {
    precondition(quota.kind == .requests, "an allowance is for requests")
    self.quota = quota
    self.now = now
  }

  /// Whether requests are limited. Cost: one load.
  package var isLimited: Bool { quota.limit != nil }

  /// Counts a request. Returns `nil` if it is accepted, otherwise the error and the seconds until the next request is
  /// accepted.
  package func refusal() -> (error: QuotaError, seconds: Int)? {
    guard let limit = quota.limit else { return nil }
    let now = now()
    let interval = Self.minute / Int64(max(1, limit))
    var full = fullAt.load(ordering: .relaxed)
    while true {
      let next = max(full, now) + interval
      let wait = next - now - Self.minute
      if wait > 0 {
        quota.countRefusal()
        return (quota.error, Int((wait + 999_999_999) / 1_000_000_000))
      }
      let result = fullAt.weakCompareExchange(expected: full, desired: next, ordering: .relaxed)
      if result.exchanged { return nil }
      full = result.original
    }
  }
}
