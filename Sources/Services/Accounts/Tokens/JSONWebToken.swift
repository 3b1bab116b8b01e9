package import DocumentModel

/// A JSON Web Token taken apart, its signature not yet looked at (RFC 7515, RFC 7519).
package struct JSONWebToken: Sendable {
  /// The longest token, in bytes; headers of requests end near there too.
  package static let bytesMax = 16 << 10

  /// How it is signed: `RS256`, `none`.
  package let algorithm: String
  /// Which key signed it, if it says so.
  package let keyID: String?
  /// What it claims.
  package let claims: MapValue
  /// What is signed: the first two parts and the dot between them, as they stand in the text.
  private let signedCount: Int
  private let signature: [UInt8]
  private let text: [UInt8]

  /// Takes a text apart.
  /// - Throws: ``TokenError/malformed`` for what is no token.
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
    // Extensions that must be understood (RFC 7515, section 4.1.11): none is.
    guard header["crit"] == nil else { throw .malformed }
    self.algorithm = algorithm
    keyID = header.text("kid")
    self.claims = claims
    self.signature = signature
    signedCount = second
    self.text = Array(text)
  }

  /// Takes a text apart.
  /// - Throws: ``TokenError/malformed`` for what is no token.
  package init(_ text: [UInt8]) throws(TokenError) {
    let outcome = text.withUnsafeBytes { bytes in Result { () throws(TokenError) in try JSONWebToken(bytes) } }
    self = try outcome.get()
  }

  private static func object(_ part: UnsafeRawBufferPointer) -> MapValue? {
    Base64URL.decode(part).flatMap { MapValue(json: $0) }
  }

  /// Whether it is an unsigned token, which anybody can make.
  package var isUnsigned: Bool { algorithm.utf8.elementsEqual("none".utf8) }

  /// Checks that the text is signed with RS256 by a key.
  /// - Throws: ``TokenError/unsigned``, ``TokenError/algorithm``, ``TokenError/badSignature``.
  package func verify(with key: RSAKey) throws(TokenError) {
    guard !isUnsigned else { throw .unsigned }
    guard algorithm.utf8.elementsEqual("RS256".utf8) else { throw .algorithm }
    let isSigned = text.withUnsafeBytes { text in
      key.verifies(signature, over: UnsafeRawBufferPointer(rebasing: text[..<signedCount]))
    }
    guard isSigned else { throw .badSignature }
  }

  /// The text of a token that a key signs.
  /// - Throws: ``TokenError/keyUnusable(_:)``.
  package static func signed(_ claims: MapValue, by key: RSAKey, id: String) throws(TokenError) -> String {
    let header = MapValue([("alg", .string("RS256")), ("kid", .string(id)), ("typ", .string("JWT"))])
    var text = unsignedText(header, claims)
    guard let signature = text.withUnsafeBytes({ key.sign($0) }) else {
      throw .keyUnusable("the key \(id) cannot sign")
    }
    text.append(UInt8(ascii: "."))
    signature.withUnsafeBytes { Base64URL.append($0, to: &text) }
    return String(decoding: text, as: UTF8.self)
  }

  /// The text of a token that nobody signs, as emulators make them.
  package static func unsigned(_ claims: MapValue) -> String {
    let text = unsignedText(MapValue([("alg", .string("none")), ("typ", .string("JWT"))]), claims)
    return String(decoding: text + [UInt8(ascii: ".")], as: UTF8.self)
  }

  private static func unsignedText(_ header: MapValue, _ claims: MapValue) -> [UInt8] {
    Base64URL.encode(header.json) + [UInt8(ascii: ".")] + Base64URL.encode(claims.json)
  }
}
