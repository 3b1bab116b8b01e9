package import Accounts
package import Basics
package import Callers
package import DatabaseService
package import DocumentModel
package import Transport
import WireFormat

/// A verifier of bearer tokens.
package protocol TokenVerifier: Sendable {
  /// Returns the caller that a bearer token identifies. Called for every request, on any thread.
  ///
  /// - Throws: ``Status`` if this verifier does not know the token, or the token is not valid.
  func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller
}

/// Determines the caller of a request by its `authorization` header. REST and gRPC send it as a header field,
/// channels in a form.
package struct Authenticator: Sendable {
  /// The verifier of tokens, or `nil` if the server does not accept tokens.
  private let verifier: (any TokenVerifier)?
  private let mode: ServerMode
  /// The caller that every client is, or `nil` if clients have to identify themselves.
  private let everyone: Caller?

  /// The host on which the operator lets the server listen, an address or a name, or `nil` if it is unknown.
  package let hostName: String?
  /// The limits of callers, or `nil` if nothing is limited.
  package let limiter: RateLimiter?
  /// The quota of the project's requests, or `nil` if none applies.
  package let requestQuota: RequestQuota?

  /// Whether the server is an emulator, which test suites control without credentials.
  package var isForEmulator: Bool { mode.admitsCallersWithoutRules }

  /// Creates an authenticator for a server that listens on a host.
  package init(
    verifier: (any TokenVerifier)?, mode: ServerMode, hostName: String? = nil, limiter: RateLimiter? = nil,
    requestQuota: RequestQuota? = nil
  ) {
    self.verifier = verifier
    self.limiter = limiter
    self.requestQuota = requestQuota
    self.mode = mode
    self.hostName = hostName
    everyone = nil
  }

  /// Creates an authenticator for an address that only trusted clients reach: each of them is the given caller.
  package init(everyoneIs caller: Caller, mode: ServerMode) {
    verifier = nil
    self.mode = mode
    hostName = nil
    limiter = nil
    requestQuota = nil
    everyone = caller
  }

  /// Returns the caller of a request. `token` is used if the header is missing. Without credentials, the caller is an
  /// administrator if the request came over the admin socket, and otherwise unauthenticated.
  ///
  /// - Throws: `UNAUTHENTICATED` if the credentials have another scheme or the server accepts no tokens, and the
  ///   errors of the verifier.
  package func caller(of request: borrowing HTTPRequest, token: String? = nil) throws(Status) -> Caller {
    if let everyone { return everyone }
    if let header = request.header("authorization"), !header.isEmpty { return try caller(authorization: header) }
    guard let token, !token.isEmpty else { return request.isFromAdminSocket ? .admin : .user(nil) }
    return try Array(token.utf8).withRawBytes { (token) throws(Status) in try caller(bearing: token) }
  }

  /// Returns the caller of a request to an API that only service accounts use. It is an administrator if the request
  /// contains no credentials and the server trusts such requests to this API.
  ///
  /// - Throws: the same errors as ``caller(of:token:)``.
  package func serviceAccount(of request: borrowing HTTPRequest) throws(Status) -> Caller {
    if mode.trustsMissingCredentials, request.header("authorization") == nil { return .admin }
    return try caller(of: request)
  }

  /// Returns the caller of a request that a service key has signed: an administrator until the key is revoked.
  package func caller(signedBy signature: ServiceKeySignature) -> Caller {
    .administrator(revocationCheck: SignatureRevocationCheck(signature: signature))
  }

  /// Returns the caller by the value of the header: an unauthenticated one if it is empty.
  ///
  /// - Throws: the same errors as ``caller(of:token:)``.
  package func caller(authorization header: UnsafeRawBufferPointer) throws(Status) -> Caller {
    guard !header.isEmpty else { return .user(nil) }
    guard let token = Self.bearerToken(header) else {
      throw Status(.unauthenticated, "The authorization header must have the form: Bearer TOKEN.")
    }
    return try caller(bearing: token)
  }

  private func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
    guard let verifier else {
      throw Status(
        .unauthenticated, "Request had invalid authentication credentials: this server does not accept tokens.")
    }
    return try verifier.caller(bearing: token)
  }

  /// Whether a header contains a bearer token rather than credentials of another scheme.
  package static func isBearer(_ header: UnsafeRawBufferPointer) -> Bool { bearerToken(header) != nil }

  /// The bearer token of a request, or `nil` if it has none.
  package static func bearerToken(of request: borrowing HTTPRequest) -> UnsafeRawBufferPointer? {
    request.header("authorization").flatMap(bearerToken)
  }

  /// The token in a header with the scheme `Bearer`, or with `Firebase`, which Storage clients use.
  private static func bearerToken(_ header: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    token(header, "bearer ") ?? token(header, "firebase ")
  }

  private static func token(_ header: UnsafeRawBufferPointer, _ scheme: StaticString) -> UnsafeRawBufferPointer? {
    let count = scheme.utf8CodeUnitCount
    guard header.count > count else { return nil }
    for index in 0..<count where header[index] | 0x20 != scheme.utf8Start[index] { return nil }
    let token = header[count...].drop { $0 == UInt8(ascii: " ") }
    return token.isEmpty ? nil : UnsafeRawBufferPointer(rebasing: token)
  }
}
