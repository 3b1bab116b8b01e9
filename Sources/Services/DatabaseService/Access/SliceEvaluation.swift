import DocumentModel
import DocumentStore
import KeyValue
import RulesEngine

/// The evaluation of gets by the newest state, for the documents of one slice of a response. They share the lookups and
/// the work of the rules, so a slice cannot hold an event loop: it ends when ``isSpent``.
final class SliceEvaluation {
  private let authorizer: Authorizer
  private let evaluation: RulesEvaluation
  private let workAtStart: Int
  private var documents = 0

  init(_ authorizer: Authorizer, _ snapshot: any KeyValueSnapshot) {
    self.authorizer = authorizer
    evaluation = authorizer.evaluations.take()
    evaluation.begin(snapshot)
    workAtStart = evaluation.evaluator.requestWorkLeft
  }

  deinit { authorizer.evaluations.give(evaluation) }

  /// Whether the rules have done the work of a slice.
  var isSpent: Bool {
    Evaluator.isSliceSpent(work: workAtStart - evaluation.evaluator.requestWorkLeft, documents: documents)
  }

  /// Requires that the rules allow the get of a document with its newest fields.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it.
  func requireGet(
    _ key: DocumentKey, _ fields: UnsafeRawBufferPointer?, in database: DocumentDatabase, isInTransaction: Bool
  ) throws {
    documents += 1
    try evaluation.requireGet(key, fields, by: authorizer, in: database, isInTransaction: isInTransaction)
  }
}
