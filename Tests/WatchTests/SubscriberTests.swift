import DocumentModel
import Synchronization
import Testing
import TestSupport
@testable import Watch

/// The mailbox between a hub and a listener.
@Suite struct SubscriberTests {
  private final class WakeCounter: Sendable {
    private let count = Atomic(0)
    func increment() { count.add(1, ordering: .sequentiallyConsistent) }
    func take() -> Int { count.exchange(0, ordering: .sequentiallyConsistent) }
  }

  private let wakes = WakeCounter()
  private let subscriber: Subscriber

  init() { subscriber = Subscriber(name: "ann") { [wakes] in wakes.increment() } }

  private func batch(_ version: Int64, bytes: Int = 0) -> Subscriber.Event {
    let document = WatchedDocument(
      document("c/x"), EncodedFields(canonical: Array(repeating: 0, count: bytes)), createVersion: 1, updateVersion: 1)
    let delta = TargetDelta([(document.key, .modified(document))])
    return .batch(WatchBatch(version: version, parts: [WatchBatch.Part(target: 1, delta: delta)]))
  }

  /// Returns short text forms of all events in the subscriber.
  private func takeAll() -> [String] {
    var all: [String] = []
    while let event = subscriber.take() {
      switch event {
      case .batch(let batch): all.append("\(batch.version)")
      case .noChange(let version): all.append("no change \(version)")
      case .lagged: all.append("lagged")
      case .needsReauthorization(let targets): all.append("reauthorize \(targets.sorted())")
      case .needsCallerCheck: all.append("check caller")
      case .joined(let join): all.append("joined \(join.version)")
      case .unreadable(let target, _): all.append("unreadable \(target)")
      case .failed: all.append("failed")
      }
    }
    return all
  }

  @Test func eventsArriveInOrderAndWakeOncePerWait() {
    #expect(subscriber.deliver(batch(1)))
    #expect(wakes.take() == 0)
    #expect(takeAll() == ["1"])
    #expect(subscriber.deliver(batch(2)))
    #expect(subscriber.deliver(.noChange(3)))
    #expect(wakes.take() == 1)
    #expect(takeAll() == ["2", "no change 3"])
  }

  @Test func reauthorizationsComeFirst() {
    _ = subscriber.deliver(batch(1))
    subscriber.requireReauthorization(7)
    subscriber.requireReauthorization(3)
    subscriber.requireReauthorization(7)
    #expect(takeAll() == ["reauthorize [3, 7]", "1"])
    _ = subscriber.deliver(batch(2))
    subscriber.requireReauthorization(3)
    #expect(subscriber.takeReauthorizations() == [3])
    #expect(takeAll() == ["2"])
  }

  @Test func overflowLeavesASingleLaggedEvent() {
    _ = takeAll()
    for version in 1...Subscriber.eventsMax { #expect(subscriber.deliver(batch(Int64(version)))) }
    #expect(!subscriber.deliver(batch(0)))
    #expect(wakes.take() == 1)
    #expect(subscriber.statistics.bytes == 0)
    #expect(takeAll() == ["lagged"])
    subscriber.clearLagging()
    #expect(subscriber.deliver(batch(9)))
    #expect(takeAll() == ["9"])
  }

  @Test func bytesAreLimitedExceptForOneBatch() {
    #expect(subscriber.deliver(batch(1, bytes: 2 * Subscriber.bytesMax)))
    #expect(!subscriber.deliver(batch(2)))
    #expect(takeAll() == ["lagged"])
    subscriber.clearLagging()
    var delivered = 0
    while subscriber.deliver(batch(1, bytes: 10_000)) { delivered += 1 }
    #expect((90...105).contains(delivered))
  }

  /// The mailbox of a client that never empties it completely must not grow.
  @Test func mailboxThatIsNeverEmptyDoesNotGrow() {
    _ = subscriber.deliver(batch(0))
    for version in 1...5000 {
      #expect(subscriber.deliver(batch(Int64(version))))
      #expect(subscriber.take() != nil)
    }
    #expect(takeAll() == ["5000"])
  }

  @Test func closedMailboxDoesNotWake() {
    _ = takeAll()
    subscriber.close()
    _ = subscriber.deliver(batch(1))
    #expect(wakes.take() == 0)
  }
}
