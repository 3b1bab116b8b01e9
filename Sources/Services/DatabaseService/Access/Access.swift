import DocumentModel
import DocumentStore
import RulesEngine

/// The rules that apply to a caller. No case is a default: each decision has to handle both.
enum Access: Sendable {
  /// No rules apply: the caller is an administrator, or counts as one because the database has no rules.
  case unrestricted(Administrator)
  /// Rules decide about each request.
  case restricted(Authorizer)

  /// Whether no rules apply.
  var isUnrestricted: Bool { if case .unrestricted = self { true } else { false } }

  /// The owner of the transactions that the caller begins. Callers without rules share their transactions.
  var owner: TransactionOwner {
    switch self {
    case .unrestricted: .administrator
    case .restricted(let authorizer): authorizer.auth.map { .user($0.uid ?? "") } ?? .unauthenticated
    }
  }
}
