import Basics
import Digests
import DocumentModel
import WireFormat

/// The credentials of an account of an S3-compatible store.
struct S3Credentials: Sendable, Equatable {
  var accessKeyID: String
  var secretAccessKey: String
  /// The token of temporary credentials.
  var sessionToken: String?

  /// Reads the section of a profile from the text of a credentials file, as the tools of AWS write it. Returns `nil` if
  /// the section lacks a key.
  init?(file text: String, profile: String) {
    var values: [Substring: Substring] = [:]
    var isInSection = false
    for line in text.split(whereSeparator: \.isNewline) {
      let line = line.trimming(while: \.isWhitespace)
      if line.hasPrefix("[") {
        isInSection = line == "[\(profile)]"
      } else if isInSection, let equals = line.firstIndex(of: "="), !line.hasPrefix("#") {
        let name = line[..<equals].trimming(while: \.isWhitespace)
        values[name] = line[line.index(after: equals)...].trimming(while: \.isWhitespace)
      }
    }
    guard let id = values["aws_access_key_id"], let secret = values["aws_secret_access_key"] else { return nil }
    self.init(id: String(id), secret: String(secret), token: values["aws_session_token"].map { String($0) })
  }

  init(id: String, secret: String, token: String?) {
    (accessKeyID, secretAccessKey, sessionToken) = (id, secret, token)
  }
}

extension Substring {
  fileprivate func trimming(while isTrimmed: (Character) -> Bool) -> Substring {
    var text = drop(while: isTrimmed)
    while let last = text.last, isTrimmed(last) { text.removeLast() }
    return text
  }
}

/// A request to an S3-compatible store, which Signature Version 4 of AWS signs: an HMAC-SHA256 over the method, the
/// target, some header fields, and the digest of the body.
struct S3Signature {
  let credentials: S3Credentials
  /// The region of the store, such as `eu-central-1`.
  let region: String
  private static let service = "s3"

  /// Returns the header fields that sign a request, without the field `Host`.
  ///
  /// `path` has escaped segments. `query` has unescaped names and values. `time` is that of the request; a store accepts
  /// a difference of 15 minutes. Returns `nil` if libcrypto fails.
  func headers(
    _ method: String, host: String, path: String, query: [(name: String, value: String)], body: [UInt8],
    at time: Timestamp
  ) -> [(name: String, value: String)]? {
    guard let bodyDigest = Self.digest(body) else { return nil }
    let moment = Self.basic(time)
    var fields = [
      (name: "host", value: host), (name: "x-amz-content-sha256", value: bodyDigest),
      (name: "x-amz-date", value: moment),
    ]
    if let token = credentials.sessionToken { fields.append((name: "x-amz-security-token", value: token)) }
    let names = fields.map(\.name).joined(separator: ";")
    let canonical =
      "\(method)\n\(path)\n\(Self.canonical(query))\n"
      + fields.map { "\($0.name):\($0.value)\n" }.joined() + "\n\(names)\n\(bodyDigest)"
    let day = String(moment.prefix(8))
    let scope = "\(day)/\(region)/\(Self.service)/aws4_request"
    guard let requestDigest = Self.digest(Array(canonical.utf8)) else { return nil }
    let text = "AWS4-HMAC-SHA256\n\(moment)\n\(scope)\n\(requestDigest)"
    var code: [UInt8]? = Array("AWS4\(credentials.secretAccessKey)".utf8)
    for part in [day, region, Self.service, "aws4_request", text] {
      code = code.flatMap { MessageAuthentication.sha256(Array(part.utf8), key: $0) }
    }
    guard let code else { return nil }
    let credential = "\(credentials.accessKeyID)/\(scope)"
    let authorization =
      "AWS4-HMAC-SHA256 Credential=\(credential), SignedHeaders=\(names), Signature=\(Hexadecimal.text(code))"
    return fields.dropFirst() + [(name: "Authorization", value: authorization)]
  }

  /// Returns the query of a request as it is signed and sent: sorted and escaped.
  static func canonical(_ query: [(name: String, value: String)]) -> String {
    var pairs: [(name: String, value: String)] = []
    for (name, value) in query {
      pairs.append((name: ServerClient.encode(name.utf8), value: ServerClient.encode(value.utf8)))
    }
    pairs.sort { $0.name == $1.name ? $0.value < $1.value : $0.name < $1.name }
    return pairs.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
  }

  /// Returns a time in the basic form of ISO 8601, such as `20261122T151502Z`.
  private static func basic(_ time: Timestamp) -> String {
    String(time.description.prefix(19).filter { $0 != "-" && $0 != ":" }) + "Z"
  }

  private static func digest(_ bytes: [UInt8]) -> String? {
    bytes.withUnsafeBytes { MessageDigest.compute(.sha256, $0) }.map { Hexadecimal.text($0) }
  }
}
