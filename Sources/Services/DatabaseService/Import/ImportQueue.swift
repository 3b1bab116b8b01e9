import Dispatch
import DocumentStore
import Synchronization

/// The few batches between the thread that reads files and the one that stores.
///
/// Bounded: the reader waits while ``batchesMax`` batches wait to be stored.
final class ImportQueue: Sendable {
  /// Documents ready to be stored.
  struct Batch: Sendable {
    var items: [BulkLoader.Item]
    var mayReplace: Bool
  }

  /// The store gave up; the reader is to end too.
  struct Closed: Error {}

  private enum Piece: Sendable {
    case batch(Batch)
    case end((any Error)?)
  }

  static let batchesMax = 3

  private let pieces = Mutex<[Piece]>([])
  private let isClosed = Atomic(false)
  private let room = DispatchSemaphore(value: ImportQueue.batchesMax)
  private let filled = DispatchSemaphore(value: 0)

  /// Hands a batch over, waiting for room.
  func put(_ batch: Batch) throws(Closed) {
    room.wait()
    if isClosed.load(ordering: .acquiring) { throw Closed() }
    pieces.withLock { $0.append(.batch(batch)) }
    filled.signal()
  }

  /// Says that nothing more comes, or why.
  func finish(_ error: (any Error)?) {
    pieces.withLock { $0.append(.end(error)) }
    filled.signal()
  }

  /// Takes a batch, waiting for one; `nil` at the end.
  /// - Throws: what the reader ended with.
  func take() throws -> Batch? {
    filled.wait()
    switch pieces.withLock({ $0.removeFirst() }) {
    case .batch(let batch):
      room.signal()
      return batch
    case .end(let error):
      if let error { throw error }
      return nil
    }
  }

  /// Tells the reader that nobody takes batches any more.
  func close() {
    isClosed.store(true, ordering: .releasing)
    room.signal()
  }
}
