import Foundation

/// A transaction: reads and writes that no other write can interleave; see ``Hearth/runTransaction(attempts:_:)``.
///
/// Read before you write. The documents that a transaction has read do not change before its commit. The writes are
/// sent with the commit.
public final class Transaction: Sendable {
  private let client: Hearth
  let id: String
  fileprivate let batch: Locked<WriteBatch>

  fileprivate init(_ client: Hearth, id: String) {
    (self.client, self.id) = (client, id)
    batch = Locked(client.batch())
  }

  /// Reads a document.
  /// - Throws: ``HearthClientError`` if the request fails, `DecodingError` if the document does not match `T`.
  public func get<T: Decodable & Sendable>(
    _ reference: DocumentReference, as type: T.Type = [String: Value].self
  ) async throws -> DocumentSnapshot<T> {
    guard let snapshot = try await get([reference], as: type).first else {
      throw HearthClientError.unreadable("the response does not include \(reference)")
    }
    return snapshot
  }

  /// Reads several documents. Returns them in the order of `references`.
  /// - Throws: ``HearthClientError`` if the request fails, `DecodingError` if a document does not match `T`.
  public func get<T: Decodable & Sendable>(
    _ references: [DocumentReference], as type: T.Type = [String: Value].self
  ) async throws -> [DocumentSnapshot<T>] {
    try await client.get(references, as: type, within: id)
  }

  /// Runs a query.
  /// - Throws: ``HearthClientError`` if the request fails, `DecodingError` if a document does not match `T`.
  public func get<T: Decodable & Sendable>(
    _ query: some Queryable, as type: T.Type = [String: Value].self
  ) async throws -> QuerySnapshot<T> {
    try await query.query.run(as: type, within: id)
  }

  /// Sets a document to `value`; see ``DocumentReference/set(_:merge:if:)``.
  /// - Throws: `EncodingError` if `value` cannot be encoded as a document.
  public func set(_ reference: DocumentReference, _ value: some Encodable, merge: Bool = false) throws {
    try batch.withLock { try $0.set(reference, value, merge: merge) }
  }

  /// Creates a document. The commit fails if the document exists.
  /// - Throws: `EncodingError` if `value` cannot be encoded as a document.
  public func create(_ reference: DocumentReference, _ value: some Encodable) throws {
    try batch.withLock { try $0.create(reference, value) }
  }

  /// Changes some fields of a document. The commit fails if the document does not exist.
  public func update(_ reference: DocumentReference, _ fields: [FieldPath: FieldValue]) {
    batch.withLock { $0.update(reference, fields) }
  }

  /// Changes some fields of a document. The commit fails if the document does not exist.
  public func update(_ reference: DocumentReference, _ fields: [FieldPath: (any FieldValueConvertible)?]) {
    batch.withLock { $0.update(reference, fields) }
  }

  /// Sets a document to these fields; see ``DocumentReference/set(_:merge:if:)``.
  public func set(_ reference: DocumentReference, _ fields: [String: FieldValue], merge: Bool = false) {
    batch.withLock { $0.set(reference, fields, merge: merge) }
  }

  /// Sets a document to these fields; see ``DocumentReference/set(_:merge:if:)``.
  public func set(
    _ reference: DocumentReference, _ fields: [String: (any FieldValueConvertible)?], merge: Bool = false
  ) {
    batch.withLock { $0.set(reference, fields, merge: merge) }
  }

  /// Creates a document with these fields. The commit fails if the document exists.
  public func create(_ reference: DocumentReference, _ fields: [String: FieldValue]) {
    batch.withLock { $0.create(reference, fields) }
  }

  /// Creates a document with these fields. The commit fails if the document exists.
  public func create(_ reference: DocumentReference, _ fields: [String: (any FieldValueConvertible)?]) {
    batch.withLock { $0.create(reference, fields) }
  }

  /// Deletes a document.
  public func delete(_ reference: DocumentReference) { batch.withLock { $0.delete(reference) } }
}

extension Hearth {
  /// Runs `body` in a transaction and commits its writes. If the transaction conflicts with another one, runs
  /// `body` again.
  ///
  ///     let left = try await hearth.runTransaction { transaction in
  ///       let item = try await transaction.get(hearth.document("items/cup"), as: Item.self)
  ///       guard let stock = item.data?.stock, stock > 0 else { throw SoldOut() }
  ///       transaction.update(item.reference, ["stock": .increment(-1)])
  ///       return stock - 1
  ///     }
  ///
  /// `body` can run several times, so it should have no effects except through the transaction. If it throws, the
  /// transaction ends without writing.
  /// - Parameter attempts: how often `body` may run.
  /// - Returns: the result of the run that was committed.
  /// - Throws: the error of `body`, or ``HearthClientError``, with the code ``HearthClientError/Code/aborted`` if
  ///   all attempts conflict.
  public func runTransaction<T: Sendable>(
    attempts: Int = 5, _ body: @Sendable (Transaction) async throws -> T
  ) async throws -> T {
    var previous: String?
    var backoff = Backoff(firstSeconds: 0.05, maxSeconds: 5)
    var attempt = 1
    while true {
      let transaction = Transaction(self, id: try await beginTransaction(after: previous))
      do {
        let result = try await body(transaction)
        _ = try await transaction.batch.withLock { $0 }.commit(within: transaction.id)
        return result
      } catch {
        rollback(transaction)
        guard (error as? HearthClientError)?.code == .aborted, attempt < attempts else { throw error }
      }
      attempt += 1
      previous = transaction.id
      try await backoff.wait()
    }
  }

  private func beginTransaction(after previous: String?) async throws -> String {
    let options = JSON.of(["readWrite": .of(["retryTransaction": previous.map { .string($0) }])])
    let response = try await connection.call(target("", ":beginTransaction"), .of(["options": options]))
    guard let id = response["transaction"]?.text else {
      throw HearthClientError.unreadable("the transaction has no ID")
    }
    return id
  }

  /// Asks the server to release the documents that a transaction holds, without waiting for the response. Errors are
  /// ignored: nothing was written, and the server ends abandoned transactions by itself.
  private func rollback(_ transaction: Transaction) {
    let request = JSON.of(["transaction": .string(transaction.id)])
    // A new task, because a cancelled one could not send the request.
    Task { [self] in _ = try? await connection.call(target("", ":rollback"), request) }
  }
}

/// The delays between attempts: exponential, with random jitter so that clients do not retry at the same time.
struct Backoff: Sendable {
  let firstSeconds: Double
  let maxSeconds: Double
  private var count = 0

  init(firstSeconds: Double, maxSeconds: Double) { (self.firstSeconds, self.maxSeconds) = (firstSeconds, maxSeconds) }

  /// Waits for the next delay.
  /// - Throws: `CancellationError` if the task is cancelled.
  mutating func wait() async throws {
    let limit = min(maxSeconds, firstSeconds * Double(1 << min(count, 20)))
    count += 1
    try await Task.sleep(nanoseconds: UInt64(limit * Double.random(in: 0.5...1) * 1e9))
  }

  /// Restarts with the first delay.
  mutating func reset() { count = 0 }
}
