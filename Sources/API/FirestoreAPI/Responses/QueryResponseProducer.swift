import DatabaseService

/// The response to a RunQuery request (firestore-api.md, section 1.3).
final class QueryResponseProducer: ResponseProducer {
  private let cursor: RunQueryCursor
  private var isTransactionSent = false
  private var areSkipsSent = false
  private var isEmpty = true

  init(_ cursor: RunQueryCursor) { self.cursor = cursor }

  func produce(_ emit: (ResponseMessage) throws -> Bool) throws -> Bool {
    if !isTransactionSent {
      isTransactionSent = true
      if let transaction = cursor.transaction { _ = try emit(ResponseMessage(transaction: transaction)) }
    }
    try cursor.slice { key, document in
      try emitSkipped(emit)
      isEmpty = false
      return try emit(ResponseMessage(content: .document(key, document), readTime: cursor.readTime))
    }
    guard cursor.isAtEnd else { return false }
    try emitSkipped(emit)
    // A response without documents contains the read time too.
    let metrics = cursor.explainMetrics
    if isEmpty || metrics != nil {
      _ = try emit(ResponseMessage(readTime: cursor.readTime, explainMetrics: metrics))
    }
    return true
  }

  /// Emits the number of skipped results before the first document.
  private func emitSkipped(_ emit: (ResponseMessage) throws -> Bool) throws {
    guard !areSkipsSent else { return }
    areSkipsSent = true
    guard cursor.skipped > 0 else { return }
    isEmpty = false
    _ = try emit(ResponseMessage(readTime: cursor.readTime, skippedResults: cursor.skipped))
  }
}

/// The response to a RunAggregationQuery request: one message.
final class AggregationResponseProducer: ResponseProducer {
  private let cursor: RunAggregationQueryCursor

  init(_ cursor: RunAggregationQueryCursor) { self.cursor = cursor }

  func produce(_ emit: (ResponseMessage) throws -> Bool) throws -> Bool {
    guard let outcome = try cursor.slice() else { return false }
    // If the query was only planned, there are no values.
    let content = outcome.values.isEmpty ? ResponseMessage.Content.nothing : .aggregates(outcome.values)
    _ = try emit(
      ResponseMessage(
        content: content, transaction: outcome.transaction, readTime: outcome.readTime,
        explainMetrics: outcome.explain))
    return true
  }
}

/// The response to a BatchGetDocuments request.
final class BatchGetResponseProducer: ResponseProducer {
  private let cursor: BatchGetDocumentsCursor
  private var isTransactionSent = false

  init(_ cursor: BatchGetDocumentsCursor) { self.cursor = cursor }

  func produce(_ emit: (ResponseMessage) throws -> Bool) throws -> Bool {
    if !isTransactionSent {
      isTransactionSent = true
      if let transaction = cursor.transaction { _ = try emit(ResponseMessage(transaction: transaction)) }
    }
    try cursor.slice { key, document in
      let content = document.map { ResponseMessage.Content.found(key, $0) } ?? .missing(key)
      return try emit(ResponseMessage(content: content, readTime: cursor.readTime))
    }
    return cursor.isAtEnd
  }
}
