import Accounts
import DocumentModel

extension AccountsService {
  /// Asks for the sign-in methods of an email address.
  package struct CreateAuthURI: Sendable {
    package var identifier: String?
    /// The URL of the app, to which a provider returns the user.
    package var continueURL: String?
    /// The provider whose sign-in page to open.
    package var providerID: String?
    /// The scopes to request besides the configured ones.
    package var scopes: [String] = []
    /// Parameters for the provider's page.
    package var parameters: [(name: String, value: String)] = []

    package init(identifier: String?, continueURL: String?, providerID: String? = nil) {
      self.identifier = identifier
      self.continueURL = continueURL
      self.providerID = providerID
    }
  }

  /// The sign-in methods of an email address, or the sign-in page of a provider.
  package struct AuthURI: Sendable {
    package var sessionID: String
    /// The provider and the URL of its sign-in page.
    package var page: (providerID: String, url: String)?
    /// Whether an account has the address; `nil` if the settings hide addresses.
    package var isRegistered: Bool?
    /// The providers and methods of the account, or `nil` if no account may be shown.
    package var account: (providers: [String], methods: [String])?
  }

  /// Returns the sign-in methods of an address. If email addresses are hidden, the response contains none. For a
  /// request with a provider, returns the URL of the provider's page instead.
  ///
  /// - Throws: `AccountError`; `StorageError` if the server fails.
  package func createAuthURI(_ request: CreateAuthURI, by caller: AccountsCaller) throws -> AuthURI {
    if let providerID = request.providerID { return try authURI(of: providerID, request, by: caller) }
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

  /// Begins a sign-in of an app that opens the page of a provider itself, and receives the user on a page of its own.
  private func authURI(
    of providerID: String, _ request: CreateAuthURI, by caller: AccountsCaller
  ) throws -> AuthURI {
    guard accounts.mode == .production else {
      throw AccountError(.notImplemented, "An emulator has no sign-in pages of providers for this call.")
    }
    guard let url = request.continueURL else { throw AccountError(.missingContinueURI) }
    let page = try checkContinueURL(url, caller)
    // The provider sends the code to this page.
    let usesTLS = options.publicURL?.hasPrefix("https://") ?? false
    guard page.hasPrefix("https://") || !usesTLS || ContinueURL.host(of: page).map(ContinueURL.isLoopback) == true
    else {
      throw AccountError(.invalidContinueURI, "The page must have an https URL.")
    }
    do {
      let start = try providerSignIn.begin(
        providerID, returnURL: page, app: nil, scopes: request.scopes, parameters: request.parameters)
      var response = AuthURI(sessionID: start.sealed)
      response.page = (providerID, start.url)
      return response
    } catch {
      let code: AccountError.Code =
        error.code == SignInFailure.Code.operationNotAllowed.rawValue ? .operationNotAllowed : .invalidIdpResponse
      throw AccountError(code, error.text)
    }
  }
}
