import Dispatch
package import DocumentModel
package import KeyValue
import Synchronization

/// Receives reports on background work on indexes. Called on the writer's thread, so it must return quickly.
package typealias IndexObserver = @Sendable ([IndexReport]) -> Void

/// The state of a database's background work: at most one index job and one expiry job run at a time.
final class BackgroundWork: Sendable {
  let batch: IndexBatch
  let observer: IndexObserver?
  private struct State {
    var isStopped = false
    var isIndexing = false
    /// Whether work on indexes was requested while it was under way, perhaps after its last batch.
    var mustIndexAgain = false
    var isExpiring = false
  }
  private let state = Mutex(State())
  /// Entered while expired documents are being deleted.
  private let expiring = DispatchGroup()

  init(batch: IndexBatch, observer: IndexObserver?) {
    self.batch = batch
    self.observer = observer
  }

  /// Prevents new work from starting.
  func stop() { state.withLock { $0.isStopped = true } }

  var isStopped: Bool { state.withLock { $0.isStopped } }

  /// Starts work on indexes. Returns `false` if it is stopped, or already under way: then it looks for work again before it
  /// ends.
  func beginIndexing() -> Bool {
    state.withLock { state in
      guard !state.isStopped else { return false }
      state.mustIndexAgain = state.isIndexing
      defer { state.isIndexing = true }
      return !state.isIndexing
    }
  }

  /// Ends work on indexes. Returns `false` if it was requested again and must look for work first.
  func endIndexing() -> Bool {
    state.withLock { state in
      let mustContinue = state.mustIndexAgain && !state.isStopped
      state.mustIndexAgain = false
      state.isIndexing = mustContinue
      return !mustContinue
    }
  }

  /// Starts the deletion of expired documents. Returns `false` if it is already under way or stopped.
  func beginExpiring() -> Bool {
    state.withLock { state in
      guard !state.isStopped, !state.isExpiring else { return false }
      state.isExpiring = true
      expiring.enter()
      return true
    }
  }

  func endExpiring() {
    state.withLock { $0.isExpiring = false }
    expiring.leave()
  }

  /// Waits until no expired documents are being deleted. Call ``stop()`` first.
  func waitForExpiring() { expiring.wait() }

  /// Entered while the bytes of documents are being counted.
  let counting = DispatchGroup()

  /// Waits until documents are no longer being counted. Call ``stop()`` first.
  func waitForCounting() { counting.wait() }
}

extension DocumentDatabase {
  /// Returns the indexes in a snapshot. Cost: one lookup, unless the indexes changed since the last call.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package func indexes(_ reader: inout SnapshotReader) throws(StorageError) -> IndexCatalog {
    try indexCache.catalog(&reader)
  }

  /// Returns a report on every declared index and every index being removed. Cost: reads one row per index.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package func indexReports() throws -> [IndexReport] {
    try read { reader in IndexReport.all(try IndexCatalog(&reader)) }
  }

  /// Whether a field is configured to expire documents.
  var hasExpiringFields: Bool {
    let catalog = try? read { reader in try indexes(&reader) }
    return catalog?.expiringFields.isEmpty == false
  }

  /// Replaces the index configuration. Returns when the change is durable; entries are updated in the background.
  ///
  /// Waits for the group being written. The writer's thread must not call it.
  /// - Throws: ``StorageError/notOwner(of:owner:)`` before ``adopt(indexes:origin:floor:)``; another ``StorageError`` if the
  ///   read or the write fails.
  package func setIndexes(_ configuration: IndexConfiguration) throws(StorageError) {
    try requireAdopted()
    try store.write { (transaction) throws(StorageError) in
      _ = try IndexReconciliation.apply(configuration, transaction)
    }
    continueBackgroundWork()
  }

  /// Resumes building and removing indexes, between commits, until all work is done. Returns at once. Does nothing before
  /// ``adopt(indexes:origin:floor:)``.
  package func continueBackgroundWork() {
    guard isAdopted, background.beginIndexing() else { return }
    queue.perform { [self] in advanceIndexes(isFirst: true) }
  }

  /// Runs one batch, then queues the next one behind the waiting commits.
  private func advanceIndexes(isFirst: Bool) {
    var hasMore = false
    do throws(StorageError) {
      let snapshot = try store.snapshot()
      var reader = SnapshotReader(snapshot)
      let before = try IndexCatalog(&reader)
      snapshot.end()
      if !background.isStopped, IndexBuilder.isDue(before) {
        if isFirst { background.observer?(IndexReport.all(before)) }
        try queue.write { (writer, transaction) throws(StorageError) in
          hasMore = try IndexBuilder.advance(background.batch, &writer, transaction)
        }
        report(since: before)
      }
    } catch {
      // The batch was rolled back. Maintenance retries, and the next commit reports any failure of the store.
    }
    if !hasMore || background.isStopped, background.endIndexing() { return }
    let isFirst = !hasMore
    queue.perform { [self] in advanceIndexes(isFirst: isFirst) }
  }

  /// Reports to the observer whenever an index changes its state, and after every 50,000 documents.
  private func report(since before: IndexCatalog) {
    guard let observer = background.observer, let after = try? read({ try IndexCatalog(&$0) }) else { return }
    let step = Self.reportedDocuments
    let isReported =
      before.generation != after.generation
      || zip(before.indexes, after.indexes).contains { $0.progress.documents / step != $1.progress.documents / step }
    if isReported { observer(IndexReport.all(after)) }
  }

  private static var reportedDocuments: UInt64 { 50_000 }
}

extension IndexReport {
  /// Returns a report on every declared index and every index being removed, as in a snapshot.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package static func all(_ snapshot: any KeyValueSnapshot) throws(StorageError) -> [IndexReport] {
    var reader = SnapshotReader(snapshot)
    return all(try IndexCatalog(&reader))
  }

  static func all(_ catalog: IndexCatalog) -> [IndexReport] {
    catalog.indexes.map { index in
      IndexReport(
        text: index.definition.text, state: index.state.reported, documents: Int(clamping: index.progress.documents))
    }
      + catalog.settings.filter { !($0.isUndeclared && $0.state == .settled) }.map { setting in
        let state: State =
          switch setting.state {
          case .clearing: .removing
          case .filling: .building
          case .settled: .ready
          }
        return IndexReport(text: setting.text, state: state, documents: Int(clamping: setting.progress.documents))
      }
  }
}

extension IndexDefinition {
  /// A description such as `rooms (owner ascending, tags contains)`; an index of a collection group begins with
  /// `group of rooms`.
  package var text: String {
    let parts = fields.map { field in
      switch field.mode {
      case .ascending: "\(field.path.text) ascending"
      case .descending: "\(field.path.text) descending"
      case .contains: "\(field.path.text) contains"
      case .vector(let dimension): "\(field.path.text) vector of \(dimension)"
      case .text(let language): "\(field.path.text) text in \(language.code)"
      }
    }
    return "\(scope == .collection ? "" : "group of ")\(collectionID) (\(parts.joined(separator: ", ")))"
  }
}

extension FieldSetting {
  /// A description such as `rooms, field text: not indexed`.
  fileprivate var text: String {
    let what =
      switch entries {
      case []: "not indexed"
      case .all: "indexed"
      case .ascending: "indexed without array elements"
      default: "indexed by array elements only"
      }
    let field = path.isAllFields ? "all fields" : "field \(path.text)"
    return "\(String(decoding: collectionID, as: UTF8.self)), \(field): \(what)\(expires ? ", expires" : "")"
  }
}
