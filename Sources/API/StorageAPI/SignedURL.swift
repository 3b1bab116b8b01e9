import Accounts
import Basics
import DocumentModel
import Files
import GatewayCore
import Transport
import WireFormat

/// A URL signed with a service key. Its holder may make the one request that it describes, until it expires.
///
/// Implements Google's signing processes, versions 2 and 4, with the service keys of this server. The path and the
/// parameters are compared as the client sent them, not decoded.
struct SignedURL {
  /// The longest validity of a URL in version 4.
  private static let secondsMax: Int64 = 7 * 86400
  /// The tolerance for a signer's clock that is fast.
  private static let skewSeconds: Int64 = 900

  private let path: String
  /// The parameters as received, not decoded.
  private let query: [String]
  private let parameters: QueryParameters
  private let method: String
  private let fields: [(name: String, value: String)]
  private let host: String

  /// Whether a query contains a signature.
  static func isSigned(_ query: UnsafeRawBufferPointer) -> Bool {
    query.split(separator: UInt8(ascii: "&")).contains { part in
      let part = UnsafeRawBufferPointer(rebasing: part)
      return part.dropping("X-Goog-Signature=") != nil || part.dropping("GoogleAccessId=") != nil
    }
  }

  /// Reads the signed parts of a request. `host` is the host name that the client used.
  init(
    _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ parameters: QueryParameters,
    _ request: borrowing HTTPRequest, host: String
  ) {
    self.path = String(decoding: path, as: UTF8.self)
    self.query = query.split(separator: UInt8(ascii: "&")).map { String(decoding: $0, as: UTF8.self) }
    self.parameters = parameters
    self.host = host
    // A URL signed for GET also allows HEAD.
    method =
      switch request.method {
      case .get, .head: "GET"
      case .post: "POST"
      case .put: "PUT"
      case .delete: "DELETE"
      case .patch, .options, .other: ""
      }
    var fields: [(name: String, value: String)] = []
    for index in 0..<request.headerCount {
      let field = request.header(at: index)
      let words = String(decoding: field.value, as: UTF8.self).split { $0 == " " || $0 == "\t" }
      fields.append((String(decoding: field.name, as: UTF8.self).lowercased(), words.joined(separator: " ")))
    }
    self.fields = fields
  }

  /// Verifies that a current key signed the request and that the signature is still valid.
  ///
  /// - Parameter acceptsUnknownSigners: whether a URL is valid too if its signer is a service account without a key of
  ///   this server, as in the official emulator. Then the result is `nil`, because no signature was verified.
  /// - Throws: ``FilesError/denied(_:)`` if no key signed the request, or the URL is not valid yet;
  ///   ``FilesError/invalid(_:)`` if the signature is malformed or expired.
  func check(
    _ keys: ServiceKeys, nowSeconds: Int64, acceptsUnknownSigners: Bool
  ) throws(FilesError) -> ServiceKeySignature? {
    let (email, text, signature) =
      Self.isVersion4(parameters) ? try signedVersion4(nowSeconds) : try signedVersion2(nowSeconds)
    if let proof = keys.verify(signature, over: Array(text.utf8), by: email) { return proof }
    guard acceptsUnknownSigners, !keys.hasKey(of: email) else {
      throw .denied("The signature does not match this request, or its key is unknown or revoked.")
    }
    return nil
  }

  /// The email address of the signer, the text that it signed, and the signature.
  private typealias Signed = (email: String, text: String, signature: [UInt8])

  /// Returns the value of a parameter of the signature.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the URL does not have the parameter exactly once.
  private func only(_ name: StaticString) throws(FilesError) -> String {
    let values = parameters.values(name)
    guard values.count == 1 else { throw .invalid("A signed URL must have the parameter \(name) exactly once.") }
    return values[0]
  }

  /// Parses a number of seconds: decimal digits without a sign and without leading zeros. Returns `nil` for any other
  /// text.
  private static func number(_ text: String) -> Int64? {
    guard let number = Int64(text), number >= 0, String(number).utf8.elementsEqual(text.utf8) else { return nil }
    return number
  }

  /// The parameters that the server may use. Version 4 signs all of them. Version 2 signs none, so any holder of
  /// the URL may have added some; the client libraries add only those that name the downloaded file and its type,
  /// unsigned.
  static func trusted(_ parameters: QueryParameters) -> QueryParameters {
    isVersion4(parameters) ? parameters : parameters.only("response-content-type", "response-content-disposition")
  }

  private static func isVersion4(_ parameters: QueryParameters) -> Bool { parameters.value("X-Goog-Signature") != nil }

