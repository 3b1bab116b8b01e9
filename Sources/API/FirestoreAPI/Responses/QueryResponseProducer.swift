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

  init(_ cursor: RunQueryCursor, mask: FieldMask?, in database: DatabaseID) {
    self.cursor = cursor
    self.mask = mask
    root = database.documentsRootBytes
  }

  func produce(_ emit: (RunQueryResponse) throws -> Bool) throws -> Bool {
    if !isTransactionSent {
      isTransactionSent = true
      if let transaction = cursor.transaction { _ = try emit(RunQueryResponse(transaction: transaction)) }
    }
    try cursor.slice { key, document in
      try emitSkipped(emit)
      isEmpty = false
      return try EncodedDocument.with(key, document, root: root) { encoded in
        try emit(RunQueryResponse(MaskedDocument(encoded, mask: mask), readTime: cursor.readTime))
      }
    }
    guard cursor.isAtEnd else { return false }
    try emitSkipped(emit)
    // A response without documents contains the read time too.
    let metrics = cursor.explainMetrics
    if isEmpty || metrics != nil {
      _ = try emit(RunQueryResponse(readTime: cursor.readTime, explainMetrics: metrics))
    }
    return true
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
        outcome.values, transaction: outcome.transaction, readTime: outcome.readTime,
        explainMetrics: outcome.explain))
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
