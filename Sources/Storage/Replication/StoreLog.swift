import KeyValue
import LogEngine
import Synchronization

/// Appends to the log of the project for all its stores.
protocol ProjectLog: AnyObject, Sendable {
  /// Appends the body of a batch entry in the epoch of a lease. When it returns, the entry is durable. `store` is for
  /// messages.
  /// - Throws: ``StorageError/notOwner(of:owner:)`` if it is certain that the entry is not in the log;
  ///   ``StorageError/outcomeUnknown(path:detail:)`` if that is not known yet.
  func append(_ body: [UInt8], of store: StoreName, in lease: EpochLease) throws(StorageError) -> LogPosition

  /// Notes that the reads of this node show an entry that it appended.
  func noteReadable(_ position: LogPosition)
}

/// The ``CommitLog`` of one store of the project: it names the store in each entry.
final class StoreLog: CommitLog, Sendable {
  private let store: StoreName
  private let sealed: SealedStores?
  private let project: Mutex<WeakLog>
  /// The lease of the transaction that runs. Only the thread that holds the writer of the store uses it.
  private let lease = Mutex<EpochLease?>(nil)
  /// Whether the log may have no batch of the store yet.
  private let isNew: Atomic<Bool>

  private struct WeakLog: Sendable { weak var log: (any ProjectLog)? }

  init(of store: StoreName, sealed: SealedStores?, isNew: Bool, _ log: (any ProjectLog)?) {
    self.store = store
    self.sealed = sealed
    self.isNew = Atomic(isNew)
    project = Mutex(WeakLog(log: log))
  }

  /// Sets the log to which the store appends.
  func connect(_ log: any ProjectLog) { project.withLock { $0.log = log } }

  /// Sets the lease of the transaction that runs. The caller is its thread.
  func use(_ lease: EpochLease) { self.lease.withLock { $0 = lease } }

  /// Notes that the log has a batch of the store.
  func noteBatch() { isNew.store(false, ordering: .relaxed) }

  /// The positions are those of the store.
  var position: LogPosition { LogPosition() }

  /// Nothing: each append finds out whether this node is the owner.
  var failure: StorageError? { nil }

  func append(_ batch: CommitBatch) throws(StorageError) -> LogPosition {
    guard let lease = lease.withLock({ $0.take() }), let log = project.withLock({ $0.log }) else {
      throw .notOwner(of: store.text, owner: nil)
    }
    let sealed = sealed.flatMap { $0.stores.contains(store) ? $0.seal : nil }
    let content = sealed?.seal(batch.bytes, of: store) ?? batch.bytes
    let isFirst = isNew.load(ordering: .relaxed)
    let entry = StoreBatch(store: store, isFirst: isFirst, isSealed: sealed != nil, content: content[...])
    let position = try log.append(entry.body, of: store, in: lease)
    noteBatch()
    return position
  }

  func noteReadable(_ position: LogPosition) { project.withLock { $0.log }?.noteReadable(position) }

  /// Does nothing: the log belongs to all nodes.
  func release(upTo sequence: UInt64, keepingSpares: Bool) {}

  /// Does nothing, likewise.
  func removeAll() {}
}
