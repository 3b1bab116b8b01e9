import Foundation

/// The results of a query at one time.
public struct QuerySnapshot<T: Decodable & Sendable>: Sendable {
  /// The documents, in the order of the query.
  public let documents: [DocumentSnapshot<T>]
  /// The changes since the previous snapshot. In a first snapshot, every document is added.
  public let changes: [DocumentChange<T>]
  /// The time of the results.
  public let readTime: Timestamp?
  /// A token with which a listener can resume; see ``Queryable/snapshots(as:resumingFrom:)``. `nil` in the results
  /// of a `get`.
  public let resumeToken: ResumeToken?
  /// Whether ``documents`` contains all results. If a listener resumed from a token, it contains only those that
  /// changed since.
  public let isComplete: Bool

  /// The documents as `T`, in the order of the query.
  public var data: [T] { documents.compactMap(\.data) }
}

/// A change of one document in the results of a query.
public struct DocumentChange<T: Decodable & Sendable>: Sendable {
  /// The kind of a change.
  public enum Kind: Sendable, Hashable {
    /// The document is new in the results.
    case added
    /// The document changed and is still in the results.
    case modified
    /// The document was deleted or is no longer in the results.
    case removed
  }

  public let kind: Kind
  /// The changed document. For a removed document, its last known contents, which do not exist if the listener
  /// resumed from a token.
  public let document: DocumentSnapshot<T>
}

extension Queryable {
  /// Runs the query.
  ///
  ///     let users = try await hearth.collection("users").order(by: "name").get(as: Person.self).data
  /// - Throws: ``HearthClientError`` if the request fails, `DecodingError` if a document does not match `T`.
  public func get<T: Decodable & Sendable>(as type: T.Type = [String: Value].self) async throws -> QuerySnapshot<T> {
    try await query.run(as: type, within: nil)
  }

  // MARK: - Aggregations

  /// Returns the number of documents.
  /// - Throws: ``HearthClientError`` if the request fails.
  public func count() async throws -> Int {
    guard case .integer(let count)? = try await aggregate([.count]).first else {
      throw HearthClientError.unreadable("the count is not a number")
    }
    return count
  }

  /// Returns the sum of a field's numbers: an integer if all are integers and the sum fits, otherwise a double.
  /// - Throws: ``HearthClientError`` if the request fails.
  public func sum(of path: FieldPath) async throws -> Value { try await aggregate([.sum(path)])[0] }

  /// Returns the average of a field's numbers, or `nil` if there are no numbers.
  /// - Throws: ``HearthClientError`` if the request fails.
  public func average(of path: FieldPath) async throws -> Double? {
    if case .double(let average) = try await aggregate([.average(path)])[0] { average } else { nil }
  }

  /// Returns up to five aggregations of the same documents, in order. If one is a sum or an average, only documents
  /// that have every aggregated field are counted.
  /// - Throws: ``HearthClientError`` if the request fails.
  public func aggregate(_ aggregations: [Aggregation]) async throws -> [Value] {
    let query = query
    let encoded = aggregations.enumerated().map { index, aggregation in
      JSON.object(aggregation.json.members + [JSON.Member("alias", .string("a\(index)"))])
    }
    let response = try await query.client.connection.callForElements(
      query.client.target(query.parent, ":runAggregationQuery"),
      .of([
        "structuredAggregationQuery": .of(["structuredQuery": query.json, "aggregations": .array(encoded)])
      ]))
    let results = try Value.fields(response.last?["result"]?["aggregateFields"], in: query.client)
    return try aggregations.indices.map { index in
      guard let value = results["a\(index)"] else {
        throw HearthClientError.unreadable("an aggregation result is missing")
      }
      return value
    }
  }
}

/// A number that is computed from many documents.
public enum Aggregation: Sendable, Hashable {
  /// The number of documents.
  case count
  /// The sum of a field's numbers.
  case sum(FieldPath)
  /// The average of a field's numbers.
  case average(FieldPath)

  fileprivate var json: JSON {
    switch self {
    case .count: .of(["count": .of([:])])
    case .sum(let path): .of(["sum": .of(["field": path.reference])])
    case .average(let path): .of(["avg": .of(["field": path.reference])])
    }
  }
}

extension Query {
  func run<T: Decodable & Sendable>(as type: T.Type, within transaction: String?) async throws -> QuerySnapshot<T> {
    let responses = try await client.connection.callForElements(
      client.target(parent, ":runQuery"),
      .of(["structuredQuery": json, "transaction": transaction.map { .string($0) }]))
    let readTime = Timestamp(member: responses.last?["readTime"])
    let documents = try responses.compactMap { response in
      try response["document"].map {
        try DocumentSnapshot<T>(
          DocumentPayload(json: $0, in: client), readTime: Timestamp(member: response["readTime"]))
      }
    }
    let ordered = isFromEnd ? documents.reversed() : documents
    return QuerySnapshot(
      documents: ordered, changes: ordered.map { DocumentChange(kind: .added, document: $0) }, readTime: readTime,
      resumeToken: nil, isComplete: true)
  }
}
