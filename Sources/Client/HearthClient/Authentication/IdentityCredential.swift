/// A token of an identity provider, which proves who a user is; see ``Authentication/signIn(with:)``.
///
/// The app gets the token from the provider: on Apple's platforms from `ASAuthorizationController` or from Google's
/// sign-in library. In production, the server accepts the tokens of the providers that its operator enabled.
public struct IdentityCredential: Sendable, Hashable {
  /// The ID of the provider, such as `google.com`.
  public let providerID: String
  /// The names and values of the form that the server reads.
  private let form: [String: String]

  private init(_ providerID: String, _ form: [String: String?]) {
    self.providerID = providerID
    self.form = form.compactMapValues { $0 }
  }

  /// A token of Google.
  /// - Parameters:
  ///   - idToken: the ID token.
  ///   - accessToken: the access token. Hearth does not need it.
  public static func google(idToken: String, accessToken: String? = nil) -> IdentityCredential {
    IdentityCredential("google.com", ["id_token": idToken, "access_token": accessToken])
  }

  /// A token of Sign in with Apple.
  /// - Parameters:
  ///   - idToken: the text of `ASAuthorizationAppleIDCredential.identityToken`.
  ///   - nonce: the random text whose SHA-256 the request to Apple contained, or `nil` if it contained none.
  public static func apple(idToken: String, nonce: String? = nil) -> IdentityCredential {
    IdentityCredential("apple.com", ["id_token": idToken, "nonce": nonce])
  }

  /// A token of another OpenID provider.
  /// - Parameters:
  ///   - provider: the provider's ID on the server, such as `oidc.example`.
  ///   - idToken: the ID token.
  ///   - nonce: the nonce of the request to the provider, or `nil` if it contained none.
  public static func oidc(provider: String, idToken: String, nonce: String? = nil) -> IdentityCredential {
    IdentityCredential(provider, ["id_token": idToken, "nonce": nonce])
  }

  /// The form of the request.
  var postBody: String {
    let fields = form.map { ($0.key, $0.value) } + [("providerId", providerID)]
    return fields.sorted { $0.0 < $1.0 }.map { "\($0)=\($1.percentEncoded)" }.joined(separator: "&")
  }
}

extension HearthClientError {
  /// A reason for which the server rejected a request of ``Authentication``.
  ///
  ///     do {
  ///       try await hearth.auth.signUp(email: email, password: password)
  ///     } catch let error as HearthClientError where error.reason == .emailExists {
  ///       …
  ///     }
  public struct Reason: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    /// The text that the server sends, such as `EMAIL_EXISTS`.
    public let rawValue: String

    /// The reason with this text.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The text that the server sends.
    public var description: String { rawValue }

    /// Only administrators may create accounts.
    public static let adminOnlyOperation = Reason(rawValue: "ADMIN_ONLY_OPERATION")
    /// The last sign-in was too long ago. Sign in again, then repeat the request.
    public static let credentialTooOld = Reason(rawValue: "CREDENTIAL_TOO_OLD_LOGIN_AGAIN")
    /// Another account has this email address.
    public static let emailExists = Reason(rawValue: "EMAIL_EXISTS")
    /// No account has this email address. Servers that hide addresses report ``invalidLoginCredentials`` instead.
    public static let emailNotFound = Reason(rawValue: "EMAIL_NOT_FOUND")
    /// Another account has this identity at the provider.
    public static let identityAlreadyLinked = Reason(rawValue: "FEDERATED_USER_ID_ALREADY_LINKED")
    /// The custom token is not valid.
    public static let invalidCustomToken = Reason(rawValue: "INVALID_CUSTOM_TOKEN")
    /// The text is not an email address.
    public static let invalidEmail = Reason(rawValue: "INVALID_EMAIL")
    /// The provider's token is not valid, for example because it expired or is for another app.
    public static let invalidIdentity = Reason(rawValue: "INVALID_IDP_RESPONSE")
    /// The email address or the password is wrong.
    public static let invalidLoginCredentials = Reason(rawValue: "INVALID_LOGIN_CREDENTIALS")
    /// The password is wrong. Servers that hide addresses report ``invalidLoginCredentials`` instead.
    public static let invalidPassword = Reason(rawValue: "INVALID_PASSWORD")
    /// Another account has the identity's email address, which the provider has not verified. Sign in to that account
    /// by one of its own methods, then link the identity.
    public static let needsConfirmation = Reason(rawValue: "NEED_CONFIRMATION")
    /// The operator has not enabled this way to sign in.
    public static let operationNotAllowed = Reason(rawValue: "OPERATION_NOT_ALLOWED")
    /// The operator has not enabled passwords.
    public static let passwordSignInDisabled = Reason(rawValue: "PASSWORD_LOGIN_DISABLED")
    /// The session has ended.
    public static let tokenExpired = Reason(rawValue: "TOKEN_EXPIRED")
    /// The server limits attempts. Wait before the next one.
    public static let tooManyAttempts = Reason(rawValue: "TOO_MANY_ATTEMPTS_TRY_LATER")
    /// The account is disabled.
    public static let userDisabled = Reason(rawValue: "USER_DISABLED")
    /// The account does not exist.
    public static let userNotFound = Reason(rawValue: "USER_NOT_FOUND")
    /// The password is too short.
    public static let weakPassword = Reason(rawValue: "WEAK_PASSWORD")
  }

  /// The reason of a failed request of ``Authentication``, or `nil` if the message does not begin with one.
  public var reason: Reason? {
    let word = message.prefix { $0 == "_" || ("A"..."Z").contains($0) || $0.isNumber }
    let rest = message[word.endIndex...]
    return word.count > 2 && (rest.isEmpty || rest.hasPrefix(" : ")) ? Reason(rawValue: String(word)) : nil
  }
}
