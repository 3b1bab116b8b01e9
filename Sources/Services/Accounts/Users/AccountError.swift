/// An error of an account operation: a code that clients match, and a text for people.
package struct AccountError: Error, Equatable, Sendable {
  /// The codes of the API (auth-api.md, section 5). Clients match the raw value.
  package enum Code: String, Sendable {
    case adminOnlyOperation = "ADMIN_ONLY_OPERATION"
    case claimsTooLarge = "CLAIMS_TOO_LARGE"
    case credentialMismatch = "CREDENTIAL_MISMATCH"
    case credentialTooOld = "CREDENTIAL_TOO_OLD_LOGIN_AGAIN"
    case duplicateEmail = "DUPLICATE_EMAIL"
    case duplicateLocalID = "DUPLICATE_LOCAL_ID"
    case duplicateRawID = "DUPLICATE_RAW_ID"
    case emailExists = "EMAIL_EXISTS"
    case emailNotFound = "EMAIL_NOT_FOUND"
    case expiredOobCode = "EXPIRED_OOB_CODE"
    case federatedUserIDAlreadyLinked = "FEDERATED_USER_ID_ALREADY_LINKED"
    case forbiddenClaim = "FORBIDDEN_CLAIM"
    case insufficientPermission = "INSUFFICIENT_PERMISSION"
    case internalError = "INTERNAL_ERROR"
    case invalidArgument = "INVALID_ARGUMENT"
    case invalidClaims = "INVALID_CLAIMS"
    case invalidCode = "INVALID_CODE"
    case invalidContinueURI = "INVALID_CONTINUE_URI"
    case invalidCustomToken = "INVALID_CUSTOM_TOKEN"
    case invalidDuration = "INVALID_DURATION"
    case invalidEmail = "INVALID_EMAIL"
    case invalidGrantType = "INVALID_GRANT_TYPE"
    case invalidHashAlgorithm = "INVALID_HASH_ALGORITHM"
    case invalidHashParameter = "INVALID_HASH_PARAMETERS"
    case invalidIDToken = "INVALID_ID_TOKEN"
    case invalidIdentifier = "INVALID_IDENTIFIER"
    case invalidIdpResponse = "INVALID_IDP_RESPONSE"
    case invalidCredentialOrProvider = "INVALID_CREDENTIAL_OR_PROVIDER_ID"
    case invalidLoginCredentials = "INVALID_LOGIN_CREDENTIALS"
    case invalidLocalID = "INVALID_LOCAL_ID"
    case invalidOobCode = "INVALID_OOB_CODE"
    case invalidPageSelection = "INVALID_PAGE_SELECTION"
    case invalidPassword = "INVALID_PASSWORD"
    case invalidPhoneNumber = "INVALID_PHONE_NUMBER"
    case invalidProviderID = "INVALID_PROVIDER_ID"
    case invalidRefreshToken = "INVALID_REFRESH_TOKEN"
    case invalidReqType = "INVALID_REQ_TYPE"
    case invalidSessionInfo = "INVALID_SESSION_INFO"
    case localIDListExceedsLimit = "LOCAL_ID_LIST_EXCEEDS_LIMIT"
    case missingContinueURI = "MISSING_CONTINUE_URI"
    case missingCustomToken = "MISSING_CUSTOM_TOKEN"
    case missingEmail = "MISSING_EMAIL"
    case missingGrantType = "MISSING_GRANT_TYPE"
    case missingHashAlgorithm = "MISSING_HASH_ALGORITHM"
    case missingIDToken = "MISSING_ID_TOKEN"
    case missingIdentifier = "MISSING_IDENTIFIER"
    case missingLocalID = "MISSING_LOCAL_ID"
    case missingNewEmail = "MISSING_NEW_EMAIL"
    case missingOobCode = "MISSING_OOB_CODE"
    case missingPassword = "MISSING_PASSWORD"
    case missingRefreshToken = "MISSING_REFRESH_TOKEN"
    case missingReqType = "MISSING_REQ_TYPE"
    case missingRequestURI = "MISSING_REQUEST_URI"
    case missingUserAccount = "MISSING_USER_ACCOUNT"
    case notDisabled = "NOT_DISABLED"
    case notFound = "NOT_FOUND"
    case notImplemented = "NOT_IMPLEMENTED"
    case operationNotAllowed = "OPERATION_NOT_ALLOWED"
    case passwordLoginDisabled = "PASSWORD_LOGIN_DISABLED"
    case permissionDenied = "PERMISSION_DENIED"
    case phoneNumberExists = "PHONE_NUMBER_EXISTS"
    case quotaExceeded = "QUOTA_EXCEEDED"
    case resetPasswordExceedLimit = "RESET_PASSWORD_EXCEED_LIMIT"
    case sessionExpired = "SESSION_EXPIRED"
    case tokenExpired = "TOKEN_EXPIRED"
    case tooManyAttempts = "TOO_MANY_ATTEMPTS_TRY_LATER"
    case unauthenticated = "UNAUTHENTICATED"
    case unauthorizedDomain = "UNAUTHORIZED_DOMAIN"
    case unexpectedParameter = "UNEXPECTED_PARAMETER"
    case unsupportedTenantOperation = "UNSUPPORTED_TENANT_OPERATION"
    case userDisabled = "USER_DISABLED"
    case userNotFound = "USER_NOT_FOUND"
    case weakPassword = "WEAK_PASSWORD"
  }

  package var code: Code
  /// The text that follows the code and ` : ` in the message.
  package var detail: String?

  package init(_ code: Code, _ detail: String? = nil) {
    self.code = code
    self.detail = detail
  }

  /// The text on the wire. Clients split it at the first ` : `.
  package var message: String { detail.map { "\(code.rawValue) : \($0)" } ?? code.rawValue }
}
