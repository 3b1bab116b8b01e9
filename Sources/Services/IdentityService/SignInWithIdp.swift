package import Accounts
package import DocumentModel
import WireFormat

extension AccountsService {
  /// Signs a user in with an identity of another provider, or links the identity to an account.
  package struct SignInWithIdp: Sendable {
    package var providerID: String?
    /// The provider's token. In emulator mode it may also be a JSON object of claims, and is not verified.
    package var providerToken: String?
    /// The nonce with which the provider's token was requested.
    package var nonce: String?
    /// The account to which the identity moves. `nil` signs in the account that has the identity.
    package var idToken: String?
    /// Whether to create an account for an unknown identity.
    package var createsAccount = true

    package init(providerID: String?, providerToken: String?) {
      self.providerID = providerID
      self.providerToken = providerToken
    }
  }

  /// A user's identity as the provider describes it.
  package struct Identity: Sendable {
    package var provider: User.LinkedProvider
    package var isEmailVerified: Bool
    package var claims: MapValue
  }

  /// The outcome of a sign-in with another provider.
  package enum IdpSignIn: Sendable {
    case signedIn(SignInOutcome, Identity)
    /// The address belongs to this account, but the provider has not verified it. The user must prove to own the
    /// account by one of its own sign-in methods.
    case needsConfirmation(User, Identity)
  }

  /// Signs a user in with an identity of another provider. The first sign-in creates the account.
  ///
  /// - Throws: `AccountError`; `TokenError` or `StorageError` if the server fails.
  package func signInWithIdp(_ request: SignInWithIdp, by caller: AccountsCaller) throws -> IdpSignIn {
    let identity = try identity(request)
    let provider = identity.provider
    let linked = try request.idToken.map { try accounts.owner(ofIDToken: $0).user.uid }
    let settings = currentSettings
    let now = accounts.nowMilliseconds
    var unconfirmed: User?
    var isNew = false
    var isTakeover = false
    var outcome: SignInOutcome
    do {
      outcome = try accounts.signIn(provider: provider.providerID) { users in
        if let linked { return linked }
        if let user = try users.user(providerID: provider.providerID, rawID: provider.rawID) { return user.uid }
        if let email = provider.email, let user = try users.user(email: email) {
          guard identity.isEmailVerified else {
            unconfirmed = user
            throw AccountError(.emailExists)
          }
          isTakeover = !user.isEmailVerified
          return user.uid
        }
        guard settings.allowsSignUp, request.createsAccount else {
          throw AccountError(request.createsAccount ? .adminOnlyOperation : .userNotFound)
        }
        isNew = true
        let user = User(uid: UserStore.makeUID(), createdAt: now)
        try users.insert(user)
        return user.uid
      } change: { user in
        if isTakeover {
          // Another party may have created the account in the hope that the owner of the address would use it.
          user.takeOver(now: now)
        }
        user.merge(provider, isEmailVerified: identity.isEmailVerified)
      }
    } catch let error as AccountError {
      guard let unconfirmed else { throw error }
      return .needsConfirmation(unconfirmed, identity)
    }
    outcome.isNew = isNew
    // The ID is the client's text, and logs must stay readable.
    let method = provider.providerID.utf8.map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }
    audit(
      linked != nil ? .linked : isNew ? .created : .signedIn, outcome.user.uid, by: caller,
      method: String(decoding: method, as: UTF8.self))
    return .signedIn(outcome, identity)
  }

  /// Verifies the provider's token.
  private func identity(_ request: SignInWithIdp) throws -> Identity {
    guard let providerID = request.providerID, !providerID.isEmpty, providerID.utf8.count <= 128,
      !["password", "phone", "anonymous", "custom", "emailLink"].contains(providerID)
    else {
      throw AccountError(.invalidCredentialOrProvider, "Invalid IdP response/credential: the providerId is missing.")
    }
    guard let token = request.providerToken, !token.isEmpty else {
      throw AccountError(.invalidIdpResponse, "The request must contain an id_token from the provider.")
    }
    let claims: MapValue
    if accounts.mode == .emulator {
      guard let read = Self.unverified(token) else {
        throw AccountError(.invalidIdpResponse, "Unable to parse id_token.")
      }
      claims = read
    } else {
      do {
        claims = try options.identityProviders.claims(
          of: token, providerID: providerID, nonce: request.nonce, nowSeconds: accounts.nowSeconds)
      } catch let error as TokenError {
        throw AccountError(.invalidIdpResponse, "The id_token is not valid: \(error).")
      }
    }
    guard let rawID = claims.text("sub"), (1...256).contains(rawID.utf8.count) else {
      throw AccountError(.invalidIdpResponse, "The id_token has no sub.")
    }
    let email = try claims.text("email").map(UserFields.email)
    // Apple sends its flags as strings.
    let isVerified = claims["email_verified"] == .boolean(true) || claims.text("email_verified") == "true"
    let provider = User.LinkedProvider(
      providerID: providerID, rawID: rawID, email: email, displayName: claims.text("name"),
      photoURL: claims.text("picture"), screenName: claims.text("screen_name"))
    return Identity(provider: provider, isEmailVerified: email != nil && isVerified, claims: claims)
  }

  /// The claims of a token in emulator mode: a JSON object, or a JWT whose signature is not verified.
  private static func unverified(_ text: String) -> MapValue? {
    if let claims = MapValue(json: Array(text.utf8)) { return claims }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let bytes = Base64.decode(String(parts[1])) else { return nil }
    return MapValue(json: bytes)
  }
}

extension User {
  /// Links an identity, and copies from it the profile fields that the account lacks.
  fileprivate mutating func merge(_ provider: LinkedProvider, isEmailVerified isVerified: Bool) {
    link(provider)
    if email == nil, let address = provider.email {
      email = address
      isEmailVerified = isVerified
    } else if isVerified, let address = provider.email, email?.utf8.elementsEqual(address.utf8) == true {
      isEmailVerified = true
    }
    if displayName == nil { displayName = provider.displayName }
    if photoURL == nil { photoURL = provider.photoURL }
  }
}
