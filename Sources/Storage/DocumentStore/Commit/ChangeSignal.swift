import Synchronization

/// Tells whoever follows a database that there is something new in it.
package final class ChangeSignal: Sendable {
  /// What ``observe(_:)`` gave, to end it with.
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

  /// Calls `notify` from now on after every group of commits that became durable, and after the database was cleared,
  /// on the writer's thread: it must only pass the word on. What is durable before this returns may go untold.
  package func observe(_ notify: @escaping @Sendable () -> Void) -> Observation {
    state.withLock { state in
      state.made += 1
      let observation = Observation(number: state.made)
      state.observers[observation] = notify
      isObserved.store(true, ordering: .sequentiallyConsistent)
      return observation
    }
  }

  /// Ends an observation. A call that is under way may still come.
  package func end(_ observation: Observation) {
    state.withLock { state in
      state.observers[observation] = nil
      isObserved.store(!state.observers.isEmpty, ordering: .sequentiallyConsistent)
    }
  }

  /// Tells everybody. Cost where nobody listens: a load.
  func send() {
    guard isObserved.load(ordering: .sequentiallyConsistent) else { return }
    for notify in state.withLock({ Array($0.observers.values) }) { notify() }
  }
}
