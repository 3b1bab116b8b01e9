import Synchronization

/// The mailbox between a hub and one of its listeners: filled on the hub's queue, emptied on the client's thread.
///
/// Its size is limited. If an event does not fit, the mailbox discards all events and marks the listener as lagging.
/// A lagging listener catches up from the change log when it next reads its mailbox. The hub does not wait for it.
package final class WatchMailbox: Sendable {
  /// A notification for a listener.
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
  }

  private struct Box {
    var events: [Event] = []
    /// The index of the next event to read.
    var readIndex = 0
    var bytes = 0
    /// Targets whose authorization depends on documents that have changed.
    var needsReauthorization: Set<Int> = []
    var isLagging = false
    var isWaiting = false
    var wake: (@Sendable () -> Void)?
  }

  /// The maximum size of the waiting batches, in bytes. A single batch may be larger.
  static let bytesMax = 1 << 20
  /// The maximum number of waiting events.
  static let eventsMax = 512

  /// A name for the listener in diagnostics.
  package let name: String
  private let box: Mutex<Box>
  /// The last version that the client was notified of.
  private let lastSentVersion = Atomic<Int64>(0)

  /// Creates a mailbox. `wake` is called, on any thread, when an event arrives after ``take()`` has returned `nil`.
  package init(name: String, wake: @escaping @Sendable () -> Void) {
    self.name = name
    box = Mutex(Box(wake: wake))
  }

  // MARK: The client's side

  /// Returns the next event. If it returns `nil`, `wake` is called when the next event arrives.
  package func take() -> Event? {
    box.withLock { box in
      if !box.needsReauthorization.isEmpty { return .needsReauthorization(Self.takeReauthorizations(&box)) }
      guard box.readIndex < box.events.count else {
        box.events.removeAll(keepingCapacity: box.events.count < 16)
        box.readIndex = 0
        box.isWaiting = true
        return nil
      }
      let event = box.events[box.readIndex]
      // Release the event here, because the array may never become empty.
      box.events[box.readIndex] = .lagged
      box.readIndex += 1
      if box.readIndex >= 64, box.readIndex * 2 >= box.events.count {
        box.events.removeFirst(box.readIndex)
        box.readIndex = 0
      }
      if case .batch(let batch) = event { box.bytes -= batch.bytes }
      return event
    }
  }

  /// Returns the targets that must be authorized again before the waiting events are handled.
  package func takeReauthorizations() -> Set<Int> { box.withLock { Self.takeReauthorizations(&$0) } }

  private static func takeReauthorizations(_ box: inout Box) -> Set<Int> {
    defer { if !box.needsReauthorization.isEmpty { box.needsReauthorization = [] } }
    return box.needsReauthorization
  }

  /// Records the last version that the client was notified of.
  package func noteSentVersion(_ version: Int64) { lastSentVersion.store(version, ordering: .relaxed) }

  // MARK: The hub's side

  /// Adds a batch or NO_CHANGE. Returns `false` if the mailbox has overflowed.
  func deliver(_ event: Event) -> Bool {
    var bytes = 0
    if case .batch(let batch) = event { bytes = batch.bytes }
    return post { box in
      let waiting = box.events.count - box.readIndex
      if waiting > 0, box.bytes + bytes > Self.bytesMax || waiting >= Self.eventsMax {
        box.isLagging = true
        box.events = [.lagged]
        box.readIndex = 0
        box.bytes = 0
        return false
      }
      box.events.append(event)
      box.bytes += bytes
      return true
    }
  }

  /// Adds the response to a request of the listener. It is added even if the mailbox is full.
  func deliverResponse(_ event: Event) { post { $0.events.append(event) } }

  /// Makes the listener catch up from the last version that it was notified of.
  func discardAndMarkLagging() {
    post { box in
      guard !box.isLagging else { return }
      box.isLagging = true
      box.events = [.lagged]
      box.readIndex = 0
      box.bytes = 0
    }
  }

  /// Ends the state that ``discardAndMarkLagging()`` or an overflow began.
  func clearLagging() { box.withLock { $0.isLagging = false } }

  /// Requires that a target is authorized again before other waiting events are handled.
  func requireReauthorization(_ target: Int) { post { _ = $0.needsReauthorization.insert(target) } }

  /// Wakes the client if it is waiting.
  package func wake() { post { _ in } }

  /// Empties the mailbox and releases `wake`. The client is not woken any more.
  package func close() {
    box.withLock { box in
      box.wake = nil
      box.events = []
      box.readIndex = 0
      box.bytes = 0
      box.needsReauthorization = []
    }
  }

  private func post<R>(_ body: (inout Box) -> R) -> R {
    let (result, wake) = box.withLock { box in
      let result = body(&box)
      let wake = box.isWaiting ? box.wake : nil
      box.isWaiting = false
      return (result, wake)
    }
    wake?()
    return result
  }

  /// The size of the waiting batches, in bytes, and the last version that the client was notified of.
  var statistics: (bytes: Int, lastSentVersion: Int64) {
    (box.withLock { $0.bytes }, lastSentVersion.load(ordering: .relaxed))
  }
}
