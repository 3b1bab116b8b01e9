import Basics
import Synchronization

/// The open streams by the names of their callers, so that a change of accounts or rules reaches the streams that it
/// concerns even if no document changes.
final class OpenStreams: Sendable {
  /// The entry of a stream.
  struct Entry: Sendable {
    fileprivate let name: String
    fileprivate let number: Int
  }

  private struct State {
    var made = 0
    var checks: [String: [Int: @Sendable () -> Void]] = [:]
  }

  private let state = Mutex(State())
  private let isEnding = Atomic(false)
  private let quota: Quota

  /// Creates a list without streams. `quota` limits their number.
  init(_ quota: Quota) { self.quota = quota }

  /// Adds a stream. `check` is called, on any thread, when its caller must be checked. Call ``remove(_:)`` when the
  /// stream ends. Cost: a short lock.
  /// - Throws: `RESOURCE_EXHAUSTED` if the project has too many streams.
  func add(as caller: Caller, check: @escaping @Sendable () -> Void) throws(Status) -> Entry {
    guard quota.take(1) else { throw Status(.resourceExhausted, quota.error.message) }
    return state.withLock { state in
      state.made += 1
      state.checks[caller.name, default: [:]][state.made] = check
      return Entry(name: caller.name, number: state.made)
    }
  }

  /// Removes a stream. A check that is under way may still be called.
  func remove(_ entry: Entry) {
    let last = state.withLock { state in
      let check = state.checks[entry.name]?.removeValue(forKey: entry.number)
      if state.checks[entry.name]?.isEmpty == true { state.checks[entry.name] = nil }
      return check
    }
    if last != nil { quota.give(1) }
    // Releasing the check may end another stream, which must not happen under the lock.
    withExtendedLifetime(last) {}
  }

  /// Makes the streams of these users check their callers, with `nil` the streams of all callers. Cost: linear in the
  /// number of these streams.
  func check(_ uids: Set<String>?) {
    let checks = state.withLock { state in
      guard let uids else { return state.checks.values.flatMap(\.values) }
      return uids.flatMap { state.checks[$0].map { Array($0.values) } ?? [] }
    }
    for check in checks { check() }
  }

  /// Makes all streams end, and those that are added later.
  func end() {
    isEnding.store(true, ordering: .releasing)
    check(nil)
  }

  /// Checks that streams may continue.
  /// - Throws: `UNAVAILABLE` after ``end()``.
  func requireContinuing() throws(Status) {
    guard isEnding.load(ordering: .acquiring) else { return }
    throw Status(.unavailable, "The project is being reloaded, or is no longer served.")
  }
}
