import DocumentModel
import Synchronization
import TestSupport
import Testing
@testable import Watch

/// The mailbox between a feed and a listener.
@Suite struct FeedListenerTests {
  private final class Bell: Sendable {
    private let rung = Atomic(0)
    func ring() { rung.add(1, ordering: .sequentiallyConsistent) }
    func take() -> Int { rung.exchange(0, ordering: .sequentiallyConsistent) }
  }

  private let bell = Bell()
  private let listener: WatchMailbox

  init() { listener = WatchMailbox(name: "ann") { [bell] in bell.ring() } }

  private func batch(_ version: Int64, bytes: Int = 0) -> WatchMailbox.Event {
    let document = WatchedDocument(
      document("c/x"), EncodedFields(canonical: Array(repeating: 0, count: bytes)), createVersion: 1, updateVersion: 1)
    let delta = TargetDelta([TargetDocumentChange(key: document.key, state: .matches(document))])
    return .batch(WatchBatch(version: version, parts: [WatchBatch.Part(target: 1, delta: delta)]))
  }

  /// What is in the box, in short.
  private func takeAll() -> [String] {
    var all: [String] = []
    while let event = listener.take() {
      switch event {
      case .batch(let batch): all.append("\(batch.version)")
      case .noChange(let version): all.append("quiet \(version)")
      case .lagged: all.append("lagged")
      case .needsReauthorization(let targets): all.append("doubted \(targets.sorted())")
      case .joined(let join): all.append("joined \(join.version)")
      case .unreadable(let target, _): all.append("unreadable \(target)")
      case .failed: all.append("failed")
      }
    }
    return all
  }

  @Test func mailComesInOrderAndTheBellRingsOncePerWait() {
    #expect(listener.deliver(batch(1)))
    #expect(bell.take() == 0)
    #expect(takeAll() == ["1"])
    #expect(listener.deliver(batch(2)))
    #expect(listener.deliver(.noChange(3)))
    #expect(bell.take() == 1)
    #expect(takeAll() == ["2", "quiet 3"])
  }

  @Test func doubtsComeFirst() {
    _ = listener.deliver(batch(1))
    listener.requireReauthorization(7)
    listener.requireReauthorization(3)
    listener.requireReauthorization(7)
    #expect(takeAll() == ["doubted [3, 7]", "1"])
    _ = listener.deliver(batch(2))
    listener.requireReauthorization(3)
    #expect(listener.takeReauthorizations() == [3])
    #expect(takeAll() == ["2"])
  }

  @Test func anOverflowLeavesOneNote() {
    _ = takeAll()
    for version in 1...WatchMailbox.newsMax { #expect(listener.deliver(batch(Int64(version)))) }
    #expect(!listener.deliver(batch(0)))
    #expect(bell.take() == 1)
    #expect(listener.load.bytes == 0)
    #expect(takeAll() == ["lagged"])
    listener.caughtUp()
    #expect(listener.deliver(batch(9)))
    #expect(takeAll() == ["9"])
  }

  @Test func bytesAreBoundedButForOneBatch() {
    #expect(listener.deliver(batch(1, bytes: 2 * WatchMailbox.bytesMax)))
    #expect(!listener.deliver(batch(2)))
    #expect(takeAll() == ["lagged"])
    listener.caughtUp()
    var delivered = 0
    while listener.deliver(batch(1, bytes: 10_000)) { delivered += 1 }
    #expect((90...105).contains(delivered))
  }

  /// A client that is never quite done must not have its box grow.
  @Test func aBoxThatIsNeverEmptyKeepsItsBound() {
    _ = listener.deliver(batch(0))
    for version in 1...5000 {
      #expect(listener.deliver(batch(Int64(version))))
      #expect(listener.take() != nil)
    }
    #expect(takeAll() == ["5000"])
  }

  @Test func aClosedBoxRingsNoBell() {
    _ = takeAll()
    listener.close()
    _ = listener.deliver(batch(1))
    #expect(bell.take() == 0)
  }
}
