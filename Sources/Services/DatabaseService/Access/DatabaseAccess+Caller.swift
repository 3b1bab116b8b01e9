import DocumentModel
import DocumentStore

/// The rights of the caller besides those to documents.
extension DatabaseAccess {
  /// The owner of the transactions of the caller.
  var owner: TransactionOwner { access.owner }
  /// Whether no rules apply to the caller.
  var isUnrestricted: Bool { access.isUnrestricted }

  /// Requires that the caller may see how a query is executed. In production only administrators may, because the
  /// numbers of documents and index entries also depend on documents that the rules do not allow.
  /// - Throws: `PERMISSION_DENIED` if rules apply to the caller and the server is in production mode.
  func requireExplainable(_ mode: ExplainMode?) throws(Status) {
    guard mode != nil, case .restricted(let authorizer) = access, !authorizer.explains else { return }
    throw Status(.permissionDenied, "Only an administrator may explain a query.")
  }
}
