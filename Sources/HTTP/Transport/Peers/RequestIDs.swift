import Basics
import Synchronization

/// Chooses the IDs of relayed requests: 16 bytes, a number of ``AscendingNumbers`` in big-endian order and eight random
/// bytes.
///
/// The owner stores the outcome of a request under its ID, and derives from it the ID of a document that the request
/// creates. With ascending IDs, these rows and the index entries of the document are near those of the requests before,
/// as if the clients used the owner.
final class RequestIDs: Sendable {
  private let firstHalves = Mutex(AscendingNumbers(below: .max))

  /// Returns the next ID at a time of a monotonic clock, in nanoseconds. Any thread may call it. Cost: one lock, and two
  /// reads of the system's random generator.
  func next(at nanoseconds: UInt64) -> [UInt8] {
    let halves = [firstHalves.withLock { $0.next(at: nanoseconds) }, UInt64.random(in: 0...UInt64.max)]
    var id: [UInt8] = []
    id.reserveCapacity(16)
    for half in halves { withUnsafeBytes(of: half.bigEndian) { id.append(contentsOf: $0) } }
    return id
  }
}
