import Synchronization

/// The mailbox between a feed and one of its listeners: filled on the feed's queue, emptied on the client's thread.
///
/// Bounded: what does not fit makes it forget everything and note that the listener lags. Such a listener is caught up
/// from the change log when it comes for its mail; nobody waits for it meanwhile.
package final class WatchMailbox: Sendable {
  /// What a listener is told.
  package enum Event: Sendable {
    /// Targets are followed from a version on.
    case joined(WatchStart)
    /// A target's results could not be read.
    case unreadable(target: Int, any Error)
    /// Something happened.
    case batch(WatchBatch)
    /// Nothing happened up to a version.
    case noChange(Int64)
    /// The mailbox overflowed: ``WatchHub/rejoin(_:)``.
    case lagged
    /// The feed could not read the database.
    case failed(any Error)
    /// The admission of targets is to be judged again.
    case needsReauthorization(Set<Int>)
  }

  private struct Box {
    var event: [Event] = []
    var taken = 0
    var bytes = 0
    /// Targets whose admission rests on documents that changed.
    var needsReauthorization: Set<Int> = []
    var isLagging = false
    var isWaiting = false
    var wake: (@Sendable () -> Void)?
  }

  /// Bytes that may wait for a listener. One batch may always wait, however large.
  static let bytesMax = 1 << 20
  /// Batches that may wait for a listener.
  static let newsMax = 512

  /// Who listens, for people to see.
  package let name: String
  private let box: Mutex<Box>
  /// The version that the client was told last.
  private let lastSentVersion = Atomic<Int64>(0)

  /// Makes a mailbox. `wake` is called, on any thread, when there is mail after ``take()`` had none.
  package init(name: String, wake: @escaping @Sendable () -> Void) {
    self.name = name
    box = Mutex(Box(wake: wake))
  }

  // MARK: The client's side

  /// The next news, or `nil`: then `wake` is called once there is some.
  package func take() -> Event? {
    box.withLock { box in
      if !box.needsReauthorization.isEmpty { return .needsReauthorization(Self.takeReauthorizations(&box)) }
      guard box.taken < box.event.count else {
        box.event.removeAll(keepingCapacity: box.event.count < 16)
        box.taken = 0
        box.isWaiting = true
        return nil
      }
      let event = box.event[box.taken]
      // What was taken is held no longer, also where the box is never quite empty.
      box.event[box.taken] = .lagged
      box.taken += 1
      if box.taken >= 64, box.taken * 2 >= box.event.count {
        box.event.removeFirst(box.taken)
        box.taken = 0
      }
      if case .batch(let batch) = event { box.bytes -= batch.bytes }
      return event
    }
  }

  /// Targets whose admission is to be judged again, before anything that waits.
  package func takeReauthorizations() -> Set<Int> { box.withLock { Self.takeReauthorizations(&$0) } }

  private static func takeReauthorizations(_ box: inout Box) -> Set<Int> {
    defer { if !box.needsReauthorization.isEmpty { box.needsReauthorization = [] } }
    return box.needsReauthorization
  }

  /// Notes the version that the client was told.
  package func tell(_ version: Int64) { lastSentVersion.store(version, ordering: .relaxed) }

  // MARK: The feed's side

  /// Puts a batch, or that there was none, into the box; returns `false` where it overflowed.
  func deliver(_ event: Event) -> Bool {
    var bytes = 0
    if case .batch(let batch) = event { bytes = batch.bytes }
    return post { box in
      let waiting = box.event.count - box.taken
      if waiting > 0, box.bytes + bytes > Self.bytesMax || waiting >= Self.newsMax {
        box.isLagging = true
        box.event = [.lagged]
        box.taken = 0
        box.bytes = 0
        return false
      }
      box.event.append(event)
      box.bytes += bytes
      return true
    }
  }

  /// Puts what answers a request of the listener into the box.
  func answer(_ event: Event) { post { $0.event.append(event) } }

  /// Has the listener start over from what it was told last.
  func lag() {
    post { box in
      guard !box.isLagging else { return }
      box.isLagging = true
      box.event = [.lagged]
      box.taken = 0
      box.bytes = 0
    }
  }

  /// Ends the state that ``lag()`` or an overflow began.
  func caughtUp() { box.withLock { $0.isLagging = false } }

  /// Has the admission of a target judged again, before anything else that waits.
  func requireReauthorization(_ target: Int) { post { _ = $0.needsReauthorization.insert(target) } }

  /// Wakes the client where it waits.
  package func wake() { post { _ in } }

  /// Lets go of the client; nothing is put in any more.
  package func close() {
    box.withLock { box in
      box.wake = nil
      box.event = []
      box.taken = 0
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

  /// What is known of it: bytes that wait, and the version told last.
  var load: (bytes: Int, lastSentVersion: Int64) { (box.withLock { $0.bytes }, lastSentVersion.load(ordering: .relaxed)) }
}
