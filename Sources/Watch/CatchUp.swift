package import DocumentModel
package import DocumentStore
import KeyValue
import QueryEngine

/// Brings a client's state of one target to a version, from nothing or from an earlier version that the client has.
///
/// Runs on the client's thread in slices, each on its own snapshot, so that a slow client does not hold a snapshot.
package final class CatchUp {
  /// The start and the end of a catch-up.
  package struct Plan {
    /// The hub's number of the target.
    package let target: Int
    let selection: TargetSelection
    /// The version that the client has, or `nil` if it has nothing.
    let origin: Int64?
    /// The version that the client reaches.
    package let version: Int64
    /// The target's documents at the version, if they are known.
    let documents: [ResourcePath]?
    /// Whether changes may name any document in the target's collections as removed, even if the history no longer
    /// shows whether it was a result. If `false`, such a client starts over.
    let mayName: Bool
    /// The number of documents that the client has at `origin`. If the actual number differs and something has
    /// changed since, the client starts over.
    let expectedCount: Int?
  }

  /// The outcome of a slice.
  package enum Progress {
    /// Some changes are left.
    case paused
    /// The client has received all changes.
    case done
    /// The changes since the client's version are not known. The client must discard all documents of the target
    /// (RESET). The next slices report all documents.
    case reset
  }

  /// Receives a change. The bytes of its document are valid only during the call. Returns whether to continue.
  package typealias Emit = (DocumentKey, DocumentChange<StoredDocument>) throws -> Bool

  private let database: DocumentDatabase
  private let plan: Plan
  private var work: (any CatchUpStrategy)?

  /// Prepares a catch-up.
  package init(_ database: DocumentDatabase, _ plan: Plan) {
    self.database = database
    self.plan = plan
  }

  private var options: PlanOptions { PlanOptions(scratch: database.scratch) }

  /// Whether the catch-up waits for scratch space, so that a slice would do nothing. If so, calls `wake` once, on any
  /// thread, when the next slice can continue, or fails because it has waited too long.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { work?.wait(wake) ?? false }

  /// Calls `emit` for each change until it returns `false`, no changes are left, or some hundred microseconds have
  /// passed. The client applies the changes in order.
  /// - Throws: ``CommitError/readTimeTooOld`` if the client took so long that the version cannot be read any more,
  ///   ``StorageError`` if a read fails, ``WireError`` if a stored document is malformed, ``ScratchError`` if there is
  ///   no scratch space, and any error of `emit`.
  package func slice(_ emit: Emit) throws -> Progress {
    try database.read { reader in
      guard try reader.isReadable(at: plan.version) else { throw CommitError.readTimeTooOld }
      let begun = if let work { work } else { try begin(&reader) }
      work = begun
      let progress = try begun?.slice(&reader, emit) ?? .reset
      if progress == .reset { work = try fromNothing(reader.snapshot) }
      return progress
    }
  }

  /// Returns the strategy to begin with, or `nil` if the client must start over.
  private func begin(_ reader: inout SnapshotReader) throws -> (any CatchUpStrategy)? {
    guard let origin = plan.origin, case .query(let query) = plan.selection else {
      return try fromNothing(reader.snapshot)
    }
    return try resume(query, from: origin, &reader)
  }

  private func fromNothing(_ snapshot: any KeyValueSnapshot) throws -> any CatchUpStrategy {
    switch plan.selection {
    case .documents(let keys): return DocumentsCatchUp(keys, since: plan.origin, at: plan.version)
    case .query(let query):
      if let documents = plan.documents { return DocumentsCatchUp(documents: documents, at: plan.version) }
      return try FullResultCatchUp(query, snapshot, at: plan.version, options)
    }
  }

  /// Returns the strategy to catch up from a version that the client has, or `nil` if the client must start over.
  private func resume(
    _ query: WatchedQuery, from origin: Int64, _ reader: inout SnapshotReader
  ) throws -> (any CatchUpStrategy)? {
    let version = plan.version
    guard origin <= version, try reader.isLogged(since: origin) else { return nil }
    guard let collections = try ChangeLogCatchUp.collections(changedIn: query.scope, after: origin, &reader) else {
      return DocumentsCatchUp([], since: nil, at: version)
    }
    switch query.shape {
    case .nothing: return DocumentsCatchUp([], since: nil, at: version)
    case .whole: return nil
    case .each: return ChangeLogCatchUp(query, collections, from: origin, plan, options)
    case .window:
      guard let documents = plan.documents, try reader.isReadable(at: origin) else { return nil }
      return try WindowCatchUp(query, reader.snapshot, from: origin, to: documents, plan, options)
    }
  }
}

/// A way to reach a version, in slices.
protocol CatchUpStrategy: AnyObject {
  /// Runs the next slice; see ``CatchUp/slice(_:)``.
  func slice(_ reader: inout SnapshotReader, _ emit: CatchUp.Emit) throws -> CatchUp.Progress
  /// Whether the strategy waits for scratch space; see ``CatchUp/wait(_:)``.
  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool
}

extension CatchUpStrategy {
  /// Never waits.
  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { false }
}

extension SnapshotReader {
  /// Returns the document as it was at a version. Cost: that of ``document(_:in:at:)`` and a lookup of its
  /// collection.
  mutating func document(_ key: DocumentKey, at version: Int64) throws -> StoredDocument? {
    guard let row = try collection(key.collection) else { return nil }
    return try document(key.id, in: row.number, at: version)
  }
}
