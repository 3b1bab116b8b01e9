import Dispatch
package import DocumentModel
package import KeyValue
import Synchronization

/// Is told how far background work on indexes is, on the writer's thread; be quick there.
package typealias IndexObserver = @Sendable ([IndexReport]) -> Void

/// What people are told of one index, or of one field whose entries are not the automatic ones.
package struct IndexReport: Equatable, Sendable {
  /// What can happen to an index.
  package enum State: String, Sendable {
    /// Entries of documents from before are being added.
    case building
    /// Entries are being deleted.
    case removing
    /// Complete.
    case ready
    /// A document has an entry that is too large; it is not used.
    case failed
  }

  /// Such as `rooms (owner ascending, rank descending)`.
  package var text: String
  /// What happens to it.
  package var state: State
  /// Documents looked at so far, while it is being built.
  package var documents: Int

  /// Joins the parts.
  package init(text: String, state: State, documents: Int) {
    self.text = text
    self.state = state
    self.documents = documents
  }

  /// The report in one line.
  package var line: String {
    switch state {
    case .building: "\(text): building, \(documents) documents so far"
    case .removing: "\(text): removing"
    case .ready: "\(text): ready"
    case .failed: "\(text): failed, a document's values take more than one entry may hold; it is not used"
    }
  }
}

/// The state of a database's background work, of which there is one piece at a time.
final class BackgroundWork: Sendable {
  let batch: IndexBatch
  let observer: IndexObserver?
  private struct State {
    var isStopped = false
    var isIndexing = false
    var isExpiring = false
  }
  private let state = Mutex(State())
  /// Entered while expired documents are being removed.
  private let expiring = DispatchGroup()

  init(batch: IndexBatch, observer: IndexObserver?) {
    self.batch = batch
    self.observer = observer
  }

  /// No more work is begun.
  func stop() { state.withLock { $0.isStopped = true } }

  var isStopped: Bool { state.withLock { $0.isStopped } }

  /// Claims the work on indexes; `false` where it is under way or stopped.
  func beginIndexing() -> Bool {
    state.withLock { state in
      guard !state.isStopped, !state.isIndexing else { return false }
      state.isIndexing = true
      return true
    }
  }

  func endIndexing() { state.withLock { $0.isIndexing = false } }

  /// Claims the removal of expired documents.
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

  /// Waits until no expired documents are being removed; call ``stop()`` first.
  func waitForExpiring() { expiring.wait() }
}

extension DocumentDatabase {
  /// The indexes that a snapshot shows. Cost: one lookup, mostly.
  package func indexes(_ reader: inout SnapshotReader) throws(StorageError) -> IndexCatalog {
    try indexCache.catalog(&reader)
  }

  /// What is to be told of every declared index, and of what is being removed. Cost: reads a row for each.
  package func indexReports() throws -> [IndexReport] {
    try read { reader in IndexReport.all(try IndexCatalog(&reader)) }
  }

  /// Whether documents of some field vanish after a time.
  var hasExpiringFields: Bool {
    let catalog = try? read { reader in try indexes(&reader) }
    return catalog?.expiringFields.isEmpty == false
  }

  /// Changes which indexes there are. Returns once the change is durable; entries follow in the background.
  ///
  /// Waits for the group being written. Not to be called on the writer's thread.
  package func setIndexes(_ configuration: IndexConfiguration) throws(StorageError) {
    try store.write { (transaction) throws(StorageError) in
      _ = try IndexReconciliation.apply(configuration, transaction)
    }
    continueBackgroundWork()
  }

  /// Goes on with building and removing indexes, between commits, until nothing is left to do. Returns at once.
  package func continueBackgroundWork() {
    guard background.beginIndexing() else { return }
    queue.perform { [self] in advanceIndexes(isFirst: true) }
  }

  /// One batch, then the next one behind the commits that wait.
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
      // The batch left nothing behind; maintenance tries again, and a commit will report what is wrong with the store.
    }
    guard hasMore, !background.isStopped else { return background.endIndexing() }
    queue.perform { [self] in advanceIndexes(isFirst: false) }
  }

  /// Tells the observer where something ended, and every now and then.
  private func report(since before: IndexCatalog) {
    guard let observer = background.observer, let after = try? read({ try IndexCatalog(&$0) }) else { return }
    let step = Self.reportedDocuments
    let isReported = before.generation != after.generation
      || zip(before.indexes, after.indexes).contains { $0.progress.documents / step != $1.progress.documents / step }
    if isReported { observer(IndexReport.all(after)) }
  }

  private static var reportedDocuments: UInt64 { 50_000 }
}

extension IndexReport {
  /// What is to be told of every declared index that a snapshot shows, and of what is being removed.
  package static func all(_ snapshot: any KeyValueSnapshot) throws(StorageError) -> [IndexReport] {
    var reader = SnapshotReader(snapshot)
    return all(try IndexCatalog(&reader))
  }

  static func all(_ catalog: IndexCatalog) -> [IndexReport] {
    catalog.indexes.map { index in
      let state: State =
        switch index.state {
        case .building: .building
        case .ready: .ready
        case .removing: .removing
        case .failed: .failed
        }
      return IndexReport(
        text: index.definition.text, state: state, documents: Int(clamping: index.progress.documents))
    }
      + catalog.settings.filter { !($0.isLifted && $0.state == .settled) }.map { setting in
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
  /// Such as `rooms (owner ascending, tags contains)`, with `group of rooms` for one over the group.
  package var text: String {
    let parts = fields.map { field in
      switch field.mode {
      case .ascending: "\(field.path.text) ascending"
      case .descending: "\(field.path.text) descending"
      case .contains: "\(field.path.text) contains"
      case .vector(let dimension): "\(field.path.text) vector of \(dimension)"
      }
    }
    return "\(scope == .collection ? "" : "group of ")\(collectionID) (\(parts.joined(separator: ", ")))"
  }
}

extension FieldSetting {
  /// Such as `rooms, field text: not indexed`.
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
