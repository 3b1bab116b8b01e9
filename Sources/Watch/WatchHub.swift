import Dispatch
package import DocumentModel
package import DocumentStore
import Synchronization

/// The changes of one database, told to those who follow parts of it.
///
/// 1. The writer says that something is durable; the feed *steps* from the version it has reached to the newest, on its
///    own queue. Steps take what gathered meanwhile together.
/// 2. A step reads the change log, finds the views that each changed document concerns, evaluates each view once, and
///    puts one batch into the mailbox of each listener that is touched. Nobody is waited for.
/// 3. A listener *joins* a target at the version of the moment: what happens later is told. What is true at that
///    version it reads itself (``CatchUp``), on its own thread, in its own time.
/// 4. Whoever does not take its mail is *detached*, and catches up from the change log when it does.
package final class WatchHub: Sendable {
  /// The database.
  package let database: DocumentDatabase
  private let queue: DispatchQueue
  /// Safe because it is touched on ``queue`` only, which is serial.
  private nonisolated(unsafe) var state: WatchHubState
  private let isStepDue = Atomic(false)
  private let observation = Mutex<ChangeSignal.Observation?>(nil)
  private let isStopped = Atomic(false)

  /// How often ``beat()`` is called, in seconds.
  package static let beatSeconds = 4

  /// Follows a database until ``stop()``. Without a timer somebody has to call ``beat()``.
  package init(_ database: DocumentDatabase, hasTimer: Bool = true) {
    self.database = database
    queue = DispatchQueue(label: "hearth.feed.\(database.id.name)")
    state = WatchHubState()
    observation.withLock { $0 = database.changes.observe { [weak self] in self?.stepSoon() } }
    if hasTimer { beatLater() }
  }

  /// Ends it: nobody is told anything any more.
  package func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    if let observation = observation.withLock({ $0.take() }) { database.changes.end(observation) }
  }

  // MARK: What listeners ask for

  /// Begins to follow a target; the answer is ``WatchMailbox/Event/joined(_:)``.
  ///
  /// Every commit that was acknowledged before is at or below the version that is joined at. `guards` are the documents
  /// that its admission rests on, with the versions that were seen; if one is another by now, or becomes so,
  /// the target is doubted.
  package func join(
    _ listener: WatchMailbox, target: Int, _ selection: TargetSelection, guards: [(key: DocumentKey, version: Int64)]
  ) {
    run(for: listener) { state, reader in
      let member = state.member(listener)
      state.add(target, selection, to: member)
      state.setGuards(guards, of: target, member, &reader)
      state.tellJoined(member, [target])
    }
  }

  /// Wakes a listener after every commit from now on, whatever it changed.
  package func subscribeToAll(_ listener: WatchMailbox) {
    run(for: listener) { state, _ in state.subscribeToAll(listener) }
  }

  /// Follows a target anew, from the version of the moment on, after it was told that its changes are not known.
  package func refresh(_ listener: WatchMailbox, target: Int) {
    run(for: listener) { state, _ in
      guard let member = state.members[ObjectIdentifier(listener)], member.targets[target] != nil else { return }
      state.tellJoined(member, [target])
    }
  }

  /// Takes the documents that the admission of a target rests on now; see ``join(_:target:_:guards:)``.
  package func setGuards(_ listener: WatchMailbox, target: Int, _ guards: [(key: DocumentKey, version: Int64)]) {
    run(for: listener) { state, reader in
      guard let member = state.members[ObjectIdentifier(listener)], member.targets[target] != nil else { return }
      state.setGuards(guards, of: target, member, &reader)
    }
  }

  /// Goes on after ``WatchMailbox/Event/lagged``: all targets are joined anew at the version of the moment.
  package func rejoin(_ listener: WatchMailbox) {
    run(for: listener) { state, _ in
      guard let member = state.members[ObjectIdentifier(listener)] else { return }
      member.isDetached = false
      listener.caughtUp()
      state.tellJoined(member, member.targets.keys.sorted())
    }
  }

  /// Ends a target.
  package func leave(_ listener: WatchMailbox, target: Int) {
    queue.async { [self] in
      if let member = state.members[ObjectIdentifier(listener)] { state.remove(target, from: member) }
    }
  }

  /// Ends a listener.
  package func close(_ listener: WatchMailbox) {
    listener.close()
    queue.async { [self] in state.remove(listener) }
  }

  /// Wakes every listener, because what admits them may have changed.
  package func wakeAll() {
    queue.async { [self] in
      for member in state.members.values { member.listener.wake() }
    }
  }

  // MARK: Steps

  private func stepSoon() {
    guard !isStepDue.exchange(true, ordering: .sequentiallyConsistent) else { return }
    run()
  }

  /// Tells those whose turn it is that nothing happened, so that nobody is left in silence.
  ///
  /// Everybody has a turn in ``WatchHubState/slots`` calls. Cost: a step over the listeners.
  package func beat() { queue.async { self.beatNow() } }

  private func beatLater() {
    queue.asyncAfter(deadline: .now() + .seconds(Self.beatSeconds)) { [weak self] in
      guard let self, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
      beatNow()
      beatLater()
    }
  }

  private func beatNow() { state.beat() }

  /// Steps to the newest version, then runs `body` there, on the queue.
  private func run(
    for listener: WatchMailbox? = nil,
    _ body: @escaping @Sendable (inout WatchHubState, inout SnapshotReader) throws -> Void = { _, _ in }
  ) {
    queue.async { [self] in
      isStepDue.store(false, ordering: .sequentiallyConsistent)
      do {
        try database.read { reader in
          try state.step(&reader)
          try body(&state, &reader)
        }
      } catch { listener?.answer(.failed(error)) }
      fillSoon()
    }
  }

  /// Goes on with windows that are to be filled, a slice at a time, so that steps are not held up.
  private func fillSoon() {
    guard state.beginsFilling() else { return }
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

  /// Waits until everything asked for so far is done.
  package func settle() {
    while queue.sync(execute: { state.isFilling }) {}
  }

  /// Calls `body` with what is known of each listener, on the feed's queue.
  package func describe(_ body: @escaping @Sendable ([SubscriberDescription]) -> Void) {
    queue.async { [self] in body(state.descriptions()) }
  }
}

/// What is known of a listener.
package struct SubscriberDescription: Sendable {
  /// Who listens.
  package let name: String
  /// What it follows.
  package let targets: [String]
  /// How far it is behind, in microseconds of commit time.
  package let lag: Int64
  /// Bytes that wait for it.
  package let queuedBytes: Int
}
