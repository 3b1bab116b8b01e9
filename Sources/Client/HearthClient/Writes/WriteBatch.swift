import Foundation

/// A condition for a write. If it does not hold, nothing of the write's batch is written.
public enum Precondition: Sendable, Hashable {
  /// The document exists, or does not exist.
  case exists(Bool)
  /// The document was last changed at this time, and so not since it was read.
  case updateTime(Timestamp)

  fileprivate var json: JSON {
    switch self {
    case .exists(let flag): .of(["exists": .boolean(flag)])
    case .updateTime(let time): .of(["updateTime": .string(time.description)])
    }
  }
}

/// The result of a write.
public struct WriteResult: Sendable, Hashable {
  /// The time of the write, or `nil` for a delete.
  public let updateTime: Timestamp?
  /// The results of the write's transforms, such as the sum of an increment, in the order of their field paths.
  public let transformResults: [Value]
}

/// Writes that are applied together or not at all.
///
///     var batch = hearth.batch()
///     try batch.set(order, at: hearth.document("orders/7"))
///     batch.update(["stock": .increment(-1)], at: hearth.document("items/cup"))
///     try await batch.commit()
public struct WriteBatch: Sendable {
  private let client: Hearth
  private var writes: [JSON] = []

  init(_ client: Hearth) { self.client = client }

  /// The number of writes.
  public var count: Int { writes.count }

  /// Sets a document to `value`; see ``DocumentReference/set(_:merge:if:)``.
  /// - Throws: `EncodingError` if `value` cannot be encoded as a document.
  public mutating func set(
    _ value: some Encodable, at reference: DocumentReference, merge: Bool = false, if precondition: Precondition? = nil
  ) throws {
    let encoded = try DocumentEncoder().encode(value)
    let fields = try encoded.fields()
    add(
      reference, Value.json(fields), mask: merge ? fields.leaves() : nil,
      transforms: encoded.serverTimestamps.map { ($0, .serverTimestamp) }, precondition)
  }

  /// Sets some fields to their contents in `value`; see ``DocumentReference/set(_:mergeFields:)``.
  /// - Throws: `EncodingError` if `value` cannot be encoded as a document.
  public mutating func set(
    _ value: some Encodable, at reference: DocumentReference, mergeFields paths: [FieldPath]
  ) throws {
    let encoded = try DocumentEncoder().encode(value)
    let fields = try encoded.fields()
    let timestamps = encoded.serverTimestamps.filter { time in
      paths.contains { time.segments.starts(with: $0.segments) { $0.hasBytes(of: $1) } }
    }
    add(
      reference, Value.json(fields), mask: paths.filter { !timestamps.contains($0) },
      transforms: timestamps.map { ($0, .serverTimestamp) }, nil)
  }

  /// Creates a document. The commit fails if the document exists.
  /// - Throws: `EncodingError` if `value` cannot be encoded as a document.
  public mutating func create(_ value: some Encodable, at reference: DocumentReference) throws {
    try set(value, at: reference, if: .exists(false))
  }

  /// Changes some fields of a document. Without `precondition`, the commit fails if the document does not exist.
  public mutating func update(
    _ fields: [FieldPath: FieldValue], at reference: DocumentReference, if precondition: Precondition? = nil
  ) {
    var values: [JSON.Member] = []
    var mask: [FieldPath] = []
    var transforms: [(FieldPath, FieldValue)] = []
    let sorted = fields.map { (path: $0.key, text: $0.key.description, change: $0.value) }
      .sorted { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) }
    for (path, _, change) in sorted {
      switch change {
      case .value(let value):
        values.put(value, at: path.segments[...])
        mask.append(path)
      case .delete: mask.append(path)
      default: transforms.append((path, change))
      }
    }
    add(reference, .object(values), mask: mask, transforms: transforms, precondition ?? .exists(true))
  }

  /// Deletes a document.
  public mutating func delete(_ reference: DocumentReference, if precondition: Precondition? = nil) {
    writes.append(.of(["delete": .string(reference.name), "currentDocument": precondition?.json]))
  }

  /// Applies the writes, and returns one result per write.
  /// - Throws: ``HearthClientError`` if the request fails. Then nothing was written, except that after
  ///   ``HearthClientError/Code/network`` the outcome is unknown.
  @discardableResult
  public func commit() async throws -> [WriteResult] { try await commit(within: nil) }

  func commit(within transaction: String?) async throws -> [WriteResult] {
    let response = try await client.connection.call(
      client.target("", ":commit"),
      .of(["writes": .array(writes), "transaction": transaction.map { .string($0) }]))
    return try (response["writeResults"]?.elements ?? []).map { result in
      WriteResult(
        updateTime: Timestamp(member: result["updateTime"]),
        transformResults: try (result["transformResults"]?.elements ?? []).map { try Value(json: $0, in: client) })
    }
  }

  private mutating func add(
    _ reference: DocumentReference, _ fields: JSON, mask: [FieldPath]?,
    transforms: [(path: FieldPath, value: FieldValue)], _ precondition: Precondition?
  ) {
    let update = JSON.of(["name": .string(reference.name), "fields": fields])
    let transforms = transforms.compactMap { path, value -> JSON? in
      guard case .object(let members)? = value.transform else { return nil }
      return .object([JSON.Member("fieldPath", .string(path.description))] + members)
    }
    writes.append(
      .of([
        "update": update,
        "updateMask": mask.map { .of(["fieldPaths": .array($0.map { .string($0.description) })]) },
        "updateTransforms": transforms.isEmpty ? nil : .array(transforms),
        "currentDocument": precondition?.json,
      ]))
  }
}

extension Hearth {
  /// Returns an empty batch of writes.
  public func batch() -> WriteBatch { WriteBatch(self) }
}
