import Basics
import Synchronization

/// One listener of a hub, with its mailbox: filled on the hub's queue, emptied on the client's thread.
///
/// The mailbox is bounded. If an event does not fit, all events are discarded and the listener is lagging: it catches
/// up from the change log when it next reads its mailbox. The hub does not wait for it.
package final class Subscriber: Sendable {
  /// An event for a listener.
  package enum Event: Sendable {
    /// The hub reports all changes of these targets after a version.
    case joined(WatchStart)
    /// The results of a target could not be read.
    case unreadable(target: Int, any Error)
    /// Targets of the listener have changed.
    case batch(WatchBatch)
    /// None of the listener's targets has changed up to a version (NO_CHANGE).
    case noChange(Int64)
    /// The mailbox has overflowed. The listener must call ``WatchHub/rejoin(_:)``.
    case lagged
    /// The hub could not read the database.
    case failed(any Error)
    /// The targets must be authorized again.
    case needsReauthorization(Set<Int>)
    /// The token of the client, or the rules that apply to it, may have changed.
    case needsCallerCheck
  }

  private struct Mailbox {
    var events = Backlog<Event>()
    /// The size of the waiting batches, in bytes.
    var bytes = 0
    /// Targets whose authorization depends on documents that have changed.
    var needsReauthorization: Set<Int> = []
    var needsCallerCheck = false
    var isLagging = false
    var isWaiting = false
    var wake: (@Sendable () -> Void)?

    mutating func lag() {
      isLagging = true
      events.removeAll()
      events.append(.lagged)
      bytes = 0
    }

    mutating func takeReauthorizations() -> Set<Int> {
      defer { if !needsReauthorization.isEmpty { needsReauthorization = [] } }
      return needsReauthorization
    }
  }

  /// The maximum size of the waiting batches, in bytes. A single batch may be larger.
  static let bytesMax = 1 << 20
  /// The size of a batch that a mailbox takes even if changes take too much memory, in bytes.
  static let shareBytes = 64 << 10
  /// The maximum number of waiting events.
  static let eventsMax = 512

  /// A name for the listener in diagnostics.
  package let name: String
  private let mailbox: Mutex<Mailbox>
  /// The last version that the client was notified of.
  private let lastSentVersion = Atomic<Int64>(0)

  /// Creates a listener. `wake` is called, on any thread, when an event arrives after ``take()`` has returned `nil`.
  package init(name: String, wake: @escaping @Sendable () -> Void) {
    self.name = name
    mailbox = Mutex(Mailbox(wake: wake))
  }

  // MARK: The client's side

  /// Returns the next event. If it returns `nil`, `wake` is called when the next event arrives.
  package func take() -> Event? {
    mailbox.withLock { mailbox in
      if !mailbox.needsReauthorization.isEmpty { return .needsReauthorization(mailbox.takeReauthorizations()) }
      if mailbox.needsCallerCheck {
        mailbox.needsCallerCheck = false
        return .needsCallerCheck
      }
      guard let event = mailbox.events.popFirst() else {
        mailbox.isWaiting = true
        return nil
      }
      if case .batch(let batch) = event { mailbox.bytes -= batch.bytes }
      return event
    }
  }

  /// Returns the targets that must be authorized again before the waiting events are handled.
  package func takeReauthorizations() -> Set<Int> { mailbox.withLock { $0.takeReauthorizations() } }

  /// Records the last version that the client was notified of.
  package func noteSentVersion(_ version: Int64) { lastSentVersion.store(version, ordering: .relaxed) }

  // MARK: The hub's side

  /// Adds a batch or NO_CHANGE. Returns `false` if the mailbox has overflowed.
  func deliver(_ event: Event) -> Bool {
    var bytes = 0
    if case .batch(let batch) = event { bytes = batch.bytes }
    return post { mailbox in
      let count = mailbox.events.count
      let isFull = mailbox.bytes + bytes > Self.bytesMax || count >= Self.eventsMax
      if count > 0 && isFull || bytes > Self.shareBytes && WatchedDocument.memory.isExceeded {
        mailbox.lag()
        return false
      }
      mailbox.events.append(event)
      mailbox.bytes += bytes
      return true
    }
  }

  /// Adds the response to a request of the listener. It is added even if the mailbox is full.
  func deliverResponse(_ event: Event) { post { $0.events.append(event) } }

  /// Makes the listener catch up from the last version that it was notified of.
  func discardAndMarkLagging() {
    post { if !$0.isLagging { $0.lag() } }
  }

  /// Ends the state that ``discardAndMarkLagging()`` or an overflow began.
  func clearLagging() { mailbox.withLock { $0.isLagging = false } }

  /// Requires that a target is authorized again before other waiting events are handled.
  func requireReauthorization(_ target: Int) { post { _ = $0.needsReauthorization.insert(target) } }

  /// Requires that the client is checked before other waiting events are handled.
  package func requireCallerCheck() { post { $0.needsCallerCheck = true } }

  /// Wakes the client if it is waiting.
  package func wake() { post { _ in } }

  /// Empties the mailbox and releases `wake`. The client is not woken any more.
  package func close() { mailbox.withLock { $0 = Mailbox(isWaiting: $0.isWaiting) } }

  private func post<R>(_ body: (inout Mailbox) -> R) -> R {
    let (result, wake) = mailbox.withLock { mailbox in
      let result = body(&mailbox)
      let wake = mailbox.isWaiting ? mailbox.wake : nil
      mailbox.isWaiting = false
      return (result, wake)
    }
    wake?()
    return result
  }

  /// The size of the waiting batches, in bytes, and the last version that the client was notified of.
  var statistics: (bytes: Int, lastSentVersion: Int64) {
    (mailbox.withLock { $0.bytes }, lastSentVersion.load(ordering: .relaxed))
  }
}
