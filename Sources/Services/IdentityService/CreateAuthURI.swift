import Accounts

extension AccountsService {
  /// Asks for the sign-in methods of an email address.
  package struct CreateAuthURI: Sendable {
    package var identifier: String?
    /// The URL of the app. It must be present but is not used.
    package var continueURL: String?
    /// The provider whose sign-in page to open, which this server does not support.
    package var providerID: String?

    package init(identifier: String?, continueURL: String?, providerID: String? = nil) {
      self.identifier = identifier
      self.continueURL = continueURL
      self.providerID = providerID
    }
  }

  /// The sign-in methods of an email address.
  package struct AuthURI: Sendable {
    package var sessionID: String
    /// Whether an account has the address; `nil` if the settings hide addresses.
    package var isRegistered: Bool?
    /// The providers and methods of the account, or `nil` if no account may be shown.
    package var account: (providers: [String], methods: [String])?
  }

  /// Returns the sign-in methods of an address. If email addresses are hidden, the response contains none.
  ///
  /// - Throws: `AccountError`; `StorageError` if the server fails.
  package func createAuthURI(_ request: CreateAuthURI, by caller: AccountsCaller) throws -> AuthURI {
    if request.providerID != nil {
      throw AccountError(.notImplemented, "The app itself must open the sign-in pages of other providers.")
    }
    guard let identifier = request.identifier else { throw AccountError(.missingIdentifier) }
    guard request.continueURL != nil else { throw AccountError(.missingContinueURI) }
    let email: String
    do { email = try UserFields.email(identifier) } catch { throw AccountError(.invalidIdentifier) }
    var response = AuthURI(sessionID: RandomBytes.text(16))
    guard !currentSettings.hidesEmails else { return response }
    let user = try accounts.users.user(email: email)
    response.isRegistered = user != nil
    response.account = user.map { user in
      var methods = user.passwordHash == nil ? [] : ["password"]
      if user.hasEmailLinkSignIn { methods.append("emailLink") }
      return (user.providerIDs.filter { $0 != "phone" }, methods + user.providers.map(\.providerID))
    }
    return response
  }
}
