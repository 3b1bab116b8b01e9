import Foundation

/// The results of a query, now and whenever they change.
///
/// A reader that is slower than the changes gets the newest results, with the ``QuerySnapshot/changes`` since its
/// last snapshot. If the connection breaks, the sequence connects again, and the server sends only what changed
/// meanwhile. Iteration ends with an error if the server rejects the query, for example with
/// ``HearthClientError/Code/permissionDenied``. Cancelling the task or leaving the loop closes the connection. A
/// connection keeps the identity of the user who is signed in when it is opened.
public struct QuerySnapshots<T: Decodable & Sendable>: AsyncSequence, Sendable {
  /// The results at one time.
  public typealias Element = QuerySnapshot<T>

  let query: Query
  let listener: Listener

  /// Returns an iterator, which connects to the server.
  public func makeAsyncIterator() -> Iterator { Iterator(query, listener) }

  /// An iterator over the snapshots.
  public struct Iterator: AsyncIteratorProtocol {
    private var states: AsyncThrowingStream<ListenedResults, any Error>.Iterator
    private let orders: [Query.Order]
    private var previous: [DocumentReference: DocumentSnapshot<T>] = [:]
    private var departed: Set<DocumentReference> = []

    fileprivate init(_ query: Query, _ listener: Listener) {
      states = listener.states().makeAsyncIterator()
      orders = query.completeOrders
    }

    /// Returns the next snapshot, as soon as the results have changed, or `nil` if the task was cancelled.
    /// - Throws: ``HearthClientError`` if the server rejects the query, `DecodingError` if a document does not
    ///   match `T`.
    public mutating func next() async throws -> QuerySnapshot<T>? {
      guard let results = try await states.next() else { return nil }
      var current: [DocumentReference: DocumentSnapshot<T>] = [:]
      var changed: [DocumentReference: DocumentChange<T>.Kind] = [:]
      for (reference, document) in results.documents {
        let known = previous[reference]
        if let known, known.updateTime == document.updateTime, known.createTime == document.createTime {
          current[reference] = known
        } else {
          current[reference] = try DocumentSnapshot(document, readTime: results.readTime)
          changed[reference] = known == nil ? .added : .modified
        }
      }
      let documents = sorted(Array(current.values))
      var changes = sorted(previous.values.filter { current[$0.reference] == nil })
        .map { DocumentChange(kind: .removed, document: $0) }
      changes += results.departed.subtracting(departed)
        .map { DocumentChange(kind: .removed, document: DocumentSnapshot(missing: $0, readTime: results.readTime)) }
      changes += documents.compactMap { document in
        changed[document.reference].map { DocumentChange(kind: $0, document: document) }
      }
      (previous, departed) = (current, results.departed)
      return QuerySnapshot(
        documents: documents, changes: changes, readTime: results.readTime, resumeToken: results.token,
        isComplete: results.isComplete)
    }

    private func sorted(_ documents: [DocumentSnapshot<T>]) -> [DocumentSnapshot<T>] {
      let keyed = documents.map { document in
        (document, orders.map { document.fields.ordered(by: $0.path, of: document.reference) })
      }
      return keyed.sorted { a, b in
        for (index, order) in orders.enumerated() {
          let difference = ValueOrder.compare(a.1[index], b.1[index])
          if difference != 0 { return (difference < 0) != order.isDescending }
        }
        return false
      }.map(\.0)
    }
  }
}

extension Queryable {
  /// Returns the results now and whenever they change, as an asynchronous sequence.
  ///
  ///     for try await users in hearth.collection("users").order(by: "name").snapshots(as: Person.self) {
  ///       show(users.data)
  ///     }
  /// - Parameter token: the ``QuerySnapshot/resumeToken`` of an earlier listener to the same query, for callers
  ///   that store the results themselves. The first snapshot then contains the changes since, unless
  ///   ``QuerySnapshot/isComplete`` is `true`.
  public func snapshots<T: Decodable & Sendable>(
    as type: T.Type = [String: Value].self, resumingFrom token: ResumeToken? = nil
  ) -> QuerySnapshots<T> {
    let query = query
    let body = query.json
    let target = query.client.target(query.parent, ":listen")
    let listener = Listener(
      client: query.client,
      request: { token in
        HearthRequest(
          "POST", target, headers: ["Content-Type": "application/json"],
          body: JSON.of(["structuredQuery": body, "resumeToken": token.map { .string($0.text) }]).data)
      }, token: token)
    return QuerySnapshots(query: query, listener: listener)
  }
}

/// A document, now and whenever it changes; see ``QuerySnapshots``.
public struct DocumentSnapshots<T: Decodable & Sendable>: AsyncSequence, Sendable {
  /// The document at one time.
  public typealias Element = DocumentSnapshot<T>

  let reference: DocumentReference
  let results: QuerySnapshots<T>

  /// Returns an iterator, which connects to the server.
  public func makeAsyncIterator() -> Iterator {
    Iterator(reference: reference, results: results.makeAsyncIterator())
  }

  /// An iterator over the snapshots.
  public struct Iterator: AsyncIteratorProtocol {
    fileprivate let reference: DocumentReference
    fileprivate var results: QuerySnapshots<T>.Iterator

    /// Returns the next snapshot, as soon as the document has changed, or `nil` if the task was cancelled.
    /// - Throws: ``HearthClientError`` if the server rejects the request, `DecodingError` if the document does not
    ///   match `T`.
    public mutating func next() async throws -> DocumentSnapshot<T>? {
      guard let snapshot = try await results.next() else { return nil }
      return snapshot.documents.first ?? DocumentSnapshot(missing: reference, readTime: snapshot.readTime)
    }
  }
}

extension DocumentReference {
  /// Returns the document now and whenever it is created, changed or deleted, as an asynchronous sequence.
  ///
  ///     for try await ann in hearth.document("users/ann").snapshots(as: Person.self) {
  ///       show(ann.data)
  ///     }
  public func snapshots<T: Decodable & Sendable>(as type: T.Type = [String: Value].self) -> DocumentSnapshots<T> {
    let target = client.target(path, ":listen")
    let listener = Listener(
      client: client,
      request: { token in
        HearthRequest("GET", target + (token.map { "?resumeToken=\($0.text.percentEncoded)" } ?? ""))
      }, token: nil)
    return DocumentSnapshots(reference: self, results: QuerySnapshots(query: parent.query, listener: listener))
  }
}
