import DocumentStore
import Synchronization

/// The clock of a test server: the system's time plus an offset that tests choose.
final class TestTime: Sendable {
  private let offset: Atomic<Int64>

  init(offsetMicroseconds: Int64) { offset = Atomic(offsetMicroseconds) }

  var offsetMicroseconds: Int64 { offset.load(ordering: .sequentiallyConsistent) }

  func advance(by duration: Duration) {
    let (seconds, attoseconds) = duration.components
    // The limit of a century keeps sums within the range of timestamps.
    let bounded = min(max(seconds, 0), 3_153_600_000)
    offset.wrappingAdd(bounded * 1_000_000 + max(0, attoseconds / 1_000_000_000_000), ordering: .sequentiallyConsistent)
  }

  var clock: Clock { Clock { [self] in Clock.system.now() + offsetMicroseconds } }
}
