package import DocumentModel
package import DocumentStore
import KeyValue

/// Brings a client's state of one target to a version: from nothing, or from an earlier version that it has.
///
/// Runs on the client's thread in slices, each on a snapshot of its own, so that a slow client holds none.
package final class CatchUp {
  /// What the client is to do, in order.
  package enum Event {
    /// Forget all documents of the target: what comes is everything.
    case reset
    /// A document belongs to the target. Borrowed for the call that it is given to.
    case matches(DocumentKey, StoredDocument)
    /// A document belongs to the target no longer, as it is now. Borrowed.
    case left(DocumentKey, StoredDocument)
    /// A document is gone.
    case deleted(DocumentKey)
    /// A document belongs to the target no longer.
    case removed(DocumentKey)
  }

  /// The version that is brought about.
  package let version: Int64
  /// Whether the client has everything.
  package private(set) var isAtEnd = false
  private let database: DocumentDatabase
  private let selection: TargetSelection
  private let members: [ResourcePath]?
  private let origin: Int64?
  private let mayName: Bool
  private let expectedCount: Int?
  private var work: (any CatchUpStrategy)?

  /// Goes from `origin`, or from nothing, to `version`, where the target consists of `members` if they are known.
  ///
  /// `mayName` says that the client may be told of any document in the target's collections that it is no result, where
  /// nobody knows any more whether it was one; else such a client starts over. So does one that says that it has
  /// another number of documents at `origin` than there were, where something changed since.
  package init(
    _ database: DocumentDatabase, _ selection: TargetSelection, from origin: Int64?, to version: Int64,
    members: [ResourcePath]?, mayName: Bool, expectedCount: Int? = nil
  ) {
    self.database = database
    self.selection = selection
    self.version = version
    self.members = members
    self.origin = origin
    self.mayName = mayName
    self.expectedCount = expectedCount
  }

  /// Calls `emit` per event until it returns `false`, there are no more, or some hundred microseconds were spent.
  /// - Throws: what `emit` throws, and ``CommitError/readTimeTooOld`` where the client took so long that the version
  ///   cannot be read any more.
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
      if let members { return DocumentsCatchUp(members: members, at: version) }
      return try FullResultCatchUp(query, snapshot, at: version)
    }
  }

  /// The way from a version that the client has, where it is known.
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
      guard let members, try reader.isReadable(at: origin) else { return nil }
      return try WindowCatchUp(
        query, reader.snapshot, from: origin, to: version, members, expectedCount: expectedCount)
    }
  }
}

/// A way to a version, step by step.
protocol CatchUpStrategy: AnyObject {
  /// Goes on; see ``CatchUp/slice(_:)``.
  func slice(_ reader: inout SnapshotReader, _ emit: (CatchUp.Event) throws -> Bool) throws -> CatchUpProgress
}

/// How far a slice came.
enum CatchUpProgress {
  /// There is more.
  case paused
  /// All is told.
  case done
  /// It cannot be known what is to be told: the client has to start over.
  case unknown
}

/// No way at all.
final class NoCatchUp: CatchUpStrategy {
  func slice(_ reader: inout SnapshotReader, _ emit: (CatchUp.Event) throws -> Bool) -> CatchUpProgress { .unknown }
}

extension SnapshotReader {
  /// The document as it was at a version. Cost: as ``document(_:in:at:)``, and a look for its collection.
  mutating func document(_ key: DocumentKey, at version: Int64) throws -> StoredDocument? {
    guard let row = try collection(key.collection) else { return nil }
    return try document(key.id, in: row.number, at: version)
  }
}
