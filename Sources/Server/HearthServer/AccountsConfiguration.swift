import Accounts
import Gateway

/// How the accounts of people are run. Administrators change the first part while the server runs; what they set stays.
public struct AccountsConfiguration: Sendable, Equatable {
  /// A provider that signs people in: Google, Apple, or any that speaks OpenID Connect.
  public struct IdentityProvider: Sendable, Equatable {
    /// The id that apps use: `google.com`, `apple.com`, or one that begins with `oidc.`.
    public var id: String
    /// What its tokens say in `aud`: the app, as the provider knows it.
    public var clientID: String
    /// A file with its keys, a JSON Web Key Set.
    public var keysPath: String
    /// What its tokens say in `iss`; Google's and Apple's are known.
    public var issuer: String?

    /// Describes a provider.
    public init(id: String, clientID: String, keysPath: String, issuer: String? = nil) {
      self.id = id
      self.clientID = clientID
      self.keysPath = keysPath
      self.issuer = issuer
    }
  }

  /// Whether guests may come, who have an account without an address.
  public var allowsAnonymous = true
  /// Whether people sign in with a password.
  public var allowsPassword = true
  /// Whether people make accounts for themselves; otherwise administrators do.
  public var allowsSignUp = true
  /// The command that sends a mail, which it reads from its standard input; none is sent without.
  public var mailCommand: String?
  /// Who mails are from.
  public var mailSender = "noreply@localhost"
  /// Where links in mails lead: a page of the app. Mails need it.
  public var actionURL: String?
  /// Who signs people in beside this server.
  public var identityProviders: [IdentityProvider] = []

  /// Creates a configuration with the defaults above.
  public init() {}

  /// Gets the accounts' calls ready.
  func toolkit(_ accounts: AccountStore) throws(HearthError) -> IdentityToolkit {
    guard mailCommand == nil || actionURL != nil else {
      throw .configuration(
        "mails need a page that their links lead to; add --action-url https://…, the address of such a page of the app")
    }
    var options = IdentityToolkit.Options()
    options.settings.allowsAnonymous = allowsAnonymous
    options.settings.allowsPassword = allowsPassword
    options.settings.allowsSignUp = allowsSignUp
    options.mailCommand = mailCommand
    options.mailSender = mailSender
    options.actionURL = actionURL
    for provider in identityProviders {
      let keys = try KeyFile.read(provider.keysPath)
      do throws(TokenError) {
        try options.identityProviders.add(
          provider.id, issuer: provider.issuer, clientID: provider.clientID, keys: keys)
      } catch { throw .data("\(provider.keysPath): \(error.description)") }
    }
    do { return try IdentityToolkit(accounts, options) } catch {
      throw .storage("the accounts cannot be opened: \(error)")
    }
  }
}
