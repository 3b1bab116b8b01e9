import Dispatch
import DocumentStore
import FirebaseExport
import FixtureTree
import Synchronization

/// A queue of batches between the thread that reads files and the thread that stores documents.
///
/// It holds at most ``batchesMax`` batches; then the reader waits.
final class ImportQueue: Sendable {
  /// Documents ready to be stored.
  struct Batch: Sendable {
    var items: [BulkLoader.Item]
    var mayReplace: Bool
    var references: ReferenceCounts
  }

  /// The storing thread has given up, so the reader must end too.
  struct Closed: Error {}

  /// An element of a queue.
  enum Piece: Sendable {
    case batch(Batch)
    /// The end of the files, with the facts about them, or the error that ended reading.
    case end(Result<ReadTally, any Error>)
  }

  static let batchesMax = 3

  private let pieces = Mutex<[Piece]>([])
  private let isClosed = Atomic(false)
  private let room = DispatchSemaphore(value: ImportQueue.batchesMax)
  private let filled = DispatchSemaphore(value: 0)

  /// Adds a batch. Waits for room.
  func put(_ batch: Batch) throws(Closed) {
    room.wait()
    if isClosed.load(ordering: .acquiring) { throw Closed() }
    pieces.withLock { $0.append(.batch(batch)) }
    filled.signal()
  }

  /// Signals the end of the files, or the error that ended reading.
  func finish(_ result: Result<ReadTally, any Error>) {
    pieces.withLock { $0.append(.end(result)) }
    filled.signal()
  }

  /// Takes a batch or the end. Waits for one.
  func take() -> Piece {
    filled.wait()
    let piece = pieces.withLock { $0.removeFirst() }
    if case .batch = piece { room.signal() }
    return piece
  }

  /// Signals to the reader that no more batches are taken.
  func close() {
    isClosed.store(true, ordering: .releasing)
    room.signal()
  }
}
