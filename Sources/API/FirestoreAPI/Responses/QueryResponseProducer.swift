import DatabaseService
import DocumentModel
import WireFormat

/// The response to a RunQuery request (firestore-api.md, section 1.3).
final class QueryResponseProducer: ResponseProducer {
  private let cursor: RunQueryCursor
  private let root: [UInt8]
  private let mask: FieldMask?
  private var isTransactionSent = false
  private var areSkipsSent = false
  private var isEmpty = true
  /// The latest result of an analyzed query. The response sends the metrics together with the last result, and only the
  /// end of the results shows which one is the last.
  private var held: HeldResult?

  /// A copy of a result.
  private struct HeldResult {
    let key: DocumentKey
    let createVersion: Int64
    let updateVersion: Int64
    let fields: [UInt8]

    init(_ key: DocumentKey, _ document: StoredDocument) {
      self.key = key
      createVersion = document.createVersion
      updateVersion = document.updateVersion
      fields = Array(document.fields)
    }
  }

  /// Creates a producer of the documents of a cursor. `root` is the name of their documents root.
  init(_ cursor: RunQueryCursor, mask: FieldMask?, root: [UInt8]) {
    self.cursor = cursor
    self.mask = mask
    self.root = root
  }

  func produce(_ emit: (RunQueryResponse) throws -> Bool) throws -> Bool {
    if !isTransactionSent {
      isTransactionSent = true
      if let transaction = cursor.transaction { _ = try emit(RunQueryResponse(transaction: transaction)) }
    }
    try cursor.slice { key, document in
      try emitSkipped(emit)
      isEmpty = false
      guard cursor.explain != nil else { return try self.emit(key, document, to: emit) }
      let before = held
      held = HeldResult(key, document)
      return try before.map { try self.emit($0, to: emit) } ?? true
    }
    guard cursor.isAtEnd else { return false }
    try emitSkipped(emit)
    let metrics = cursor.explainMetrics
    if let last = held {
      held = nil
      _ = try self.emit(last, metrics, to: emit)
    } else if isEmpty || metrics != nil {
      // A response without documents contains the read time too. A plan reads nothing, and clients take a read time
      // for an empty result.
      _ = try emit(
        RunQueryResponse(readTime: cursor.explain == .plan ? nil : cursor.readTime, explainMetrics: metrics))
    }
    return true
  }

  private func emit(
    _ result: HeldResult, _ metrics: ExplainMetrics? = nil, to emit: (RunQueryResponse) throws -> Bool
  ) throws -> Bool {
    try result.fields.withUnsafeBytes { fields in
      let document = StoredDocument(
        createVersion: result.createVersion, updateVersion: result.updateVersion, fields: fields)
      return try self.emit(result.key, document, metrics, to: emit)
    }
  }

  private func emit(
    _ key: DocumentKey, _ document: StoredDocument, _ metrics: ExplainMetrics? = nil,
    to emit: (RunQueryResponse) throws -> Bool
  ) throws -> Bool {
    try EncodedDocument.with(key, document, root: root) { encoded in
      let shown = MaskedDocument(encoded, mask: mask)
      guard let metrics else { return try emit(RunQueryResponse(shown, at: cursor.readTime)) }
      return try emit(RunQueryResponse(shown, readTime: cursor.readTime, explainMetrics: metrics))
    }
  }

  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { cursor.wait(wake) }

  /// Emits the number of skipped results before the first document.
  private func emitSkipped(_ emit: (RunQueryResponse) throws -> Bool) throws {
    guard !areSkipsSent else { return }
    areSkipsSent = true
    guard cursor.skipped > 0 else { return }
    isEmpty = false
    _ = try emit(RunQueryResponse(readTime: cursor.readTime, skippedResults: cursor.skipped))
  }
}

/// The response to a RunAggregationQuery request: one message.
final class AggregationResponseProducer: ResponseProducer {
  private let cursor: RunAggregationQueryCursor

  init(_ cursor: RunAggregationQueryCursor) { self.cursor = cursor }

  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { cursor.wait(wake) }

  func produce(_ emit: (RunAggregationQueryResponse) throws -> Bool) throws -> Bool {
    guard let outcome = try cursor.slice() else { return false }
    _ = try emit(
      RunAggregationQueryResponse(
        outcome.values, transaction: outcome.transaction,
        readTime: outcome.values.isEmpty ? nil : outcome.readTime, explainMetrics: outcome.explain))
    return true
  }
}

/// The response to a BatchGetDocuments request.
final class BatchGetResponseProducer: ResponseProducer {
  private let cursor: BatchGetDocumentsCursor
  private let root: [UInt8]
  private let mask: FieldMask?
  private var isTransactionSent = false

  init(_ cursor: BatchGetDocumentsCursor, mask: FieldMask?, in database: DatabaseID) {
    self.cursor = cursor
    self.mask = mask
    root = database.documentsRootBytes
  }

  func produce(_ emit: (BatchGetDocumentsResponse) throws -> Bool) throws -> Bool {
    if !isTransactionSent {
      isTransactionSent = true
      if let transaction = cursor.transaction { _ = try emit(BatchGetDocumentsResponse(transaction: transaction)) }
    }
    try cursor.slice { key, document in
      guard let document else {
        return try emit(BatchGetDocumentsResponse(.missing(root: root, key), readTime: cursor.readTime))
      }
      return try EncodedDocument.with(key, document, root: root) { encoded in
        try emit(BatchGetDocumentsResponse(.found(MaskedDocument(encoded, mask: mask)), readTime: cursor.readTime))
      }
    }
    return cursor.isAtEnd
  }
}
