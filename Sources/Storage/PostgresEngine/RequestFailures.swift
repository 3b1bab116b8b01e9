import SharedLog

/// The failures of requests to the tables, by kind of request.
///
/// If the role has too few rights or a disk is full, PostgreSQL can perform observations and refuse all appends. Such a failure
/// lasts if the last ``countMin`` requests of a kind were refused, until one is performed or gets no answer.
struct RequestFailures: Sendable {
  /// The reason why the last request that got no answer got none.
  private(set) var last: PostgresFailure?
  private var kinds: [Kind: Series] = [:]

  private enum Kind: CaseIterable { case append, takeOver, session, observe }

  private struct Series {
    var failure: PostgresFailure
    var count: Int
  }

  static let countMin = 3

  mutating func noteReply(to request: TableRequest) { kinds[Self.kind(of: request)] = nil }

  mutating func note(_ failure: PostgresFailure, of request: TableRequest) {
    last = failure
    let kind = Self.kind(of: request)
    if case .refused = failure {
      kinds[kind] = Series(failure: failure, count: (kinds[kind]?.count ?? 0) + 1)
    } else {
      kinds[kind] = nil
    }
  }

  /// A failure that lasts, of appends first.
  var lasting: PostgresFailure? {
    Kind.allCases.lazy.compactMap { kinds[$0] }.first { $0.count >= Self.countMin }?.failure
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
