import HearthServer
import Accounts
import Foundation
import Testing
import WireFormat

/// A program with a service key of a server, which signs URLs.
struct URLSigner {
  let email: String
  let key: RSAKey

  init(email: String, key: RSAKey) {
    self.email = email
    self.key = key
  }

  /// A program with a key of its own, which no server knows.
  init(strangerNamed email: String) throws {
    self.init(email: email, key: try #require(RSAKey.make()))
  }

  init(_ server: TestServer, name: String = "signer") throws {
    let admin = server.server.accounts.serviceKeys.localAccessToken()
    let made = try server.call(
      "POST", "/hearth/v1/keys", #"{"name": "\#(name)", "url": "http://localhost"}"#,
      headers: [("Authorization", "Bearer \(admin)")])
    email = try #require(made.json("client_email"), "\(made.text)")
    let text: String = try #require(made.json("private_key"))
    key = try #require(RSAKey(privatePEM: text))
  }

  private func sign(_ text: String) throws -> [UInt8] {
    try #require(Array(text.utf8).withUnsafeBytes { key.sign($0) })
  }

  private func encoded(_ text: String) -> String {
    text.addingPercentEncoding(withAllowedCharacters: .alphanumerics.union(CharacterSet(charactersIn: "-._~"))) ?? ""
  }

  /// A target of version 4 that was signed at a time.
  func v4(
    _ method: String, _ path: String, at moment: Date = Date(), seconds: Int = 600, secondsText: String? = nil,
    _ headers: [(String, String)] = [], _ parameters: [(String, String)] = []
  ) throws -> String {
    let form = DateFormatter()
    form.locale = Locale(identifier: "en_US_POSIX")
    form.timeZone = TimeZone(identifier: "UTC")
    form.dateFormat = "yyyyMMdd'T'HHmmss'Z'"
    let date = form.string(from: moment)
    let scope = "\(date.prefix(8))/auto/storage/goog4_request"
    let headers = (headers + [("host", "localhost")]).map { ($0.lowercased(), $1) }.sorted { $0.0 < $1.0 }
    let names = headers.map(\.0).joined(separator: ";")
    let query =
      (parameters + [
        ("X-Goog-Algorithm", "GOOG4-RSA-SHA256"), ("X-Goog-Credential", "\(email)/\(scope)"), ("X-Goog-Date", date),
        ("X-Goog-Expires", secondsText ?? String(seconds)), ("X-Goog-SignedHeaders", names),
      ]).map { (encoded($0), encoded($1)) }.sorted { $0 < $1 }.map { "\($0)=\($1)" }.joined(separator: "&")
    let request =
      "\(method)\n\(path)\n\(query)\n" + headers.map { "\($0):\($1)\n" }.joined() + "\n\(names)\nUNSIGNED-PAYLOAD"
    let digest = RandomBytes.sha256(request.utf8).map { String(format: "%02x", $0) }.joined()
    let signature = try sign("GOOG4-RSA-SHA256\n\(date)\n\(scope)\n\(digest)")
    return "\(path)?\(query)&X-Goog-Signature=" + signature.map { String(format: "%02x", $0) }.joined()
  }

  /// A target of version 2 that is valid until a time.
  func v2(
    _ method: String, _ path: String, type: String = "", _ headers: [(String, String)] = [], until moment: Date
  ) throws -> String {
    try v2(method, path, type: type, headers, expires: String(Int(moment.timeIntervalSince1970)))
  }

  func v2(
    _ method: String, _ path: String, type: String = "", _ headers: [(String, String)] = [], expires: String
  ) throws -> String {
    let lines = headers.map { "\($0):\($1)\n" }.joined()
    let signature = try sign("\(method)\n\n\(type)\n\(expires)\n\(lines)\(path)")
    let query = "Expires=\(encoded(expires))&GoogleAccessId=\(encoded(email))"
    return "\(path)?\(query)&Signature=\(encoded(Base64.encode(signature)))"
  }
}
