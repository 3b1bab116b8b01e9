import Accounts
import IdentityService

extension TestServer {
  /// A user of a test server, with the tokens of the user's session.
  public struct Account: Sendable {
    public let uid: String
    /// Identifies the user in the header `Authorization: Bearer …` of requests.
    public let idToken: String
    /// Continues the session.
    public let refreshToken: String
  }

  /// Creates a user and signs the user in, as the sign-up of an app does, without a request. Without an email
  /// address and a password, the user is anonymous.
  ///
  ///     let ann = try db.signUp(email: "ann@example.com", password: "secret-1")
  ///     let response = try await db.respond(
  ///       to: .init("GET", "/v1/…/documents/users/\(ann.uid)", headers: [("Authorization", "Bearer \(ann.idToken)")]))
  ///
  /// - Throws: ``HearthError/data(_:)`` if the server rejects the account, with the reason that clients see, such as
  ///   `EMAIL_EXISTS`; ``HearthError/storage(_:)`` if the server fails.
  public func signUp(email: String? = nil, password: String? = nil) throws(HearthError) -> Account {
    do {
      let made = try currentState.identity.signUp(.init(email: email, password: password), by: AccountsCaller(.user))
      guard let session = made.session else { throw AccountError(.internalError) }
      return Account(uid: made.user.uid, idToken: session.idToken, refreshToken: session.refreshToken)
    } catch let error as AccountError {
      throw .data(error.message)
    } catch {
      throw .storage("\(error)")
    }
  }
}
