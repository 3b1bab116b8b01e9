package import DatabaseService
import Transport
import WireFormat

/// Tells who holds a token.
package protocol TokenVerifier: Sendable {
  /// The caller that a bearer token stands for. Called for every request, on any thread.
  /// - Throws: ``Status`` where the token is none of this verifier's, or is not valid.
  func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller
}

/// Tells who makes a request, by its `authorization` header: REST and gRPC carry it alike, channels in a form.
struct Authenticator: Sendable {
  /// What verifies tokens; `nil` where nobody can be signed in.
  let verifier: (any TokenVerifier)?

  /// The caller; one who is not signed in where the request names nobody. `token` counts where there is no header.
  /// - Throws: `UNAUTHENTICATED` for credentials of another kind, or where nothing verifies tokens; and what the
  ///   verifier throws.
  func caller(of request: borrowing HTTPRequest, token: String? = nil) throws(Status) -> Caller {
    if let header = request.header("authorization"), !header.isEmpty { return try caller(authorization: header) }
    guard let token, !token.isEmpty else { return .user(nil) }
    return try Array(token.utf8).withRawBytes { (token) throws(Status) in try caller(bearing: token) }
  }

  /// The caller by the value of that header, wherever it stands; one who is not signed in where it is empty.
  /// - Throws: as above.
  func caller(authorization header: UnsafeRawBufferPointer) throws(Status) -> Caller {
    guard !header.isEmpty else { return .user(nil) }
    guard let token = Self.bearerToken(header) else {
      throw Status(.unauthenticated, "The authorization header must read: Bearer TOKEN.")
    }
    return try caller(bearing: token)
  }

  private func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
    guard let verifier else {
      throw Status(
        .unauthenticated, "Request had invalid authentication credentials: nothing here verifies tokens.")
    }
    return try verifier.caller(bearing: token)
  }

  /// Whether a header names a bearer token; other schemes are none of ours.
  static func isBearer(_ header: UnsafeRawBufferPointer) -> Bool { bearerToken(header) != nil }

  /// The token of a header that names it as one of a bearer, or as the clients of Storage do, as one of Firebase.
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
