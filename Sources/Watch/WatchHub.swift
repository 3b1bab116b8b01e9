import Basics
import DocumentModel
package import DocumentStore
import QueryEngine
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
  private let queue: any WorkQueue
  /// Safe because it is used only on ``queue``, which is serial.
  private nonisolated(unsafe) var state: WatchHubState
  private let isStepDue = Atomic(false)
  private let observation = Mutex<ChangeSignal.Observation?>(nil)
  private let isStopped = Atomic(false)
  /// The number of questions to ``DocumentDatabase/freshness``.
  private let questions = Atomic(0)

  /// The time after which a question without an answer is asked again, in seconds.
  private static let questionSeconds = 1
  /// The interval between calls of ``beat()``, in seconds.
  package static let beatSeconds = 4
  /// The beats that a target waits for a version which its client has seen elsewhere.
  package static let joinBeatsMax = 3

  /// Follows a database until ``stop()``. Without a timer, the caller must call ``beat()`` itself.
  package init(_ database: DocumentDatabase, hasTimer: Bool = true) {
    self.database = database
    queue = database.queues.serial("hearth.watch.\(database.id.name)")
    state = WatchHubState(PlanOptions(scratch: database.scratch))
    observation.withLock { $0 = database.changes.observe { [weak self] in self?.stepSoon() } }
    if hasTimer { beatLater() }
  }

  /// Stops the hub. Listeners are not notified any more.
  package func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    if let observation = observation.withLock({ $0.take() }) { database.changes.end(observation) }
  }

  // MARK: Requests of listeners

  /// A request of a listener. Targets have numbers that the listener chooses and never reuses.
  package enum Request: Sendable {
    /// Follow a target. The hub responds with ``Subscriber/Event/joined(_:)``. Every commit acknowledged before the
    /// request is at or below the joined version.
    ///
    /// If the version of a document on which the authorization depends differs now from the one that the rules read,
    /// or changes later, the target must be authorized again.
    ///
    /// If another process writes to the database, the hub asks its ``DocumentDatabase/freshness`` first. With a version,
    /// it responds when it has reached that version, or when this process writes to the database, so that no later version
    /// can arrive from elsewhere. If that does not happen in ``WatchHub/joinBeatsMax`` beats, the stream fails.
    case join(Int, TargetSelection, AuthorizationDependencies, atLeast: Int64?)
    /// Replace the documents on which the authorization of a target depends.
    case setGuards(Int, AuthorizationDependencies)
    /// Follow a target again from the current version, because its changes are not known.
    case refresh(Int)
    /// Follow all targets again from the current version, after ``Subscriber/Event/lagged``.
    case rejoin
    /// Stop following a target.
    case leave(Int)
    /// Wake the listener after every commit from now on, regardless of the changes.
    case followAll
  }

  /// Handles a request, at the newest version of the database.
  package func handle(_ request: Request, from subscriber: Subscriber) {
    guard case .join = request, let freshness = database.freshness, !database.isAdopted else {
      return run(for: subscriber) { $0.handle(request, from: subscriber, &$1) }
    }
    let question = questions.add(1, ordering: .relaxed).newValue
    // First the request, so that a request to leave the target comes after it.
    run(for: subscriber) { $0.handle(request, from: subscriber, question: question, &$1) }
    ask(question, freshness)
  }

  /// Has the targets that await the answer to a question join when it comes.
  private func ask(_ question: Int, _ freshness: any FreshnessGate) {
    freshness.whenNewest { [weak self] isNewest in
      guard let self else { return }
      if isNewest {
        run { state, reader in
          state.answer(question)
          state.admit(&reader, isNewest: false)
        }
      } else {
        askAgain(question, freshness)
      }
    }
  }

  /// Asks again a little later, if a target still awaits the answer.
  private func askAgain(_ question: Int, _ freshness: any FreshnessGate) {
    queue.run(afterSeconds: Self.questionSeconds) { [weak self] in
      guard let self, !isStopped.load(ordering: .sequentiallyConsistent), state.openQuestions.contains(question) else {
        return
      }
      ask(question, freshness)
    }
  }

  /// Removes a listener.
  package func close(_ subscriber: Subscriber) {
    subscriber.close()
    queue.run { [self] in state.remove(subscriber) }
  }

  // MARK: Steps

  private func stepSoon() {
    guard !isStepDue.exchange(true, ordering: .sequentiallyConsistent) else { return }
    run()
  }

  /// Sends NO_CHANGE to the listeners whose turn it is, so that every listener receives something from time to time.
  ///
  /// Each listener has its turn once in ``WatchHubState/slots`` calls. Cost: one pass over the listeners.
  package func beat() { queue.run { self.beatNow() } }

  private func beatLater() {
    queue.run(afterSeconds: Self.beatSeconds) { [weak self] in
      guard let self, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
      beatNow()
      beatLater()
    }
  }

  private func beatNow() { state.beat() }

  /// Steps to the newest version, then runs `body` on the queue.
  private func run(
    for subscriber: Subscriber? = nil,
    _ body: @escaping @Sendable (inout WatchHubState, inout SnapshotReader) throws -> Void = { _, _ in }
  ) {
    queue.run { [self] in
      isStepDue.store(false, ordering: .sequentiallyConsistent)
      do {
        try database.read { reader in
          try state.step(&reader)
          state.admit(&reader, isNewest: database.isAdopted)
          try body(&state, &reader)
        }
      } catch { subscriber?.deliverResponse(.failed(error)) }
      fillSoon()
    }
  }

  /// Fills the windows that are due, one slice at a time, so that steps are not delayed.
  private func fillSoon() {
    guard state.scheduleRefill() else { return }
    queue.run { [self] in
      do {
        try database.read { reader in
          try state.step(&reader)
          try state.fillSlice(&reader) { [weak self] in self?.resumeFilling() }
        }
      } catch { state.giveUpFilling(error) }
      fillSoon()
    }
  }

  private func resumeFilling() {
    queue.run { [self] in
      state.resumeRefills()
      fillSoon()
    }
  }

  /// Waits until all previous requests have been processed.
  package func settle() {
    var isFilling = true
    while isFilling { queue.runAndWait { isFilling = state.isFilling } }
  }

  /// The state of one listener, for diagnostics: its name, short text forms of its targets, how far it lags behind the
  /// hub in microseconds of commit time, and the number of bytes in its mailbox.
  package typealias Description = (name: String, targets: [String], lag: Int64, queuedBytes: Int)

  /// Calls `body` with a description of each listener, on the hub's queue.
  package func describe(_ body: @escaping @Sendable ([Description]) -> Void) {
    queue.run { [self] in body(state.descriptions()) }
  }
}
