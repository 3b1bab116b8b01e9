import DocumentModel
import DocumentStore
import PipelineEngine
import RulesEngine

/// Authorizes the documents that a pipeline reads by name, one by one, as gets.
///
/// A document is checked in the state that is shown and in the newest one, each by the newest state of what the rules
/// look up.
final class PipelineGets {
  private let database: DocumentDatabase
  private let authorizer: Authorizer
  /// The sources that read documents by name.
  private let sources: Set<Int>

  /// Returns `nil` if the pipeline reads no documents by name.
  init?(_ database: DocumentDatabase, _ authorizer: Authorizer, _ plan: PipelinePlan) {
    self.database = database
    self.authorizer = authorizer
    sources = Set(
      plan.sources.indices.filter { index in
        if case .documents = plan.sources[index] { true } else { false }
      })
    guard !sources.isEmpty else { return nil }
  }

  /// Checks a document, which may not exist.
  /// - Throws: `PERMISSION_DENIED` if the rules deny it.
  func check(
    _ source: Int, _ key: DocumentKey, _ shown: StoredDocument?, _ reader: inout SnapshotReader,
    _ slice: inout SliceEvaluation?
  ) throws {
    guard sources.contains(source) else { return }
    let evaluation = slice ?? SliceEvaluation(authorizer, reader.snapshot)
    slice = evaluation
    let newest = try reader.document(key)
    try evaluation.requireGet(key, newest?.fields, in: database, isInTransaction: false)
    if newest?.updateVersion != shown?.updateVersion {
      try evaluation.requireGet(key, shown?.fields, in: database, isInTransaction: false)
    }
  }
}

extension PipelinePlan {
  /// The queries of the sources that rules must allow.
  var queries: [Query] {
    sources.compactMap { source in
      if case .query(let query) = source { query } else { nil }
    }
  }

  /// Requires that rules can decide about the pipeline.
  /// - Throws: `PERMISSION_DENIED` if they cannot.
  func requireDecidable(inPast isInPast: Bool) throws(Status) {
    if let reason = undecidable(inPast: isInPast) { throw Status(.permissionDenied, reason) }
  }
}
