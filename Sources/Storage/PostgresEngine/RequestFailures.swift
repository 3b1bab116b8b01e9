import SharedLog

/// The failures of requests to the tables, by kind of request.
///
/// If the role has too few rights or a disk is full, PostgreSQL can answer observations and refuse all appends. Such a failure
/// lasts: the last ``countMin`` requests of a kind failed, the last one not longer ago than ``microsecondsMax``.
struct RequestFailures: Sendable {
  /// The reason why the last request that got no answer got none.
  private(set) var last: PostgresFailure?
  private var kinds: [Kind: Series] = [:]

  private enum Kind: CaseIterable { case append, takeOver, session, observe }

  private struct Series {
    var failure: PostgresFailure
    var count: Int
    var time: Int64
  }

  static let countMin = 3
  static let microsecondsMax: Int64 = 5_000_000

  mutating func noteReply(to request: TableRequest) { kinds[Self.kind(of: request)] = nil }

  /// Notes a failure. `time` is in microseconds.
  mutating func note(_ failure: PostgresFailure, of request: TableRequest, at time: Int64) {
    last = failure
    let kind = Self.kind(of: request)
    kinds[kind] = Series(failure: failure, count: (kinds[kind]?.count ?? 0) + 1, time: time)
  }

  /// Returns a failure that lasts, of appends first.
  func lasting(at time: Int64) -> PostgresFailure? {
    for kind in Kind.allCases {
      if let series = kinds[kind], series.count >= Self.countMin, time - series.time <= Self.microsecondsMax {
        return series.failure
      }
    }
    return nil
  }

  private static func kind(of request: TableRequest) -> Kind {
    switch request {
    case .append, .settle: .append
    case .takeOver: .takeOver
    case .beginSession, .renew: .session
    case .observe: .observe
    }
  }
}
