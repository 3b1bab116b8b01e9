import KeyValue
import Synchronization

/// A store that counts its write transactions, and fails some of them after their work.
final class WatchedStore: KeyValueStore {
  /// The errors of the next transactions, `nil` for one that succeeds.
  let failures = Mutex<[StorageError?]>([])
  /// The number of next transactions that succeed and report that their outcome is unknown.
  let lostAnswers = Mutex(0)
  private let store: any KeyValueStore
  private let count = Atomic(0)

  init(_ store: any KeyValueStore) { self.store = store }

  /// The number of transactions that began, since ``forget()``.
  var writes: Int { count.load(ordering: .sequentiallyConsistent) }

  func forget() { count.store(0, ordering: .sequentiallyConsistent) }

  func snapshot() throws(StorageError) -> any KeyValueSnapshot { try store.snapshot() }
  func statistics() throws(StorageError) -> KeyValueStatistics { try store.statistics() }
  func copy(toFile path: String) throws(StorageError) { try store.copy(toFile: path) }

  func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError) {
    count.add(1, ordering: .sequentiallyConsistent)
    let failure = failures.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    try store.write { (transaction) throws(StorageError) in
      try body(transaction)
      if let failure { throw failure }
    }
    let isLost = lostAnswers.withLock { count in
      defer { count = max(0, count - 1) }
      return count > 0
    }
    if isLost { throw .outcomeUnknown(path: "log", detail: "the answer was lost") }
  }
}
