import Foundation
import Synchronization

/// Reads and writes as if nobody else were writing; see ``Hearth/runTransaction(attempts:_:)``.
///
/// Reads come first: what they see, nobody changes before the commit. Writes are sent with the commit.
public final class Transaction: Sendable {
  private let client: Hearth
  fileprivate let id: String
  fileprivate let batch: Mutex<WriteBatch>

  fileprivate init(_ client: Hearth, id: String) {
    (self.client, self.id) = (client, id)
    batch = Mutex(client.batch())
  }

  /// Reads a document.
  /// - Throws: as ``Hearth`` says.
  public func get<T: Decodable & Sendable>(
    _ reference: DocumentReference, as type: T.Type = [String: Value].self
  ) async throws -> DocumentSnapshot<T> {
    guard let snapshot = try await get([reference], as: type).first else {
      throw HearthClientError.unreadable("nothing about \(reference)")
    }
    return snapshot
  }

  /// Reads several documents.
  /// - Throws: as ``Hearth`` says.
  public func get<T: Decodable & Sendable>(
    _ references: [DocumentReference], as type: T.Type = [String: Value].self
  ) async throws -> [DocumentSnapshot<T>] {
    try await client.get(references, as: type, within: id)
  }

  /// Runs a query.
  /// - Throws: as ``Hearth`` says.
  public func get<T: Decodable & Sendable>(
    _ query: some Queryable, as type: T.Type = [String: Value].self
  ) async throws -> QuerySnapshot<T> {
    try await query.query.run(as: type, within: id)
  }

  /// Makes a document what `value` is; see ``DocumentReference/set(_:merge:if:)``.
  /// - Throws: `EncodingError`.
  public func set(_ value: some Encodable, at reference: DocumentReference, merge: Bool = false) throws {
    try batch.withLock { try $0.set(value, at: reference, merge: merge) }
  }

  /// Makes a document that must not be there.
  /// - Throws: `EncodingError`.
  public func create(_ value: some Encodable, at reference: DocumentReference) throws {
    try batch.withLock { try $0.create(value, at: reference) }
  }

  /// Changes some fields of a document that exists.
  public func update(_ fields: [FieldPath: FieldValue], at reference: DocumentReference) {
    batch.withLock { $0.update(fields, at: reference) }
  }

  /// Deletes a document.
  public func delete(_ reference: DocumentReference) { batch.withLock { $0.delete(reference) } }
}

extension Hearth {
  /// Runs `body` in a transaction and commits what it wrote; where another one came between, `body` runs again.
  ///
  ///     let left = try await hearth.runTransaction { transaction in
  ///       let item = try await transaction.get(hearth.document("items/cup"), as: Item.self)
  ///       guard let stock = item.data?.stock, stock > 0 else { throw SoldOut() }
  ///       transaction.update(["stock": .increment(-1)], at: item.reference)
  ///       return stock - 1
  ///     }
  ///
  /// `body` may run several times, so it changes nothing but through the transaction. What it throws ends the
  /// transaction, and nothing is written.
  /// - Parameter attempts: how often `body` may run.
  /// - Returns: what the run returned that was committed.
  /// - Throws: what `body` throws; ``HearthClientError/Code/aborted`` where all attempts met others; else as
  ///   ``Hearth`` says.
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
    let answer = try await connection.call(target("", ":beginTransaction"), .of(["options": options]))
    guard let id = answer["transaction"]?.text else { throw HearthClientError.unreadable("a transaction without an id") }
    return id
  }

  /// Has the server let go of what a transaction holds, without waiting for it. One that is over already, or a server
  /// that is away, is no error: nothing was written, and the server lets go of it by itself.
  private func rollback(_ transaction: Transaction) {
    let request = JSON.of(["transaction": .string(transaction.id)])
    // A task that was cancelled could not tell the server.
    Task { [self] in _ = try? await connection.call(target("", ":rollback"), request) }
  }
}

/// How long to wait before the next attempt: longer each time, and never as long as others wait.
struct Backoff: Sendable {
  let firstSeconds: Double
  let maxSeconds: Double
  private var count = 0

  init(firstSeconds: Double, maxSeconds: Double) { (self.firstSeconds, self.maxSeconds) = (firstSeconds, maxSeconds) }

  /// Waits.
  /// - Throws: `CancellationError`.
  mutating func wait() async throws {
    let limit = min(maxSeconds, firstSeconds * Double(1 << min(count, 20)))
    count += 1
    try await Task.sleep(for: .seconds(limit * Double.random(in: 0.5...1)))
  }

  /// The next wait is a first one again.
  mutating func reset() { count = 0 }
}
