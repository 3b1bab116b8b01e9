import GatewayCore
import Accounts
import DocumentModel
import WireFormat

/// Sign-in with an identity of another provider.
extension IdentityRequest {
  /// A user's identity as the provider describes it.
  private struct Identity {
    var providerID: String
    var rawID: String
    var email: String?
    var isEmailVerified: Bool
    var claims: MapValue

    var linked: User.LinkedProvider {
      User.LinkedProvider(
        providerID: providerID, rawID: rawID, email: email, displayName: claims.text("name"),
        photoURL: claims.text("picture"), screenName: claims.text("screen_name"))
    }
  }

  /// The outcome of a sign-in.
  private enum Decision {
    case signIn(String, isNew: Bool)
    /// The address belongs to an account, but the provider has not verified it.
    case confirm(User)
  }

  func signInWithIdp() throws -> Response {
    guard let uri = text("requestUri") else { throw AccountError(.missingRequestURI) }
    let identity = try identity(uri)
    let linkedUser = try text("idToken").map { _ in try owner().user.uid }
    if let linkedUser { return try link(identity, to: linkedUser) }
    let settings = settings
    let now = accounts.nowMilliseconds
    let mayCreate = fields["autoCreate"]?.flag ?? true
    var unconfirmed: User?
    var isNew = false
    var isTakeover = false
    let outcome: SignInOutcome
    do {
      outcome = try accounts.signIn(provider: identity.providerID, sessionClaims: MapValue()) { users in
        if let user = try users.user(providerID: identity.providerID, rawID: identity.rawID) { return user.uid }
        if let email = identity.email, let user = try users.user(email: email) {
          guard identity.isEmailVerified else {
            unconfirmed = user
            throw AccountError(.emailExists)
          }
          isTakeover = !user.isEmailVerified
          return user.uid
        }
        guard settings.allowsSignUp, mayCreate else {
          throw AccountError(mayCreate ? .adminOnlyOperation : .userNotFound)
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
        user.merge(identity.linked, isEmailVerified: identity.isEmailVerified)
      }
    } catch let error as AccountError {
      guard let unconfirmed else { throw error }
      return response("VerifyAssertionResponse") { json in
        json.boolean("needConfirmation", true)
        json.text("localId", unconfirmed.uid)
        json.member("email", unconfirmed.email)
        json.key("verifiedProvider")
        json.beginArray()
        for id in unconfirmed.providerIDs where id != "phone" { json.string(id) }
        json.endArray()
        append(identity, to: &json)
      }
    }
    audit(isNew ? .created : .signedIn, outcome.user.uid, by: Self.printable(identity.providerID))
    return response(identity, outcome, isNew: isNew)
  }

  private func link(_ identity: Identity, to uid: String) throws -> Response {
    let outcome = try accounts.signIn(provider: identity.providerID, find: { _ in uid }) { user in
      user.merge(identity.linked, isEmailVerified: identity.isEmailVerified)
    }
    audit(.linked, uid, by: Self.printable(identity.providerID))
    return response(identity, outcome, isNew: false)
  }

  private func response(_ identity: Identity, _ outcome: SignInOutcome, isNew: Bool) -> Response {
    response("VerifyAssertionResponse") { json in
      json.text("localId", outcome.user.uid)
      json.member("email", outcome.user.email)
      json.boolean("emailVerified", outcome.user.isEmailVerified)
      json.boolean("isNewUser", isNew)
      append(identity, to: &json)
      json.members(outcome)
    }
  }

  private func append(_ identity: Identity, to json: inout JSONWriter) {
    json.text("providerId", identity.providerID)
    json.text("federatedId", identity.linked.federatedID)
    json.member("displayName", identity.claims.text("name"))
    json.member("fullName", identity.claims.text("name"))
    json.member("firstName", identity.claims.text("given_name"))
    json.member("lastName", identity.claims.text("family_name"))
    json.member("photoUrl", identity.claims.text("picture"))
    json.text("rawUserInfo", String(decoding: identity.claims.json, as: UTF8.self))
  }

  // MARK: Identities

  /// Reads and verifies the identity in a sign-in request.
  private func identity(_ requestURI: String) throws -> Identity {
    var form = Array((text("postBody") ?? "").utf8)
    // If the provider redirected the user to a page, the response is in the URL's query.
    if form.isEmpty, let mark = requestURI.utf8.firstIndex(of: UInt8(ascii: "?")) {
      form = Array(requestURI.utf8[requestURI.utf8.index(after: mark)...].prefix { $0 != UInt8(ascii: "#") })
    }
    guard let parameters = try? form.withUnsafeBytes({ try QueryParameters($0) }) else {
      throw AccountError(.invalidIdpResponse)
    }
    guard let providerID = parameters.value("providerId"), !providerID.isEmpty, providerID.utf8.count <= 128,
      !["password", "phone", "anonymous", "custom", "emailLink"].contains(providerID)
    else {
      throw AccountError(.invalidCredentialOrProvider, "Invalid IdP response/credential: the providerId is missing.")
    }
    guard let idToken = parameters.value("idToken"), !idToken.isEmpty else {
      throw AccountError(.invalidIdpResponse, "The request must contain an id_token from the provider.")
    }
    let claims: MapValue
    if accounts.mode == .emulator {
      guard let read = Self.unverified(idToken) else {
        throw AccountError(.invalidIdpResponse, "Unable to parse id_token.")
      }
      claims = read
    } else {
      do {
        claims = try toolkit.identityProviders.claims(
          of: idToken, providerID: providerID, nonce: parameters.value("nonce"), nowSeconds: accounts.nowSeconds)
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
    return Identity(
      providerID: providerID, rawID: rawID, email: email, isEmailVerified: email != nil && isVerified, claims: claims)
  }

  /// The claims of a token in emulator mode: a JSON object, or a JWT whose signature is not verified.
  private static func unverified(_ text: String) -> MapValue? {
    if let claims = MapValue(json: Array(text.utf8)) { return claims }
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let bytes = Base64.decode(String(parts[1])) else { return nil }
    return MapValue(json: bytes)
  }

  private static func printable(_ text: String) -> String {
    String(decoding: text.utf8.map { (0x21...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
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
