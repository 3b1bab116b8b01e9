import Synchronization

/// The mailbox between a feed and one of its listeners: filled on the feed's queue, emptied on the client's thread.
///
/// Bounded: what does not fit makes it forget everything and note that the listener lags. Such a listener is caught up
/// from the change log when it comes for its mail; nobody waits for it meanwhile.
package final class FeedListener: Sendable {
  /// What a listener is told.
  package enum News: Sendable {
    /// Targets are followed from a version on.
    case joined(FeedJoin)
    /// The feed wants the window of a target to be fetched at a version, and handed to it.
    case wanted(target: Int, version: Int64)
    /// Something happened.
    case batch(FeedBatch)
    /// Nothing happened up to a version.
    case quiet(Int64)
    /// The mailbox overflowed: ``Feed/rejoin(_:)``.
    case lagged
    /// The feed could not read the database.
    case failed(any Error)
    /// The admission of targets is to be judged again.
    case doubted(Set<Int>)
  }

  private struct Box {
    var news: [News] = []
    var taken = 0
    var bytes = 0
    /// Targets whose admission rests on documents that changed.
    var doubted: Set<Int> = []
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
  private let told = Atomic<Int64>(0)

  /// Makes a mailbox. `wake` is called, on any thread, when there is mail after ``take()`` had none.
  package init(name: String, wake: @escaping @Sendable () -> Void) {
    self.name = name
    box = Mutex(Box(wake: wake))
  }

  // MARK: The client's side

  /// The next news, or `nil`: then `wake` is called once there is some.
  package func take() -> News? {
    box.withLock { box in
      if !box.doubted.isEmpty { return .doubted(Self.takeDoubted(&box)) }
      guard box.taken < box.news.count else {
        box.news.removeAll(keepingCapacity: box.news.count < 16)
        box.taken = 0
        box.isWaiting = true
        return nil
      }
      let news = box.news[box.taken]
      // What was taken is held no longer, also where the box is never quite empty.
      box.news[box.taken] = .lagged
      box.taken += 1
      if box.taken >= 64, box.taken * 2 >= box.news.count {
        box.news.removeFirst(box.taken)
        box.taken = 0
      }
      if case .batch(let batch) = news { box.bytes -= batch.bytes }
      return news
    }
  }

  /// Targets whose admission is to be judged again, before anything that waits.
  package func takeDoubted() -> Set<Int> { box.withLock { Self.takeDoubted(&$0) } }

  private static func takeDoubted(_ box: inout Box) -> Set<Int> {
    defer { if !box.doubted.isEmpty { box.doubted = [] } }
    return box.doubted
  }

  /// Notes the version that the client was told.
  package func tell(_ version: Int64) { told.store(version, ordering: .relaxed) }

  // MARK: The feed's side

  /// Puts a batch, or that there was none, into the box; returns `false` where it overflowed.
  func deliver(_ news: News) -> Bool {
    var bytes = 0
    if case .batch(let batch) = news { bytes = batch.bytes }
    return post { box in
      let waiting = box.news.count - box.taken
      if waiting > 0, box.bytes + bytes > Self.bytesMax || waiting >= Self.newsMax {
        box.isLagging = true
        box.news = [.lagged]
        box.taken = 0
        box.bytes = 0
        return false
      }
      box.news.append(news)
      box.bytes += bytes
      return true
    }
  }

  /// Puts what answers a request of the listener into the box.
  func answer(_ news: News) { post { $0.news.append(news) } }

  /// Has the listener start over from what it was told last.
  func lag() {
    post { box in
      guard !box.isLagging else { return }
      box.isLagging = true
      box.news = [.lagged]
      box.taken = 0
      box.bytes = 0
    }
  }

  /// Ends the state that ``lag()`` or an overflow began.
  func caughtUp() { box.withLock { $0.isLagging = false } }

  /// Has the admission of a target judged again, before anything else that waits.
  func doubt(_ target: Int) { post { _ = $0.doubted.insert(target) } }

  /// Wakes the client where it waits.
  package func nudge() { post { _ in } }

  /// Lets go of the client; nothing is put in any more.
  package func close() {
    box.withLock { box in
      box.wake = nil
      box.news = []
      box.taken = 0
      box.bytes = 0
      box.doubted = []
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
  var load: (bytes: Int, told: Int64) { (box.withLock { $0.bytes }, told.load(ordering: .relaxed)) }
}
