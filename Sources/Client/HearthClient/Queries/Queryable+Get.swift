import Foundation

/// The results of a query at one moment.
public struct QuerySnapshot<T: Decodable & Sendable>: Sendable {
  /// The documents, in the order of the query.
  public let documents: [DocumentSnapshot<T>]
  /// What happened since the snapshot before; in a first one, every document was added.
  public let changes: [DocumentChange<T>]
  /// The moment.
  public let readTime: Timestamp?
  /// Where a listener can go on; see ``Queryable/snapshots(as:resumingFrom:)``. `nil` in the results of a `get`.
  public let resumeToken: ResumeToken?
  /// Whether `documents` is all that the query finds. Not so where a listener went on from a token: then it is what was
  /// told since.
  public let isComplete: Bool

  /// The documents as `T`, in the order of the query.
  public var data: [T] { documents.compactMap(\.data) }
}

/// What happened to a document in the results of a query.
public struct DocumentChange<T: Decodable & Sendable>: Sendable {
  /// What can happen.
  public enum Kind: Sendable, Hashable {
    /// The document is new to the results.
    case added
    /// The document changed and is still one of the results.
    case modified
    /// The document is gone, or no longer one of the results.
    case removed
  }

  /// What happened.
  public let kind: Kind
  /// The document as it is; where it was removed, as it was last.
  public let document: DocumentSnapshot<T>
}

extension Queryable {
  /// Runs the query.
  ///
  ///     let users = try await hearth.collection("users").order(by: "name").get(as: Person.self).data
  /// - Throws: as ``Hearth`` says.
  public func get<T: Decodable & Sendable>(as type: T.Type = [String: Value].self) async throws -> QuerySnapshot<T> {
    try await query.run(as: type, within: nil)
  }

  // MARK: - Aggregations

  /// How many documents there are.
  /// - Throws: as ``Hearth`` says.
  public func count() async throws -> Int {
    guard case .integer(let count)? = try await aggregate([.count]).first else {
      throw HearthClientError.unreadable("a count that is no number")
    }
    return count
  }

  /// The sum of a field's numbers: an integer while all are and it fits, else a double.
  /// - Throws: as ``Hearth`` says.
  public func sum(of path: FieldPath) async throws -> Value { try await aggregate([.sum(path)])[0] }

  /// The average of a field's numbers; `nil` where there are none.
  /// - Throws: as ``Hearth`` says.
  public func average(of path: FieldPath) async throws -> Double? {
    if case .double(let average) = try await aggregate([.average(path)])[0] { average } else { nil }
  }

  /// Several aggregations of the same documents, up to five, in their order. With a sum or an average among them, only
  /// documents that have every aggregated field are counted.
  /// - Throws: as ``Hearth`` says.
  public func aggregate(_ aggregations: [Aggregation]) async throws -> [Value] {
    let query = query
    let asked = aggregations.enumerated().map { index, aggregation in
      JSON.object(aggregation.json.members + [JSON.Member("alias", .string("a\(index)"))])
    }
    let answer = try await query.client.connection.callForElements(
      query.client.target(query.parent, ":runAggregationQuery"),
      .of([
        "structuredAggregationQuery": .of(["structuredQuery": query.json, "aggregations": .array(asked)])
      ]))
    let results = try Value.fields(answer.last?["result"]?["aggregateFields"], in: query.client)
    return try aggregations.indices.map { index in
      guard let value = results["a\(index)"] else { throw HearthClientError.unreadable("an aggregation is missing") }
      return value
    }
  }
}

/// A number made of many documents.
public enum Aggregation: Sendable, Hashable {
  /// How many there are.
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
    let answers = try await client.connection.callForElements(
      client.target(parent, ":runQuery"),
      .of(["structuredQuery": json, "transaction": transaction.map { .string($0) }]))
    let readTime = Timestamp(member: answers.last?["readTime"])
    let documents = try answers.compactMap { answer in
      try answer["document"].map {
        try DocumentSnapshot<T>(DocumentPayload(json: $0, in: client), readTime: Timestamp(member: answer["readTime"]))
      }
    }
    let ordered = isFromEnd ? documents.reversed() : documents
    return QuerySnapshot(
      documents: ordered, changes: ordered.map { DocumentChange(kind: .added, document: $0) }, readTime: readTime,
      resumeToken: nil, isComplete: true)
  }
}
