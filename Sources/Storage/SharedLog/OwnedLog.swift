package import KeyValue
package import LogEngine

/// The ``CommitLog`` of a store's owner in a cluster. An append is one conditional insert into the shared tables.
///
/// Like ``FileLog``, it appends on the thread that holds the writer, which waits for the answer. If an answer is lost, it
/// repeats the same entry. A ``LoggedStore`` works the same on both.
package final class OwnedLog: CommitLog {
  package private(set) var position: LogPosition
  package private(set) var failure: StorageError?

  private let tables: any SharedTables
  private let store: String
  private let secret: UInt64
  private let epoch: UInt64
  private let repeats: @Sendable () -> Bool

  /// Takes over a log after the takeover entry of this node was applied.
  /// - Parameters:
  ///   - store: the name of the store, for messages.
  ///   - takeover: the position after the takeover entry.
  ///   - repeats: is called before an append is tried again. It may wait. If it returns `false`, the outcome remains
  ///     unknown, and the log accepts nothing more.
  package init(
    _ tables: any SharedTables, of store: String, after takeover: LogPosition, secret: UInt64,
    repeats: @escaping @Sendable () -> Bool
  ) {
    self.tables = tables
    self.store = store
    self.secret = secret
    self.repeats = repeats
    position = takeover
    epoch = takeover.epoch
  }

  /// Appends one entry; see ``EntryAppend``.
  /// - Throws: ``StorageError/notOwner(of:owner:)`` if another node owns the log, so that the batch is not in it;
  ///   ``StorageError/outcomeUnknown(path:detail:)`` if that cannot be found out. Nothing more is accepted in both cases.
  package func append(_ batch: CommitBatch) throws(StorageError) -> LogPosition {
    if let failure { throw failure }
    let entry = SharedEntry(.batch, batch.bytes, after: position, epoch: epoch, secret: secret)
    var append = EntryAppend(entry, behind: position)
    var reply = tables.perform(append.request)
    while true {
      switch append.receive(reply) {
      case .appended:
        position = entry.position
        return position
      case .perform(let request):
        if reply == nil, !repeats() { throw fail("no answer to its insert arrived") }
        reply = tables.perform(request)
      case .refused:
        failure = .notOwner(of: store, owner: nil)
        throw .notOwner(of: store, owner: nil)
      case .unknown: throw fail("another node owns it, and its older entries are gone")
      }
    }
  }

  private func fail(_ reason: String) -> StorageError {
    failure = .notOwner(of: store, owner: nil)
    return .outcomeUnknown(path: store, detail: reason)
  }

  /// Does nothing: entries are removed when a snapshot replaces them.
  package func release(upTo sequence: UInt64, keepingSpares: Bool) {}

  /// Accepts nothing more. The entries stay for the other nodes.
  package func removeAll() { failure = failure ?? .notOwner(of: store, owner: nil) }

  /// Opens the replica of a store whose takeover entry is in the log.
  ///
  /// `entries` are those after the position of the data file, up to the takeover entry of this node, which is the last.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if they do not continue the data file; ``StorageError`` if a call
  ///   fails.
  package static func open(
    _ base: any MarkedStore, entries: [SharedEntry], _ tables: any SharedTables, of store: String, secret: UInt64,
    settings: LoggedStoreSettings = LoggedStoreSettings(), repeats: @escaping @Sendable () -> Bool
  ) throws(StorageError) -> LoggedStore {
    var position = LogPosition()
    if let origin = try base.logOrigin() {
      guard origin.secret == secret else {
        throw .corruption(path: base.path, detail: "it is not a replica of \(store)")
      }
      position = origin.position
    }
    var batches: [CommitBatch] = []
    for entry in entries {
      guard entry.follows(position, secret: secret) else {
        throw .corruption(path: base.path, detail: "entry \(entry.position.sequence) of \(store) does not continue it")
      }
      position = entry.position
      guard entry.kind == .batch else { continue }
      do throws(CommitBatchError) { batches.append(try CommitBatch(checking: entry.body)) } catch {
        throw .corruption(
          path: store, detail: "entry \(position.sequence) is wrong at byte \(error.offset): \(error.problem)")
      }
    }
    let log = OwnedLog(tables, of: store, after: position, secret: secret, repeats: repeats)
    return try LoggedStore.open(base, replaying: batches, log: log, secret: secret, settings: settings)
  }
}
