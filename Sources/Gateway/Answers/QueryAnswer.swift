import DatabaseService

/// The answer to a RunQuery call (firestore-api.md, section 1.3).
final class QueryAnswer: AnswerProducer {
  private let cursor: RunQueryCursor
  private var isTransactionTold = false
  private var isSkipTold = false
  private var isEmpty = true

  init(_ cursor: RunQueryCursor) { self.cursor = cursor }

  func produce(_ emit: (AnswerMessage) throws -> Bool) throws -> Bool {
    if !isTransactionTold {
      isTransactionTold = true
      if let transaction = cursor.transaction { _ = try emit(AnswerMessage(transaction: transaction)) }
    }
    try cursor.slice { key, document in
      try tellSkipped(emit)
      isEmpty = false
      return try emit(AnswerMessage(content: .document(key, document), readTime: cursor.readTime))
    }
    guard cursor.isAtEnd else { return false }
    try tellSkipped(emit)
    // Clients learn the read time from an answer without documents too.
    let metrics = cursor.explainMetrics
    if isEmpty || metrics != nil {
      _ = try emit(AnswerMessage(readTime: cursor.readTime, explainMetrics: metrics))
    }
    return true
  }

  /// Says before the first document how many were passed over.
  private func tellSkipped(_ emit: (AnswerMessage) throws -> Bool) throws {
    guard !isSkipTold else { return }
    isSkipTold = true
    guard cursor.skipped > 0 else { return }
    isEmpty = false
    _ = try emit(AnswerMessage(readTime: cursor.readTime, skippedResults: cursor.skipped))
  }
}

/// The answer to a RunAggregationQuery call: one message.
final class AggregationAnswer: AnswerProducer {
  private let cursor: RunAggregationQueryCursor

  init(_ cursor: RunAggregationQueryCursor) { self.cursor = cursor }

  func produce(_ emit: (AnswerMessage) throws -> Bool) throws -> Bool {
    guard let outcome = try cursor.slice() else { return false }
    // Only planned: there are no numbers.
    let content = outcome.values.isEmpty ? AnswerMessage.Content.nothing : .aggregates(outcome.values)
    _ = try emit(
      AnswerMessage(
        content: content, transaction: outcome.transaction, readTime: outcome.readTime,
        explainMetrics: outcome.explain))
    return true
  }
}

/// The answer to a BatchGetDocuments call.
final class BatchGetAnswer: AnswerProducer {
  private let cursor: BatchGetDocumentsCursor
  private var isTransactionTold = false

  init(_ cursor: BatchGetDocumentsCursor) { self.cursor = cursor }

  func produce(_ emit: (AnswerMessage) throws -> Bool) throws -> Bool {
    if !isTransactionTold {
      isTransactionTold = true
      if let transaction = cursor.transaction { _ = try emit(AnswerMessage(transaction: transaction)) }
    }
    try cursor.slice { key, document in
      let content = document.map { AnswerMessage.Content.found(key, $0) } ?? .missing(key)
      return try emit(AnswerMessage(content: content, readTime: cursor.readTime))
    }
    return cursor.isAtEnd
  }
}
