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
///     try batch.set(hearth.document("orders/7"), order)
///     batch.update(hearth.document("items/cup"), ["stock": .increment(-count)])
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
    _ reference: DocumentReference, _ value: some Encodable, merge: Bool = false, if precondition: Precondition? = nil
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
    _ reference: DocumentReference, _ value: some Encodable, mergeFields paths: [FieldPath]
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
  public mutating func create(_ reference: DocumentReference, _ value: some Encodable) throws {
    try set(reference, value, if: .exists(false))
  }

  /// Sets a document to these fields; see ``DocumentReference/set(_:merge:if:)``.
  public mutating func set(
    _ reference: DocumentReference, _ fields: [String: FieldValue], merge: Bool = false,
    if precondition: Precondition? = nil
  ) {
    let changes = Dictionary(fields.map { (FieldPath($0.key), $0.value) }) { _, later in later }
    add(reference, FieldChanges(changes, mergesMaps: merge), isPartial: merge, precondition)
  }

  /// Sets a document to these fields; see ``DocumentReference/set(_:merge:if:)``.
  public mutating func set(
    _ reference: DocumentReference, _ fields: [String: (any FieldValueConvertible)?], merge: Bool = false,
    if precondition: Precondition? = nil
  ) {
    set(reference, fields.changes, merge: merge, if: precondition)
  }

  /// Creates a document with these fields. The commit fails if the document exists.
  public mutating func create(_ reference: DocumentReference, _ fields: [String: FieldValue]) {
    set(reference, fields, if: .exists(false))
  }

  /// Creates a document with these fields. The commit fails if the document exists.
  public mutating func create(_ reference: DocumentReference, _ fields: [String: (any FieldValueConvertible)?]) {
    set(reference, fields, if: .exists(false))
  }

  /// Changes some fields of a document. Without `precondition`, the commit fails if the document does not exist.
  public mutating func update(
    _ reference: DocumentReference, _ fields: [FieldPath: FieldValue], if precondition: Precondition? = nil
  ) {
    add(reference, FieldChanges(fields, mergesMaps: false), isPartial: true, precondition ?? .exists(true))
  }

  /// Changes some fields of a document. Without `precondition`, the commit fails if the document does not exist.
  public mutating func update(
    _ reference: DocumentReference, _ fields: [FieldPath: (any FieldValueConvertible)?],
    if precondition: Precondition? = nil
  ) {
    update(reference, fields.changes, if: precondition)
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
    _ reference: DocumentReference, _ changes: FieldChanges, isPartial: Bool, _ precondition: Precondition?
  ) {
    add(
      reference, .object(changes.values), mask: isPartial ? changes.mask : nil, transforms: changes.transforms,
      precondition)
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

extension Dictionary where Value == (any FieldValueConvertible)? {
  /// The changes of the fields. `nil` sets a field to null.
  fileprivate var changes: [Key: FieldValue] { mapValues { $0?.fieldValue ?? FieldValue(.set(.null)) } }
}

/// The parts of a write that changes fields.
private struct FieldChanges {
  /// The fields in the format of the API.
  var values: [JSON.Member] = []
  /// The fields to replace or, if they are not in `values`, to remove.
  var mask: [FieldPath] = []
  var transforms: [(path: FieldPath, value: FieldValue)] = []

  /// - Parameter mergesMaps: whether the mask contains the leaves of a map rather than the map.
  init(_ fields: [FieldPath: FieldValue], mergesMaps: Bool) {
    let sorted = fields.map { (path: $0.key, text: $0.key.description, value: $0.value) }
      .sorted { $0.text.utf8.lexicographicallyPrecedes($1.text.utf8) }
    for (path, _, field) in sorted {
      switch field.change {
      case .set(let value):
        values.put(value, at: path.segments[...])
        if mergesMaps, case .map(let members) = value, !members.isEmpty {
          mask += members.leaves(below: path.segments)
        } else {
          mask.append(path)
        }
      case .delete: mask.append(path)
      default: transforms.append((path, field))
      }
    }
  }
}

extension Hearth {
  /// Returns an empty batch of writes.
  public func batch() -> WriteBatch { WriteBatch(self) }
}
