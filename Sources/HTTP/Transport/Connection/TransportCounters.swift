import Basics
import Synchronization

/// The counters of a server's loops since the start. Created before the server, so that the metrics can refer to
/// them.
package final class TransportCounters: Sendable {
  let loops: [LoopCounters]

  /// Creates counters for this many loops, at least 1.
  package init(loops: Int) {
    precondition(loops > 0, "a server has at least one loop")
    self.loops = (0..<loops).map { _ in LoopCounters() }
  }

  /// Returns the sums over the loops. Reads about a thousand numbers per loop, which the loops continue to
  /// increment.
  package func sum() -> TransportCounts {
    var counts = TransportCounts()
    for loop in loops { loop.add(to: &counts) }
    return counts
  }
}

/// The numbers of ``TransportCounters`` at one moment.
package struct TransportCounts: Sendable {
  /// The number of request kinds, the values of `Exchange.kind`.
  package static let kinds = 13
  /// The methods that are counted separately, in the order of ``requests(kind:method:statusClass:)``.
  package static let methods: [HTTPMethod] = [.get, .head, .post, .put, .patch, .delete, .options, .other]

  /// Connections accepted.
  package var accepted = 0
  /// Connections refused because the server was full.
  package var turnedAway = 0
  /// Connections closed.
  package var closed = 0
  /// Connections closed because their clients did not take their responses, while too many bytes waited.
  package var shed = 0
  /// Bytes received from clients, counted encrypted if the connection uses TLS.
  package var receivedBytes = 0
  /// Bytes passed to the kernel for clients, counted encrypted if the connection uses TLS.
  package var sentBytes = 0
  var requests = [Int](repeating: 0, count: LoopCounters.requestCount)
  var durations = [Int](repeating: 0, count: LoopCounters.durationCount)
  var microseconds = [Int](repeating: 0, count: TransportCounts.kinds)

  /// Returns the number of requests of a kind and method, by the first digit of the status; 0 for clients that
  /// disconnected before the response.
  package func requests(kind: Int, method: Int, statusClass: Int) -> Int {
    requests[LoopCounters.requestIndex(kind: kind, method: method, statusClass: statusClass)]
  }

  /// Returns how many requests of a kind fall into each of `DurationClasses`.
  package func durations(kind: Int) -> ArraySlice<Int> {
    durations[kind * DurationClasses.count..<(kind + 1) * DurationClasses.count]
  }

  /// Returns the total duration of all requests of a kind.
  package func microseconds(kind: Int) -> Int { microseconds[kind] }
}

/// The counters of one loop. Only the loop writes them. Any thread may read them.
final class LoopCounters: Sendable {
  static let statusClasses = 6
  static let requestCount = 624
  static let durationCount = 208

  let accepted = Atomic(0)
  let turnedAway = Atomic(0)
  let closed = Atomic(0)
  let shed = Atomic(0)
  let receivedBytes = Atomic(0)
  let sentBytes = Atomic(0)
  private let requests = InlineArray<624, Atomic<Int>> { _ in Atomic(0) }
  private let durations = InlineArray<208, Atomic<Int>> { _ in Atomic(0) }
  private let microseconds = InlineArray<13, Atomic<Int>> { _ in Atomic(0) }

  init() {
    // The counts above are literals in types, which Swift cannot compute from constants.
    precondition(Self.requestCount == TransportCounts.kinds * TransportCounts.methods.count * Self.statusClasses)
    precondition(Self.durationCount == TransportCounts.kinds * DurationClasses.count)
    precondition(requests.count == Self.requestCount && durations.count == Self.durationCount)
    precondition(microseconds.count == TransportCounts.kinds)
  }

  /// Adds to a counter of the caller's own loop. A plain load and store is cheaper than an atomic addition.
  @inline(__always)
  func add(_ count: Int, to counter: borrowing Atomic<Int>) {
    counter.store(counter.load(ordering: .relaxed) &+ count, ordering: .relaxed)
  }

  /// Counts a completed request, or one whose client disconnected (status 0).
  func countRequest(kind: Int, method: HTTPMethod, status: Int, microseconds duration: Int) {
    let kind = min(kind, TransportCounts.kinds - 1)
    let statusClass = min(max(status / 100, 0), Self.statusClasses - 1)
    add(1, to: requests[Self.requestIndex(kind: kind, method: method.index, statusClass: statusClass)])
    add(1, to: durations[kind * DurationClasses.count + DurationClasses.place(of: duration)])
    add(duration, to: microseconds[kind])
  }

  /// Counts an HTTP/1 refusal by the transport itself, which has no exchange.
  func countRefusal(status: Int) { countRequest(kind: 0, method: .other, status: status, microseconds: 0) }

  static func requestIndex(kind: Int, method: Int, statusClass: Int) -> Int {
    (kind * TransportCounts.methods.count + method) * statusClasses + statusClass
  }

  fileprivate func add(to counts: inout TransportCounts) {
    counts.accepted += accepted.load(ordering: .relaxed)
    counts.turnedAway += turnedAway.load(ordering: .relaxed)
    counts.closed += closed.load(ordering: .relaxed)
    counts.shed += shed.load(ordering: .relaxed)
    counts.receivedBytes += receivedBytes.load(ordering: .relaxed)
    counts.sentBytes += sentBytes.load(ordering: .relaxed)
    for index in counts.requests.indices { counts.requests[index] += requests[index].load(ordering: .relaxed) }
    for index in counts.durations.indices { counts.durations[index] += durations[index].load(ordering: .relaxed) }
    for index in counts.microseconds.indices {
      counts.microseconds[index] += microseconds[index].load(ordering: .relaxed)
    }
  }
}

extension HTTPMethod {
  /// The position in `TransportCounts.methods`.
  var index: Int {
    switch self {
    case .get: 0
    case .head: 1
    case .post: 2
    case .put: 3
    case .patch: 4
    case .delete: 5
    case .options: 6
    case .other: 7
    }
  }
}
