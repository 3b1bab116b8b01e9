package import DocumentModel
import WireFormat

/// A parsed JSON Web Token whose signature has not been verified (RFC 7515, RFC 7519).
package struct JSONWebToken: Sendable {
  /// The longest accepted token, in bytes. Request headers have a similar limit.
  package static let bytesMax = 16 << 10

  /// The signature algorithm: `RS256`, `ES256` or `none`.
  package let algorithm: String
  /// The ID of the signing key, if the token names one.
  package let keyID: String?
  package let claims: MapValue
  /// The length of the signed text: the first two parts and the dot between them.
  private let signedCount: Int
  private let signature: [UInt8]
  private let text: [UInt8]

  /// Parses a token.
  /// - Throws: ``TokenError/malformed`` if the text is not a JSON Web Token.
  package init(_ text: UnsafeRawBufferPointer) throws(TokenError) {
    guard text.count <= Self.bytesMax else { throw .malformed }
    let dot = UInt8(ascii: ".")
    guard let first = text.firstIndex(of: dot), let second = text[(first + 1)...].firstIndex(of: dot),
      !text[(second + 1)...].contains(dot),
      let header = Self.object(UnsafeRawBufferPointer(rebasing: text[..<first])),
      let claims = Self.object(UnsafeRawBufferPointer(rebasing: text[(first + 1)..<second])),
      let signature = Base64URL.decode(UnsafeRawBufferPointer(rebasing: text[(second + 1)...])),
      let algorithm = header.text("alg")
    else { throw .malformed }
    // These extensions must be understood (RFC 7515, section 4.1.11), and the server supports none.
    guard header["crit"] == nil else { throw .malformed }
    self.algorithm = algorithm
    keyID = header.text("kid")
    self.claims = claims
    self.signature = signature
    signedCount = second
    self.text = Array(text)
  }

  /// Parses a token.
  /// - Throws: ``TokenError/malformed`` if the text is not a JSON Web Token.
  package init(_ text: [UInt8]) throws(TokenError) {
    let outcome = text.withUnsafeBytes { bytes in Result { () throws(TokenError) in try JSONWebToken(bytes) } }
    self = try outcome.get()
  }

  private static func object(_ part: UnsafeRawBufferPointer) -> MapValue? {
    Base64URL.decode(part).flatMap { MapValue(json: $0) }
  }

  /// Whether the token is unsigned. Any client can make one.
  package var isUnsigned: Bool { algorithm.utf8.elementsEqual("none".utf8) }

  /// Checks that the token is signed with RS256 by `key`.
  /// - Throws: ``TokenError/unsigned`` or ``TokenError/algorithm`` if it is not signed with RS256;
  ///   ``TokenError/badSignature`` if the signature does not match.
  package func verify(with key: RSAKey) throws(TokenError) {
    guard !isUnsigned else { throw .unsigned }
    guard algorithm.utf8.elementsEqual("RS256".utf8) else { throw .algorithm }
    let isSigned = text.withUnsafeBytes { text in
      key.verifies(signature, over: UnsafeRawBufferPointer(rebasing: text[..<signedCount]))
    }
    guard isSigned else { throw .badSignature }
  }

  /// Checks that the token is signed with ES256 by `key`.
  /// - Throws: ``TokenError/unsigned`` or ``TokenError/algorithm`` if it is not signed with ES256;
  ///   ``TokenError/badSignature`` if the signature does not match.
  package func verify(with key: EllipticKey) throws(TokenError) {
    guard !isUnsigned else { throw .unsigned }
    guard algorithm.utf8.elementsEqual("ES256".utf8) else { throw .algorithm }
    let isSigned = text.withUnsafeBytes { text in
      key.verifies(signature, over: UnsafeRawBufferPointer(rebasing: text[..<signedCount]))
    }
    guard isSigned else { throw .badSignature }
  }

  /// Returns a token signed by `key`.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if `key` is a public key or libcrypto fails.
  package static func signed(_ claims: MapValue, by key: RSAKey, id: String) throws(TokenError) -> String {
    try signed(claims, "RS256", id) { key.sign($0) }
  }

  /// Returns a token signed by `key` with ES256.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if `key` is a public key or libcrypto fails.
  package static func signed(_ claims: MapValue, by key: EllipticKey, id: String) throws(TokenError) -> String {
    try signed(claims, "ES256", id) { key.sign($0) }
  }

  private static func signed(
    _ claims: MapValue, _ algorithm: String, _ id: String, _ sign: (UnsafeRawBufferPointer) -> [UInt8]?
  ) throws(TokenError) -> String {
    let header = MapValue([("alg", .string(algorithm)), ("kid", .string(id)), ("typ", .string("JWT"))])
    var text = unsignedText(header, claims)
    guard let signature = text.withUnsafeBytes({ sign($0) }) else {
      throw .keyUnusable("the key \(id) cannot sign")
    }
    text.append(UInt8(ascii: "."))
    signature.withUnsafeBytes { Base64URL.append($0, to: &text) }
    return String(decoding: text, as: UTF8.self)
  }

  /// Returns an unsigned token, as emulators issue them.
  package static func unsigned(_ claims: MapValue) -> String {
    let text = unsignedText(MapValue([("alg", .string("none")), ("typ", .string("JWT"))]), claims)
    return String(decoding: text + [UInt8(ascii: ".")], as: UTF8.self)
  }

  private static func unsignedText(_ header: MapValue, _ claims: MapValue) -> [UInt8] {
    Base64URL.encode(header.json) + [UInt8(ascii: ".")] + Base64URL.encode(claims.json)
  }
}
