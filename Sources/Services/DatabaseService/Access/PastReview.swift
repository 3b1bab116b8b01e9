import DocumentModel
import DocumentStore
import Matching
import WireFormat

/// Reviews the results of a query that shows a past state. The proof does not depend on documents, so it does not
/// show whether a result was made private since. The newest state of a changed result must match the query, which the
/// proof for the newest state covers, or the rules must allow to get it.
final class PastReview {
  private let database: DocumentDatabase
  private let authorizer: Authorizer
  private var range: QueryRange?
  private let transaction: TransactionID?
  private var place: [UInt8] = []

  init(_ database: DocumentDatabase, _ authorizer: Authorizer, _ range: QueryRange?, transaction: TransactionID?) {
    self.database = database
    self.authorizer = authorizer
    self.range = range
    self.transaction = transaction
  }

  /// Checks a result. Cost: two lookups, and an evaluation of the rules if the document no longer matches.
  /// - Throws: `PERMISSION_DENIED` if the rules deny the newest state. In a read-write transaction `ABORTED`, as the
  ///   commit would, because the transaction succeeds when the client repeats it.
  func check(
    _ key: DocumentKey, _ shown: StoredDocument, _ reader: inout SnapshotReader, _ slice: inout SliceEvaluation?
  ) throws {
    let newest = try reader.document(key)
    if let newest {
      if newest.updateVersion == shown.updateVersion { return }
      if try range?.place(of: EncodedMap(documentFields: newest.fields), at: key.path, into: &place) == true { return }
    }
    let evaluation = slice ?? SliceEvaluation(authorizer, reader.snapshot)
    slice = evaluation
    do {
      try evaluation.requireGet(key, newest?.fields, in: database, isInTransaction: transaction != nil)
    } catch let denial as Status where denial.code == .permissionDenied {
      if transaction != nil { throw CommitError.aborted(conflicting: nil) }
      guard authorizer.explains else { throw denial }
      throw Status(
        .permissionDenied, denial.message + "\nA result has changed since, and its newest state denies this request.")
    }
  }
}
