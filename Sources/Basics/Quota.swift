import Synchronization

/// A limit for a project, and the amount that the project uses. It only counts; its users store the amounts.
///
/// Any thread may call it. Each call costs one or two atomic operations. Limits can change at any time. If a project
/// already has more than its new limit, it keeps what it has.
package final class Quota: Sendable {
  /// The unit of a quota.
  package enum Kind: String, CaseIterable, Sendable {
    /// The bytes of documents.
    case documents
    /// The bytes of files, with kept versions.
    case files
    case accounts
    /// The open streams of listeners, writes and change feeds.
    case streams
    /// The requests in a minute.
    case requests

    /// The name of the option that sets the limit.
    package var option: String { "quota-\(rawValue)" }
    /// Whether the amount is in bytes.
    package var isInBytes: Bool { self == .documents || self == .files }

    fileprivate var what: String {
      switch self {
      case .documents: "bytes of documents"
      case .files: "bytes of files"
      case .accounts: "accounts"
      case .streams: "open streams"
      case .requests: "requests per minute"
      }
    }

    fileprivate var remedy: String {
      switch self {
      case .documents: "Delete documents"
      case .files: "Delete files"
      case .accounts: "Delete accounts"
      case .streams: "End streams that are not needed"
      case .requests: "Wait a moment"
      }
    }
  }

  package let kind: Kind
  private let project: String
  private let limitOrMax: Atomic<Int>
  private let usedAmount = Atomic(0)
  private let refusedCount = Atomic(0)

  /// Creates a quota of which nothing is used. `limit` is `nil` if the amount is not limited.
  package init(_ kind: Kind, of project: String, limit: Int? = nil) {
    self.kind = kind
    self.project = project
    limitOrMax = Atomic(limit ?? .max)
  }

  /// The limit, or `nil` for no limit.
  package var limit: Int? {
    let limit = limitOrMax.load(ordering: .relaxed)
    return limit == .max ? nil : limit
  }

  /// Changes the limit.
  package func setLimit(_ limit: Int?) { limitOrMax.store(limit ?? .max, ordering: .relaxed) }

  /// The amount in use. It can exceed the limit, such as after the limit was lowered.
  package var used: Int { usedAmount.load(ordering: .relaxed) }

  /// The number of refused requests since the start.
  package var refusals: Int { refusedCount.load(ordering: .relaxed) }

  /// Takes an amount, or returns `false` if the limit would be exceeded. Taking 0 always succeeds.
  package func take(_ amount: Int) -> Bool {
    guard amount > 0 else { return true }
    var used = usedAmount.load(ordering: .relaxed)
    while true {
      let (sum, isTooLarge) = used.addingReportingOverflow(amount)
      guard !isTooLarge, sum <= limitOrMax.load(ordering: .relaxed) else {
        countRefusal()
        return false
      }
      let result = usedAmount.weakCompareExchange(expected: used, desired: sum, ordering: .relaxed)
      if result.exchanged { return true }
      used = result.original
    }
  }

  /// Gives back an amount that was taken.
  package func give(_ amount: Int) { change(by: -amount) }

  /// Changes the amount in use without regard to the limit.
  package func change(by amount: Int) { usedAmount.wrappingAdd(amount, ordering: .relaxed) }

  /// Sets the amount in use. For quotas that one store uses, which counts by itself.
  package func set(_ amount: Int) { usedAmount.store(amount, ordering: .relaxed) }

  /// Checks the growth of a store that counts by itself, from `amount` to `larger`.
  /// - Throws: ``error`` if it grows beyond the limit.
  package func check(growthFrom amount: Int, to larger: Int) throws(QuotaError) {
    guard larger > amount, larger > limitOrMax.load(ordering: .relaxed) else { return }
    countRefusal()
    throw error
  }

  /// Counts a request that another check refused.
  package func countRefusal() { refusedCount.wrappingAdd(1, ordering: .relaxed) }

  /// The error for a request that the quota refuses. It names the project, the quota and the remedy.
  package var error: QuotaError {
    QuotaError(
      message: "Project \(project) has reached its quota of \(limit ?? .max) \(kind.what). \(kind.remedy), or ask the "
        + "operator of the server to raise \(kind.option).")
  }
}

/// The error of a request that would exceed a quota. Nothing was changed.
package struct QuotaError: Error, Equatable, Sendable {
  /// The text for the client.
  package let message: String
}
