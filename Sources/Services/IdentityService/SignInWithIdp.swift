package import Accounts
package import DocumentModel
import WireFormat

extension AccountsService {
  /// Signs a user in with an identity of another provider, or links the identity to an account.
  package struct SignInWithIdp: Sendable {
    package var providerID: String?
    /// The provider's token. In emulator mode it may also be a JSON object of claims, and is not verified.
    package var providerToken: String?
    /// The provider's access token. In emulator mode it can take the place of the token.
    package var accessToken: String?
    /// The code with which the provider returned the user to a page of the app, instead of a token.
    package var returned: (session: String, ProviderSignIn.Return)?
    /// Whether the response to a failed link contains the identity, so that the app can use it in another way.
    package var returnsCredential = false
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
    /// The text that the app can pass as the provider's token later, if it has to confirm the identity: the token
    /// itself or the name of a ``PendingIdentity``.
    package var token: String?
    package var accessToken: String?
    /// The time at which the provider confirmed a ``PendingIdentity``, in seconds since 1970.
    var confirmedSeconds: Int64?
  }

  /// The outcome of a sign-in with another provider.
  package enum IdpSignIn: Sendable {
    case signedIn(SignInOutcome, Identity)
    /// The address belongs to this account, but the provider has not verified it. The user must prove to own the
    /// account by one of its own sign-in methods.
    case needsConfirmation(User, Identity)
    /// The identity or its address belongs to another account.
    case refused(AccountError, Identity)
  }

  /// Signs a user in with an identity of another provider. The first sign-in creates the account.
  ///
  /// - Throws: `AccountError`; `TokenError` or `StorageError` if the server fails.
  package func signInWithIdp(_ request: SignInWithIdp, by caller: AccountsCaller) throws -> IdpSignIn {
    let identity = try identity(request, from: caller.address)
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
        if let linked {
          // This reason comes first: its address may belong to the other account too.
          let other = try users.user(providerID: provider.providerID, rawID: provider.rawID)
          guard other == nil || other?.uid == linked else { throw AccountError(.federatedUserIDAlreadyLinked) }
          return linked
        }
        if let user = try users.user(providerID: provider.providerID, rawID: provider.rawID) {
          // The password was changed, or all sessions were ended, after the provider confirmed the identity.
          if let confirmed = identity.confirmedSeconds, confirmed < user.validSince,
            user.validSince > user.createdAt / 1000
          {
            throw AccountError(.invalidIdpResponse, "The sign-in is older than a change of the account. Sign in again.")
          }
          return user.uid
        }
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
      if let unconfirmed { return .needsConfirmation(unconfirmed, renewed(identity)) }
      guard request.returnsCredential, [.federatedUserIDAlreadyLinked, .emailExists].contains(error.code) else {
        throw error
      }
      return .refused(error, renewed(identity))
    }
    outcome.isNew = isNew
    audit(
      linked != nil ? .linked : isNew ? .created : .signedIn, outcome.user.uid, by: caller,
      method: Self.loggable(provider.providerID))
    return .signedIn(outcome, renewed(identity))
  }

  /// Returns an identity with a new name, if its name was used up. The new name ends when the first one would have.
  private func renewed(_ identity: Identity) -> Identity {
    guard identity.token == nil, let confirmed = identity.confirmedSeconds else { return identity }
    var identity = identity
    identity.token = providerSignIn.pending.add(
      PendingIdentity(
        providerID: identity.provider.providerID, claims: identity.claims, accessToken: identity.accessToken,
        confirmedSeconds: confirmed))
    return identity
  }

  /// Returns the identity of a code or a name, or `nil` for a token of the provider.
  private func confirmed(_ request: SignInWithIdp, from address: String?) throws -> PendingIdentity? {
    do {
      if let (session, back) = request.returned {
        let ticket = try providerSignIn.ticket(session, for: back)
        guard ticket.app == nil else {
          throw AccountError(.invalidIdpResponse, "The sessionId is that of another sign-in.")
        }
        return try finishReturn(back, from: address) { () throws(SignInFailure) in
          try providerSignIn.identity(ticket, back)
        }
      }
    } catch let failure as SignInFailure {
      if failure.code == SignInFailure.Code.tooManyRequests.rawValue {
        throw AccountError(.tooManyAttempts, failure.text)
      }
      throw AccountError(.invalidIdpResponse, failure.text)
    }
    guard let name = request.providerToken, PendingIdentities.isName(name) else { return nil }
    guard let found = providerSignIn.pending.take(name, providerID: request.providerID ?? "") else {
      throw AccountError(.invalidIdpResponse, "The sign-in was used before, or it is too old. Sign in again.")
    }
    return found
  }

  /// Verifies the provider's token.
  private func identity(_ request: SignInWithIdp, from address: String?) throws -> Identity {
    if accounts.mode == .production, let found = try confirmed(request, from: address) {
      var identity = try identity(of: found.claims, providerID: found.providerID)
      identity.accessToken = found.accessToken
      identity.confirmedSeconds = found.confirmedSeconds
      return identity
    }
    guard let providerID = request.providerID, !providerID.isEmpty, providerID.utf8.count <= 128,
      !["password", "phone", "anonymous", "custom", "emailLink"].contains(providerID)
    else {
      throw AccountError(.invalidCredentialOrProvider, "Invalid IdP response/credential: the providerId is missing.")
    }
    let accessToken = accounts.mode == .emulator ? request.accessToken : nil
    guard let token = request.providerToken ?? accessToken, !token.isEmpty else {
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
    var identity = try identity(of: claims, providerID: providerID)
    identity.token = token
    // An emulator's accounts have no access tokens. Apps of some providers need one to continue a sign-in.
    if accounts.mode == .emulator { identity.accessToken = request.accessToken ?? token }
    return identity
  }

  /// Returns the identity that verified claims describe.
  private func identity(of claims: MapValue, providerID: String) throws -> Identity {
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

extension AccountsService {
  /// Runs `body`, which sends the code of a return to a provider. Limits the returns to one place that fail, so that a
  /// stranger cannot make the server send requests to a provider without end.
  /// - Throws: the error of `body`, or `tooManyRequests` if too many returns to the place failed.
  package func finishReturn<Value>(
    _ back: ProviderSignIn.Return, from address: String?, _ body: () throws(SignInFailure) -> Value
  ) throws(SignInFailure) -> Value {
    // A request from this machine has no address, and a return without a code leads to no request.
    guard back.code != nil, back.error == nil, let place = address.map(KnownPlaces.place) else { return try body() }
    guard throttle.take(.providerReturn, place) else {
      throw SignInFailure(.tooManyRequests, "Too many sign-ins from your address have failed. Try again later.")
    }
    let value = try body()
    throttle.giveBack(.providerReturn, place)
    return value
  }
}
