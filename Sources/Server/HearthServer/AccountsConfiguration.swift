import Accounts
import Gateway
import IdentityService

/// The configuration of user accounts. Administrators can change the first three settings while the server runs;
/// their changes persist.
public struct AccountsConfiguration: Sendable, Equatable {
  /// An identity provider for sign-in: Google, Apple, or any OpenID Connect provider.
  public struct IdentityProvider: Sendable, Equatable {
    /// The ID that apps use: `google.com`, `apple.com`, or an ID that begins with `oidc.`.
    public var id: String
    /// The `aud` claim of its tokens: the app's ID at the provider.
    public var clientID: String
    /// The path of a file with its public keys, a JSON Web Key Set.
    public var keysPath: String
    /// The `iss` claim of its tokens. Not needed for Google and Apple.
    public var issuer: String?

    public init(id: String, clientID: String, keysPath: String, issuer: String? = nil) {
      self.id = id
      self.clientID = clientID
      self.keysPath = keysPath
      self.issuer = issuer
    }
  }

  /// Whether users can sign in anonymously.
  public var allowsAnonymous = true
  /// Whether users can sign in with a password.
  public var allowsPassword = true
  /// Whether users can create accounts; otherwise only administrators can.
  public var allowsSignUp = true
  /// The shell command that sends a mail, which it reads from its standard input. If `nil`, no mail is sent.
  public var mailCommand: String?
  /// The sender address of mails.
  public var mailSender = "noreply@localhost"
  /// The URL of the app's page to which links in mails lead. Required if ``mailCommand`` is set.
  public var actionURL: String?
  /// The domains to which links in mails may lead and whose pages may sign users in, besides those of ``actionURL`` and
  /// of the public URL; their subdomains are included.
  public var authorizedDomains: [String] = []
  /// The identity providers whose tokens sign users in.
  public var identityProviders: [IdentityProvider] = []
  /// The identity providers whose sign-in pages the server opens: a JSON object by provider ID, as hearth.json contains
  /// it. See docs/sign-in.md.
  public var signInProviders: String?
  /// The folder of relative paths in ``signInProviders``, or `nil` for the working directory.
  package var providersFolder: String?

  /// Creates a configuration with the defaults above.
  public init() {}

  /// Checks the values, and the files that they name.
  /// - Throws: ``HearthError`` for the first one that is not valid.
  func check(fetch: ProviderFetch?) throws(HearthError) { _ = try options(fetch) }

  /// The paths of the files with secrets that ``signInProviders`` names.
  package var secretFiles: [String] {
    signInProviders.map { SignInProviderText.secretFiles($0, in: providersFolder) } ?? []
  }

  /// Creates the account service with this configuration.
  /// - Parameters:
  ///   - publicURL: the URL at which browsers reach the server.
  ///   - fetch: sends requests to the providers.
  func service(
    _ accounts: AccountStore, publicURL: String?, fetch: ProviderFetch?
  ) throws(HearthError) -> AccountsService {
    var options = try options(fetch)
    options.publicURL = publicURL
    do { return try AccountsService(accounts, options) } catch {
      throw .storage("cannot open the accounts: \(error)")
    }
  }

  private func options(_ fetch: ProviderFetch?) throws(HearthError) -> AccountsService.Options {
    guard mailCommand == nil || actionURL != nil else {
      throw .configuration(
        "--mail-command also needs --action-url https://…, the page of the app that links in mails open")
    }
    var options = AccountsService.Options()
    options.settings.allowsAnonymous = allowsAnonymous
    options.settings.allowsPassword = allowsPassword
    options.settings.allowsSignUp = allowsSignUp
    options.mailCommand = mailCommand
    options.mailSender = mailSender
    options.actionURL = actionURL
    options.authorizedDomains = authorizedDomains
    options.signInProviders =
      try signInProviders.map { (text) throws(HearthError) in
        try SignInProviderText.read(text, in: providersFolder)
      } ?? []
    options.providerFetch = fetch
    guard options.signInProviders.isEmpty || fetch != nil else {
      throw .configuration("sign-in providers need a function that sends requests")
    }
    for provider in identityProviders {
      let keys = try KeyFile.read(provider.keysPath)
      do throws(TokenError) {
        try options.identityProviders.add(
          provider.id, issuer: provider.issuer, clientID: provider.clientID, keys: keys)
      } catch { throw .data("\(provider.keysPath): \(error.description)") }
    }
    return options
  }
}
