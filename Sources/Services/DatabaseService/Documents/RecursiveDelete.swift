import Dispatch
package import DocumentModel
import DocumentStore

extension FirestoreService {
  /// Deletes a document or a collection with everything below it, up to about `limit` documents: call it until it is
  /// done, each time behind the last document of the call before. The root stands for all documents.
  ///
  /// Runs in batches of ordinary commits, so it is not atomic, holds up nobody, and bounded memory serves any size.
  /// Documents that are created meanwhile, behind where it works, stay. `completion` is called once, on any thread.
  /// - Throws: what is wrong before anything is deleted.
  package func recursiveDelete(
    _ path: ResourcePath, in id: DatabaseID, as caller: Caller, behind last: DocumentKey? = nil, limit: Int,
    completion: @escaping @Sendable (Result<RecursiveDeleteOutcome, Status>) -> Void
  ) throws {
    let access = try access(to: id, as: caller)
    try access.requireAdmin()
    RecursiveDelete(access.database, path, limit: limit, completion).deleteBatch(after: last, deleted: 0)
  }
}

/// What a call of a recursive delete did.
package struct RecursiveDeleteOutcome: Equatable, Sendable {
  /// How many documents it deleted.
  package var deleted: Int
  /// Whether nothing is left to delete.
  package var isDone: Bool
  /// Where the next call goes on, so that it need not pass what is gone; `nil` where nothing is left.
  package var last: DocumentKey?
}

/// One call of a recursive delete under way: finds a batch, commits it, goes on behind it.
private final class RecursiveDelete: Sendable {
  private static let batchDocumentsMax = 500

  private let database: DocumentDatabase
  private let path: ResourcePath
  private let limit: Int
  private let completion: @Sendable (Result<RecursiveDeleteOutcome, Status>) -> Void
  /// Walks run here, so that neither an event loop nor the writer waits for them.
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
        // The document itself goes last, so that what is left is found again from its path.
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
      var walk = try SubtreeIterator(reader.snapshot, below: path, after: key)
      var keys: [DocumentKey] = []
      while keys.count < Self.batchDocumentsMax, let step = try walk.next() {
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
