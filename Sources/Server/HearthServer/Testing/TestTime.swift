import DocumentStore
import Synchronization

/// The time of a test server: the system's, moved on by as much as a test wants.
final class TestTime: Sendable {
  private let offset: Atomic<Int64>

  init(offsetMicroseconds: Int64) { offset = Atomic(offsetMicroseconds) }

  var offsetMicroseconds: Int64 { offset.load(ordering: .sequentiallyConsistent) }

  func advance(by duration: Duration) {
    let (seconds, attoseconds) = duration.components
    // A century is enough, and keeps sums within what timestamps hold.
    let bounded = min(max(seconds, 0), 3_153_600_000)
    offset.wrappingAdd(bounded * 1_000_000 + max(0, attoseconds / 1_000_000_000_000), ordering: .sequentiallyConsistent)
  }

  var clock: Clock { Clock { [self] in Clock.system.now() + offsetMicroseconds } }
}
