package import Accounts
package import Callers
package import DatabaseService
import RulesEngine
import Transport

/// The verifier of the console of a production server. It accepts the tokens of operators' sessions, and those of users,
/// with which an operator views data as a user. It accepts no service keys, whose requests have no role.
package struct OperatorTokens: TokenVerifier {
  private let sessions: OperatorSessions
  private let users: any TokenVerifier

  /// Creates a verifier. `users` verifies the tokens of users.
  package init(_ sessions: OperatorSessions, users: any TokenVerifier) {
    self.sessions = sessions
    self.users = users
  }

  /// Returns the caller that a token identifies. Cost for an operator: a hash of a short text and a lock.
  ///
  /// - Throws: `UNAUTHENTICATED` if the session has ended, or the token is not valid.
  package func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
    guard OperatorSessions.isToken(token) else {
      let caller = try users.caller(bearing: token)
      guard !caller.isAdmin else { throw Status(.unauthenticated, "The console accepts operators only: sign in.") }
      return caller
    }
    guard let session = sessions.session(token) else { throw .sessionEnded }
    return .administrator(revocationCheck: OperatorRevocationCheck(session, sessions))
  }
}

/// Checks whether an operator's session has ended. The streams that the session opened check it.
final class OperatorRevocationCheck: TokenRevocationCheck {
  let session: OperatorSession
  private let sessions: OperatorSessions

  init(_ session: OperatorSession, _ sessions: OperatorSessions) {
    self.session = session
    self.sessions = sessions
  }

  var revocationReason: String? { sessions.isOver(session) ? "the session of the operator has ended" : nil }
}

extension Caller {
  /// The session of the calling operator, or `nil` for other callers.
  package var operatorSession: OperatorSession? {
    guard case .administrator(let check?) = self else { return nil }
    return (check as? OperatorRevocationCheck)?.session
  }
}

extension Status {
  /// The status of a request whose session has ended.
  package static let sessionEnded = Status(.unauthenticated, "The session has ended. Sign in again.")
}
