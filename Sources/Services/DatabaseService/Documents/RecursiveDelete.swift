import Dispatch
package import DocumentModel
import DocumentStore

extension FirestoreService {
  /// Deletes a document or a collection with all its descendants, up to about `limit` documents. Call it repeatedly
  /// until it is done, each time with the last document of the previous outcome. The root path deletes all
  /// documents.
  ///
  /// The documents are deleted in batches of ordinary commits. The operation is therefore not atomic, does not block
  /// others, and uses constant memory. It does not delete documents that are created, while it runs, before its
  /// current position. `completion` is called once, on any thread.
  /// - Throws: Errors found before anything is deleted: those of ``access(to:as:)``; `PERMISSION_DENIED` if the
  ///   caller is not an administrator and rules apply.
  package func recursiveDelete(
    _ path: ResourcePath, in id: DatabaseID, as caller: Caller, after last: DocumentKey? = nil, limit: Int,
    completion: @escaping @Sendable (Result<RecursiveDeleteOutcome, Status>) -> Void
  ) throws {
    let administrator = try access(to: id, as: caller).administrator()
    RecursiveDelete(administrator.database, path, limit: limit, completion).deleteBatch(after: last, deleted: 0)
  }
}

/// The outcome of one call of a recursive delete.
package struct RecursiveDeleteOutcome: Equatable, Sendable {
  /// The number of deleted documents.
  package var deleted: Int
  /// Whether nothing is left to delete.
  package var isDone: Bool
  /// The document after which the next call continues, so that it can skip what is already deleted; `nil` if nothing
  /// is left.
  package var last: DocumentKey?
}

/// One call of a recursive delete: finds a batch, commits its deletion, and continues after it.
private final class RecursiveDelete: Sendable {
  private static let batchDocumentsMax = 500

  private let database: DocumentDatabase
  private let path: ResourcePath
  private let limit: Int
  private let completion: @Sendable (Result<RecursiveDeleteOutcome, Status>) -> Void
  /// Documents are searched on this queue, so that neither an event loop nor the writer waits.
  private let queue = DispatchQueue(label: "hearth.recursive-delete")

  init(
    _ database: DocumentDatabase, _ path: ResourcePath, limit: Int,
    _ completion: @escaping @Sendable (Result<RecursiveDeleteOutcome, Status>) -> Void
  ) {
    self.limit = limit
    self.database = database
    self.path = path
    self.completion = completion
  }

  func deleteBatch(after key: DocumentKey?, deleted: Int) {
    queue.async { [self] in
      do {
        var keys = try batch(after: key)
        let isLast = keys.count < Self.batchDocumentsMax
        let last = keys.last ?? key
        // Delete the document itself last, so that a repeated call finds the rest by its path.
        if isLast, let own = DocumentKey(path), try database.exists(own) { keys.append(own) }
        let total = deleted + keys.count
        guard !keys.isEmpty else { return finish(total, last: nil) }
        database.commit(CommitRequest(keys.map { Write(.delete, key: $0) })) { [self] result in
          switch result {
          case .failure(let error): completion(.failure(Status(error, database: database.id)))
          case .success where isLast: finish(total, last: nil)
          case .success where total >= limit: finish(total, last: last)
          case .success: deleteBatch(after: last, deleted: total)
          }
        }
      } catch {
        completion(.failure(Status(error, database: database.id)))
      }
    }
  }

  private func finish(_ deleted: Int, last: DocumentKey?) {
    completion(.success(RecursiveDeleteOutcome(deleted: deleted, isDone: last == nil, last: last)))
  }

  private func batch(after key: DocumentKey?) throws -> [DocumentKey] {
    try database.read { reader in
      var iterator = try SubtreeIterator(reader.snapshot, below: path, after: key)
      var keys: [DocumentKey] = []
      while keys.count < Self.batchDocumentsMax, let step = try iterator.next() {
        if step.document != nil { keys.append(step.key) }
      }
      return keys
    }
  }
}

extension DocumentDatabase {
  fileprivate func exists(_ key: DocumentKey) throws -> Bool {
    try read { reader in try reader.document(key) != nil }
  }
}
