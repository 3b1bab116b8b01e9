package import DatabaseService
package import RulesTesting
import Synchronization

/// The limits of the log of requests.
package enum DecisionLogLimits {
  /// The requests that the log keeps; the oldest ones make room for new ones. Source: Hearth.
  package static let requestsMax = 1000
  /// The documents of all requests in the log, in bytes. Source: Hearth.
  package static let bytesMax = 32 << 20
  /// The expressions that the response about one request contains. Source: Hearth.
  package static let expressionsMax = 2000
  /// The time for which changes to rules are tried with the cases of one request, in seconds. Source: Hearth.
  package static let mutationSecondsMax = 20
  /// The evaluations of a request that is tried by other rules. Each one finds documents that the rules look up. Source:
  /// Hearth.
  package static let trialRoundsMax = 32
  /// The documents of the requests that a production server has recorded, in bytes. Source: Hearth.
  package static let recordedBytesMax = 8 << 20
  /// The time for which a production server records decisions, in seconds. Source: Hearth.
  package static let recordedSecondsMax = 600
}

/// The last requests about which rules decided.
///
/// The log keeps each request with the documents that the rules read, so it can evaluate the request again: with a
/// trace, or by other rules. Serving costs one record for each decision and no trace. Any number of threads may use the
/// log.
package final class DecisionLog: Sendable {
  /// A request in the log.
  struct Entry: Sendable {
    /// Ascending, from 1.
    let number: Int
    let record: AccessRecord
    let bytes: Int
  }

  private struct State {
    /// The requests, oldest first. Those before `first` are evicted.
    var entries: [Entry?] = []
    var first = 0
    var bytes = 0
    var last = 0

    mutating func evictOldest() {
      bytes -= entries[first]?.bytes ?? 0
      entries[first] = nil
      first += 1
      // Moving the rest costs little for each request if it is seldom.
      if first == 256 {
        entries.removeFirst(first)
        first = 0
      }
    }
  }

  private let state = Mutex(State())
  private let tests: @Sendable (AccessRecord) -> [RuleTest]
  private let bytesMax: Int

  /// Creates an empty log. `tests` returns the cases of a record: one for most requests, none if the request cannot be
  /// expressed, and several for a commit that verifies documents. `bytesMax` bounds the documents of all requests.
  package init(
    bytesMax: Int = DecisionLogLimits.bytesMax, tests: @escaping @Sendable (AccessRecord) -> [RuleTest]
  ) {
    self.bytesMax = bytesMax
    self.tests = tests
  }

  /// Adds a request. `bytes` is the size of its documents.
  package func add(_ record: AccessRecord, bytes: Int) {
    state.withLock { state in
      state.last += 1
      state.entries.append(Entry(number: state.last, record: record, bytes: bytes))
      state.bytes += bytes
      while state.entries.count - state.first > DecisionLogLimits.requestsMax
        || state.bytes > bytesMax
      {
        state.evictOldest()
      }
    }
  }

  /// Empties the log.
  func removeAll() {
    state.withLock { state in
      state.entries = []
      state.first = 0
      state.bytes = 0
    }
  }

  /// The requests after a number, oldest first.
  func entries(after number: Int = 0) -> [Entry] {
    state.withLock { state in state.entries[state.first...].compactMap { $0 }.filter { $0.number > number } }
  }

  /// Returns a request by its number, or `nil` if the log does not have it.
  func entry(_ number: Int) -> Entry? {
    state.withLock { state in state.entries.first { $0?.number == number } ?? nil }
  }

  /// Returns the cases of a request.
  func tests(of entry: Entry) -> [RuleTest] { tests(entry.record) }
}
