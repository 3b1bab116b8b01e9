package import Accounts
import DocumentModel

extension AccountsService {
  /// Creates an account: an anonymous one, a user's own, or one that an administrator creates.
  package struct SignUp: Sendable {
    /// The account that gets the email address and the password, instead of a new one.
    package var idToken: String?
    package var email: String?
    package var password: String?
    package var displayName: String?
    /// The uid of the new account, otherwise a random one. This and the following properties are for administrators.
    package var uid: String?
    package var phoneNumber: String?
    package var photoURL: String?
    package var isEmailVerified = false
    package var isDisabled = false
    /// The number of second factors, which this server does not support; `nil` if the request does not mention them.
    package var secondFactorCount: Int?

    /// Creates a request for an account with an email address and a password, or for an anonymous one.
    package init(email: String? = nil, password: String? = nil) {
      self.email = email
      self.password = password
    }
  }

  /// A new account, or one that got a password.
  package struct SignedUp: Sendable {
    package var user: User
    /// The session of the user, unless an administrator created the account.
    package var session: SignInOutcome?
  }

  /// Creates an account, or adds an email address and a password to the account of an ID token.
  ///
  /// - Throws: `AccountError`; `TokenError` or `StorageError` if the server fails.
  package func signUp(_ request: SignUp, by caller: AccountsCaller) throws -> SignedUp {
    if let idToken = request.idToken { return try linkPassword(request, idToken, by: caller) }
    if caller.isAdmin { return try create(request, by: caller) }
    if request.uid != nil { throw AccountError(.unexpectedParameter, "User ID") }
    if request.secondFactorCount != nil { throw AccountError(.unexpectedParameter, "MFA") }
    let email = try request.email.map(UserFields.email)
    let settings = currentSettings
    guard settings.allowsSignUp else { throw AccountError(.adminOnlyOperation) }
    if email == nil, request.password == nil {
      guard settings.allowsAnonymous else { throw AccountError(.adminOnlyOperation) }
    } else {
      guard settings.allowsPassword else { throw AccountError(.operationNotAllowed) }
      if email == nil { throw AccountError(.missingEmail) }
      if request.password == nil { throw AccountError(.missingPassword) }
    }
    try countSignUp(caller)
    var user = User(uid: UserStore.makeUID(), createdAt: accounts.nowMilliseconds)
    user.displayName = try request.displayName.map { try UserFields.text($0, "displayName") }
    if let email, let password = request.password {
      user.email = email
      user.setPassword(try hash(password), now: user.createdAt)
    }
    let made = user
    let method = email == nil ? "anonymous" : "password"
    let outcome = try accounts.signIn(provider: method) { users in
      try users.insert(made)
      return made.uid
    }
    if let email { notePlace(of: email, caller) }
    audit(.created, outcome.user.uid, by: caller, method: method)
    return SignedUp(user: outcome.user, session: outcome)
  }

  /// Adds an email address and a password to the ID token's account. A guest becomes a member with the same uid.
  private func linkPassword(_ request: SignUp, _ idToken: String, by caller: AccountsCaller) throws -> SignedUp {
    let (user, token) = try accounts.owner(ofIDToken: idToken)
    guard currentSettings.allowsPassword else { throw AccountError(.operationNotAllowed) }
    guard let email = try request.email.map(UserFields.email) else { throw AccountError(.missingEmail) }
    guard let password = request.password else { throw AccountError(.missingPassword) }
    // Only a guest account has no sign-in method that the holder of an old token could take over.
    if !user.isAnonymous { try requireRecent(token, caller) }
    let hash = try hash(password)
    let now = accounts.nowMilliseconds
    let name = try request.displayName.map { try UserFields.text($0, "displayName") }
    var recovery: ActionCode?
    let outcome = try accounts.signIn(provider: "password") { users in
      guard let user = try users.user(user.uid) else { throw AccountError(.userNotFound) }
      recovery = try makeRecovery(of: user, movedTo: email, in: users, caller)
      return user.uid
    } change: { user in
      if !user.hasEmail(email) { user.move(to: email, isVerified: false, now: now) }
      user.setPassword(hash, now: now)
      if let name { user.displayName = name }
    }
    notePlace(of: email, caller)
    send(recovery: recovery, caller)
    audit(.linked, user.uid, by: caller, method: "password")
    return SignedUp(user: outcome.user, session: outcome)
  }

  private func create(_ request: SignUp, by caller: AccountsCaller) throws -> SignedUp {
    // An empty ID, as some clients send, asks for a random one.
    let uid = try request.uid.flatMap { $0.isEmpty ? nil : try UserFields.uid($0) } ?? UserStore.makeUID()
    let now = accounts.nowMilliseconds
    var user = User(uid: uid, createdAt: now)
    user.email = try request.email.map(UserFields.email)
    user.phoneNumber = try request.phoneNumber.map(UserFields.phoneNumber)
    user.displayName = try request.displayName.map { try UserFields.text($0, "displayName") }
    user.photoURL = try request.photoURL.map { try UserFields.text($0, "photoUrl") }
    user.isEmailVerified = request.isEmailVerified
    user.isDisabled = request.isDisabled
    guard request.secondFactorCount ?? 0 == 0 else { throw AccountError.secondFactorsUnsupported }
    if let password = request.password { user.setPassword(try hash(password), now: now) }
    try accounts.users.insert(user)
    audit(.created, uid, by: caller)
    return SignedUp(user: user)
  }

  /// Limits the number of new accounts per client address.
  private func countSignUp(_ caller: AccountsCaller) throws {
    guard accounts.mode == .production, let place = caller.place else { return }
    guard throttle.allows(.signUp, place) else {
      throw AccountError(.tooManyAttempts, "Too many accounts were created from this address. Try again later.")
    }
    throttle.count(.signUp, place)
  }
}

extension AccountError {
  static let secondFactorsUnsupported = AccountError(
    .notImplemented, "This server does not support second factors.")
}
