import Dispatch
package import DocumentModel
package import DocumentStore
import Synchronization

/// Distributes the changes of one database to the listeners of its targets.
///
/// 1. The writer signals that a commit is durable. The hub then *steps*, on its own queue, from the version it has
///    reached to the newest one. One step handles all commits that have arrived in the meantime.
/// 2. A step reads the change log, finds the views that each changed document may affect, evaluates each view once,
///    and delivers one batch to the mailbox of each affected listener. It never waits for a listener.
/// 3. A listener *joins* a target at the current version and is notified of all later changes. It reads the results
///    at that version itself (``CatchUp``), on its own thread and at its own pace.
/// 4. A listener that does not empty its mailbox is *detached*. When it reads its mailbox again, it catches up from
///    the change log.
package final class WatchHub: Sendable {
  package let database: DocumentDatabase
  private let queue: DispatchQueue
  /// Safe because it is used only on ``queue``, which is serial.
  private nonisolated(unsafe) var state: WatchHubState
  private let isStepDue = Atomic(false)
  private let observation = Mutex<ChangeSignal.Observation?>(nil)
  private let isStopped = Atomic(false)

  /// The interval between calls of ``beat()``, in seconds.
  package static let beatSeconds = 4

  /// Follows a database until ``stop()``. Without a timer, the caller must call ``beat()`` itself.
  package init(_ database: DocumentDatabase, hasTimer: Bool = true) {
    self.database = database
    queue = DispatchQueue(label: "hearth.watch.\(database.id.name)")
    state = WatchHubState()
    observation.withLock { $0 = database.changes.observe { [weak self] in self?.stepSoon() } }
    if hasTimer { beatLater() }
  }

  /// Stops the hub. Listeners are not notified any more.
  package func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    if let observation = observation.withLock({ $0.take() }) { database.changes.end(observation) }
  }

  // MARK: Requests of listeners

  /// Starts to follow a target. The hub responds with ``WatchMailbox/Event/joined(_:)``.
  ///
  /// Every commit acknowledged before this call is at or below the joined version. `guards` are the documents on
  /// which the authorization of the target depends, with the versions that the authorization read. If the
  /// version of one differs now or changes later, the target must be authorized again.
  package func join(
    _ mailbox: WatchMailbox, target: Int, _ selection: TargetSelection, guards: [(key: DocumentKey, version: Int64)]
  ) {
    run(for: mailbox) { state, reader in
      let subscriber = state.subscriber(for: mailbox)
      state.add(target, selection, to: subscriber)
      state.setGuards(guards, of: target, subscriber, &reader)
      state.notifyJoined(subscriber, [target])
    }
  }

  /// Wakes a listener after every commit from now on, regardless of the changes.
  package func subscribeToAll(_ mailbox: WatchMailbox) {
    run(for: mailbox) { state, _ in state.subscribeToAll(mailbox) }
  }

  /// Follows a target again from the current version, after the listener was notified that its changes are not
  /// known.
  package func refresh(_ mailbox: WatchMailbox, target: Int) {
    run(for: mailbox) { state, _ in
      guard let subscriber = state.subscribers[ObjectIdentifier(mailbox)], subscriber.targets[target] != nil
      else { return }
      state.notifyJoined(subscriber, [target])
    }
  }

  /// Replaces the documents on which the authorization of a target depends; see ``join(_:target:_:guards:)``.
  package func setGuards(_ mailbox: WatchMailbox, target: Int, _ guards: [(key: DocumentKey, version: Int64)]) {
    run(for: mailbox) { state, reader in
      guard let subscriber = state.subscribers[ObjectIdentifier(mailbox)], subscriber.targets[target] != nil
      else { return }
      state.setGuards(guards, of: target, subscriber, &reader)
    }
  }

  /// Resumes after ``WatchMailbox/Event/lagged``: the listener joins all its targets again at the current version.
  package func rejoin(_ mailbox: WatchMailbox) {
    run(for: mailbox) { state, _ in
      guard let subscriber = state.subscribers[ObjectIdentifier(mailbox)] else { return }
      subscriber.isDetached = false
      mailbox.clearLagging()
      state.notifyJoined(subscriber, subscriber.targets.keys.sorted())
    }
  }

  /// Stops following a target.
  package func leave(_ mailbox: WatchMailbox, target: Int) {
    queue.async { [self] in
      if let subscriber = state.subscribers[ObjectIdentifier(mailbox)] { state.remove(target, from: subscriber) }
    }
  }

  /// Removes a listener.
  package func close(_ mailbox: WatchMailbox) {
    mailbox.close()
    queue.async { [self] in state.remove(mailbox) }
  }

  /// Wakes every listener, because its authorization may have changed.
  package func wakeAll() {
    queue.async { [self] in
      for subscriber in state.subscribers.values { subscriber.mailbox.wake() }
    }
  }

  // MARK: Steps

  private func stepSoon() {
    guard !isStepDue.exchange(true, ordering: .sequentiallyConsistent) else { return }
    run()
  }

  /// Sends NO_CHANGE to the listeners whose turn it is, so that every listener receives something from time to time.
  ///
  /// Each listener has its turn once in ``WatchHubState/slots`` calls. Cost: one pass over the listeners.
  package func beat() { queue.async { self.beatNow() } }

  private func beatLater() {
    queue.asyncAfter(deadline: .now() + .seconds(Self.beatSeconds)) { [weak self] in
      guard let self, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
      beatNow()
      beatLater()
    }
  }

  private func beatNow() { state.beat() }

  /// Steps to the newest version, then runs `body` on the queue.
  private func run(
    for mailbox: WatchMailbox? = nil,
    _ body: @escaping @Sendable (inout WatchHubState, inout SnapshotReader) throws -> Void = { _, _ in }
  ) {
    queue.async { [self] in
      isStepDue.store(false, ordering: .sequentiallyConsistent)
      do {
        try database.read { reader in
          try state.step(&reader)
          try body(&state, &reader)
        }
      } catch { mailbox?.deliverResponse(.failed(error)) }
      fillSoon()
    }
  }

  /// Fills the windows that are due, one slice at a time, so that steps are not delayed.
  private func fillSoon() {
    guard state.scheduleRefill() else { return }
    queue.async { [self] in
      do {
        try database.read { reader in
          try state.step(&reader)
          try state.fillSlice(&reader)
        }
      } catch { state.giveUpFilling(error) }
      fillSoon()
    }
  }

  /// Waits until all previous requests have been processed.
  package func settle() {
    while queue.sync(execute: { state.isFilling }) {}
  }

  /// Calls `body` with a description of each listener, on the hub's queue.
  package func describe(_ body: @escaping @Sendable ([SubscriberDescription]) -> Void) {
    queue.async { [self] in body(state.descriptions()) }
  }
}

/// The state of one listener, for diagnostics.
package struct SubscriberDescription: Sendable {
  /// The name of the listener.
  package let name: String
  /// Text forms of the listener's targets.
  package let targets: [String]
  /// How far the listener lags behind the hub, in microseconds of commit time.
  package let lag: Int64
  /// The number of bytes in the listener's mailbox.
  package let queuedBytes: Int
}
