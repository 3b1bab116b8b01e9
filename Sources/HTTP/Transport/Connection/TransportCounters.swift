import Basics
import Synchronization

/// What the loops of a server counted since the start. Made before the server, so that whoever reports can hold it.
package final class TransportCounters: Sendable {
  /// The counters of each loop.
  let loops: [LoopCounters]

  /// Counters for so many loops, at least 1.
  package init(loops: Int) {
    precondition(loops > 0, "a server has a loop")
    self.loops = (0..<loops).map { _ in LoopCounters() }
  }

  /// The sum over the loops. Cost: a look at a thousand numbers a loop; loops go on counting meanwhile.
  package func sum() -> TransportCounts {
    var counts = TransportCounts()
    for loop in loops { loop.add(to: &counts) }
    return counts
  }
}

/// Numbers of ``TransportCounters`` at a moment.
package struct TransportCounts: Sendable {
  /// Kinds of requests that are told apart: what a handler may give `Exchange.kind`.
  package static let kinds = 12
  /// The methods that are told apart, in the order of ``requests(kind:method:statusClass:)``.
  package static let methods: [HTTPMethod] = [.get, .head, .post, .put, .patch, .delete, .options, .other]

  /// Connections accepted.
  package var accepted = 0
  /// Connections turned away, as there were too many.
  package var turnedAway = 0
  /// Connections that were closed.
  package var closed = 0
  /// Bytes that came from clients; of TLS the sealed ones.
  package var receivedBytes = 0
  /// Bytes given to the kernel for clients; of TLS the sealed ones.
  package var sentBytes = 0
  var requests = [Int](repeating: 0, count: LoopCounters.requestCount)
  var durations = [Int](repeating: 0, count: LoopCounters.durationCount)
  var microseconds = [Int](repeating: 0, count: TransportCounts.kinds)

  /// Requests of a kind and method, by the first digit of the status; 0 for clients that left before there was one.
  package func requests(kind: Int, method: Int, statusClass: Int) -> Int {
    requests[LoopCounters.requestIndex(kind: kind, method: method, statusClass: statusClass)]
  }

  /// How many requests of a kind took how long: a number for each of `DurationClasses`.
  package func durations(kind: Int) -> ArraySlice<Int> {
    durations[kind * DurationClasses.count..<(kind + 1) * DurationClasses.count]
  }

  /// How long all requests of a kind took.
  package func microseconds(kind: Int) -> Int { microseconds[kind] }
}

/// What one loop counted. It alone writes; anybody may read.
final class LoopCounters: Sendable {
  static let statusClasses = 6
  static let requestCount = 576
  static let durationCount = 192

  let accepted = Atomic(0)
  let turnedAway = Atomic(0)
  let closed = Atomic(0)
  let receivedBytes = Atomic(0)
  let sentBytes = Atomic(0)
  private let requests = InlineArray<576, Atomic<Int>> { _ in Atomic(0) }
  private let durations = InlineArray<192, Atomic<Int>> { _ in Atomic(0) }
  private let microseconds = InlineArray<12, Atomic<Int>> { _ in Atomic(0) }

  init() {
    // The counts are literals of types, which cannot be derived.
    precondition(Self.requestCount == TransportCounts.kinds * TransportCounts.methods.count * Self.statusClasses)
    precondition(Self.durationCount == TransportCounts.kinds * DurationClasses.count)
    precondition(requests.count == Self.requestCount && durations.count == Self.durationCount)
    precondition(microseconds.count == TransportCounts.kinds)
  }

  /// Adds to a counter of the caller's own loop: a plain load and store, cheaper than an atomic addition.
  @inline(__always)
  func add(_ count: Int, to counter: borrowing Atomic<Int>) {
    counter.store(counter.load(ordering: .relaxed) &+ count, ordering: .relaxed)
  }

  /// Counts a request that was answered, or whose client left (status 0).
  func countRequest(kind: Int, method: HTTPMethod, status: Int, microseconds duration: Int) {
    let kind = min(kind, TransportCounts.kinds - 1)
    let statusClass = min(max(status / 100, 0), Self.statusClasses - 1)
    add(1, to: requests[Self.requestIndex(kind: kind, method: method.index, statusClass: statusClass)])
    add(1, to: durations[kind * DurationClasses.count + DurationClasses.place(of: duration)])
    add(duration, to: microseconds[kind])
  }

  /// Counts a refusal of the transport itself over HTTP/1, which no exchange saw.
  func countRefusal(status: Int) { countRequest(kind: 0, method: .other, status: status, microseconds: 0) }

  static func requestIndex(kind: Int, method: Int, statusClass: Int) -> Int {
    (kind * TransportCounts.methods.count + method) * statusClasses + statusClass
  }

  fileprivate func add(to counts: inout TransportCounts) {
    counts.accepted += accepted.load(ordering: .relaxed)
    counts.turnedAway += turnedAway.load(ordering: .relaxed)
    counts.closed += closed.load(ordering: .relaxed)
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
  /// Its place in `TransportCounts.methods`.
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
