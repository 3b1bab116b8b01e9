package import DocumentModel
package import DocumentStore
import KeyValue

/// Brings a client's state of one target to a version, from nothing or from an earlier version that the client has.
///
/// Runs on the client's thread in slices, each on its own snapshot, so that a slow client does not hold a snapshot.
package final class CatchUp {
  /// A change that the client must apply. The order of events matters.
  package enum Event {
    /// The client must discard all documents of the target (RESET). The following events contain all of them.
    case reset
    /// A document matches the target. Borrowed: valid only during the call that receives it.
    case matches(DocumentKey, StoredDocument)
    /// A document, as it is now, no longer matches the target. Borrowed.
    case left(DocumentKey, StoredDocument)
    /// A document does not exist.
    case deleted(DocumentKey)
    /// A document no longer belongs to the target.
    case removed(DocumentKey)
  }

  /// The version that the client reaches.
  package let version: Int64
  /// Whether the client has received all events.
  package private(set) var isAtEnd = false
  private let database: DocumentDatabase
  private let selection: TargetSelection
  private let documents: [ResourcePath]?
  private let origin: Int64?
  private let mayName: Bool
  private let expectedCount: Int?
  private var work: (any CatchUpStrategy)?

  /// Goes from `origin`, or from nothing, to `version`.
  ///
  /// - Parameters:
  ///   - documents: the target's documents at `version`, if they are known.
  ///   - mayName: whether events may name any document in the target's collections as removed, even if the history
  ///     no longer shows whether it was a result. If `false`, such a client starts over with ``Event/reset``.
  ///   - expectedCount: the number of documents that the client has at `origin`. If the actual number differs and
  ///     something has changed since, the client starts over.
  package init(
    _ database: DocumentDatabase, _ selection: TargetSelection, from origin: Int64?, to version: Int64,
    documents: [ResourcePath]?, mayName: Bool, expectedCount: Int? = nil
  ) {
    self.database = database
    self.selection = selection
    self.version = version
    self.documents = documents
    self.origin = origin
    self.mayName = mayName
    self.expectedCount = expectedCount
  }

  /// Calls `emit` for each event until it returns `false`, no events are left, or some hundred microseconds have
  /// passed.
  /// - Throws: ``CommitError/readTimeTooOld`` if the client took so long that the version cannot be read any more,
  ///   ``StorageError`` if a read fails, ``WireError`` if a stored document is malformed, and any error of `emit`.
  package func slice(_ emit: (Event) throws -> Bool) throws {
    guard !isAtEnd else { return }
    try database.read { reader in
      guard try reader.isReadable(at: version) else { throw CommitError.readTimeTooOld }
      let work = if let begun = self.work { begun } else { try begin(&reader) }
      self.work = work
      switch try work.slice(&reader, emit) {
      case .paused: return
      case .done: isAtEnd = true
      case .unknown:
        self.work = try fromNothing(reader.snapshot)
        _ = try emit(.reset)
      }
    }
  }

  private func begin(_ reader: inout SnapshotReader) throws -> any CatchUpStrategy {
    guard let origin, case .query(let query) = selection else { return try fromNothing(reader.snapshot) }
    if let work = try resume(query, from: origin, &reader) { return work }
    return NoCatchUp()
  }

  private func fromNothing(_ snapshot: any KeyValueSnapshot) throws -> any CatchUpStrategy {
    switch selection {
    case .documents(let keys): return DocumentsCatchUp(keys, since: origin, at: version)
    case .query(let query):
      if let documents { return DocumentsCatchUp(documents: documents, at: version) }
      return try FullResultCatchUp(query, snapshot, at: version)
    }
  }

  /// Returns the strategy to catch up from a version that the client has, or `nil` if the client must start over.
  private func resume(
    _ query: WatchedQuery, from origin: Int64, _ reader: inout SnapshotReader
  ) throws -> (any CatchUpStrategy)? {
    guard origin <= version, try reader.isLogged(since: origin) else { return nil }
    guard let collections = try ChangeLogCatchUp.collections(changedIn: query.scope, after: origin, &reader) else {
      return DocumentsCatchUp([], since: nil, at: version)
    }
    switch query.shape {
    case .nothing: return DocumentsCatchUp([], since: nil, at: version)
    case .whole: return nil
    case .each:
      return ChangeLogCatchUp(
        query, collections, from: origin, to: version, mayName: mayName, expectedCount: expectedCount)
    case .window:
      guard let documents, try reader.isReadable(at: origin) else { return nil }
      return try WindowCatchUp(
        query, reader.snapshot, from: origin, to: version, documents, expectedCount: expectedCount)
    }
  }
}

/// A way to reach a version, in slices.
protocol CatchUpStrategy: AnyObject {
  /// Runs the next slice; see ``CatchUp/slice(_:)``.
  func slice(_ reader: inout SnapshotReader, _ emit: (CatchUp.Event) throws -> Bool) throws -> CatchUpProgress
}

/// The outcome of a slice.
enum CatchUpProgress {
  /// Some events are left.
  case paused
  /// All events have been emitted.
  case done
  /// The changes are not known. The client must start over.
  case unknown
}

/// A strategy without known changes: the client must start over.
final class NoCatchUp: CatchUpStrategy {
  func slice(_ reader: inout SnapshotReader, _ emit: (CatchUp.Event) throws -> Bool) -> CatchUpProgress { .unknown }
}

extension SnapshotReader {
  /// Returns the document as it was at a version. Cost: that of ``document(_:in:at:)`` and a lookup of its
  /// collection.
  mutating func document(_ key: DocumentKey, at version: Int64) throws -> StoredDocument? {
    guard let row = try collection(key.collection) else { return nil }
    return try document(key.id, in: row.number, at: version)
  }
}
