import Synchronization

/// Notifies observers that a database has new commits.
package final class ChangeSignal: Sendable {
  /// The handle of an observation, for ``end(_:)``.
  package struct Observation: Hashable, Sendable {
    fileprivate var number: Int
  }

  private struct State {
    var observers: [Observation: @Sendable () -> Void] = [:]
    var made = 0
  }

  private let isObserved = Atomic(false)
  private let state = Mutex(State())

  init() {}

  /// Calls `notify` after every group of commits that became durable, and after the database was cleared.
  ///
  /// The writer's thread calls `notify`, so it must return quickly and leave the work to another thread. Commits
  /// that become durable before this function returns may go unreported.
  package func observe(_ notify: @escaping @Sendable () -> Void) -> Observation {
    state.withLock { state in
      state.made += 1
      let observation = Observation(number: state.made)
      state.observers[observation] = notify
      isObserved.store(true, ordering: .sequentiallyConsistent)
      return observation
    }
  }

  /// Ends an observation. A notification that is already under way may still call `notify`.
  package func end(_ observation: Observation) {
    state.withLock { state in
      state.observers[observation] = nil
      isObserved.store(!state.observers.isEmpty, ordering: .sequentiallyConsistent)
    }
  }

  /// Notifies all observers. Cost without observers: one atomic load.
  func send() {
    guard isObserved.load(ordering: .sequentiallyConsistent) else { return }
    for notify in state.withLock({ Array($0.observers.values) }) { notify() }
  }
}