  // MARK: - Version 4

  private func signedVersion4(_ nowSeconds: Int64) throws(FilesError) -> Signed {
    guard try only("X-Goog-Algorithm") == "GOOG4-RSA-SHA256" else {
      throw .invalid("X-Goog-Algorithm of a signed URL must be GOOG4-RSA-SHA256.")
    }
    let date = try only("X-Goog-Date")
    let credential = try only("X-Goog-Credential").split(separator: "/", maxSplits: 1)
    guard credential.count == 2, let signed = Self.seconds(date), let expires = Self.number(try only("X-Goog-Expires")),
      (1...Self.secondsMax).contains(expires)
    else {
      throw .invalid("The signed URL's X-Goog-Credential, X-Goog-Date or X-Goog-Expires is missing or malformed.")
    }
    guard signed <= nowSeconds + Self.skewSeconds else { throw .denied("The signed URL is not valid yet.") }
    guard nowSeconds < signed + expires else { throw Self.expired }
    let names = try only("X-Goog-SignedHeaders").split(separator: ";").map(String.init)
    guard names.contains("host") else { throw .invalid("X-Goog-SignedHeaders of a signed URL must name host.") }
    // Google requires it since 2020. Otherwise the holder of the URL could add headers with the signer's rights.
    if let unsigned = fields.first(where: { $0.name.hasPrefix("x-goog-") && !names.contains($0.name) })?.name {
      throw .denied("The header \(unsigned) is not among the signed URL's X-Goog-SignedHeaders.")
    }
    let heads = names.map { "\($0):\($0 == "host" ? host : value($0) ?? "")\n" }.joined()
    let query = query.filter { !$0.hasPrefix("X-Goog-Signature=") }.map { part in
      let name = part.prefix { $0 != "=" }
      return (name: name, value: part.dropFirst(name.utf8.count))
    }.sorted {
      if $0.name != $1.name { return $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
      return $0.value.utf8.lexicographicallyPrecedes($1.value.utf8)
    }.map { "\($0.name)\($0.value)" }
    let request = [
      method, path, query.joined(separator: "&"), heads, names.joined(separator: ";"),
      value("x-goog-content-sha256") ?? "UNSIGNED-PAYLOAD",
    ].joined(separator: "\n")
    let digest = Hexadecimal.text(RandomBytes.sha256(request.utf8))
    let text = "GOOG4-RSA-SHA256\n\(date)\n\(credential[1])\n\(digest)"
    let signature = Hexadecimal.bytes(try only("X-Goog-Signature").lowercased()) ?? []
    return (String(credential[0]), text, signature)
  }

  /// Parses a time such as `20261121T130500Z`. Returns seconds since 1970, or `nil` if it is malformed.
  private static func seconds(_ date: String) -> Int64? {
    let digits = Array(date.utf8)
    guard digits.count == 16, digits[8] == UInt8(ascii: "T"), digits[15] == UInt8(ascii: "Z") else { return nil }
    func part(_ range: Range<Int>) -> String { String(decoding: digits[range], as: UTF8.self) }
    let text = "\(part(0..<4))-\(part(4..<6))-\(part(6..<8))T\(part(9..<11)):\(part(11..<13)):\(part(13..<15))Z"
    return Timestamp(rfc3339: text.utf8)?.seconds
  }

  // MARK: - Version 2

  private func signedVersion2(_ nowSeconds: Int64) throws(FilesError) -> Signed {
    let email = try only("GoogleAccessId")
    let signature = try only("Signature")
    guard let expires = Self.number(try only("Expires")) else {
      throw .invalid("Expires of a signed URL must be a number of seconds since 1970.")
    }
    guard nowSeconds < expires else { throw Self.expired }
    let heads = Set(fields.lazy.map(\.name).filter { $0.hasPrefix("x-goog-") }).sorted {
      $0.utf8.lexicographicallyPrecedes($1.utf8)
    }
    let text =
      "\(method)\n\(value("content-md5") ?? "")\n\(value("content-type") ?? "")\n\(expires)\n"
      + heads.map { "\($0):\(value($0) ?? "")\n" }.joined() + path
    return (email, text, Base64.decode(signature) ?? [])
  }

  // MARK: - Both

  private static let expired = FilesError.invalid("The signed URL has expired.")

  /// The values of a header, with commas between them, or `nil` if the request does not have it.
  private func value(_ name: String) -> String? {
    let values = fields.lazy.filter { $0.name == name }.map(\.value)
    return values.isEmpty ? nil : values.joined(separator: ",")
  }
}
