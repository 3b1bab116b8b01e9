import Accounts
import DocumentModel
import HearthServer
import WireFormat

/// A credentials file of a program: the JSON file of a service account, which `hearth keys create` and Google write, or
/// the file of a person that `gcloud auth application-default login` writes.
struct AccountKey: Sendable {
  /// The proof that the file contains.
  private enum Proof: Sendable {
    /// The private key of a service account, which signs assertions (RFC 7523).
    case key(RSAKey, id: String, email: String)
    /// A refresh token of a person (RFC 6749, section 6).
    case refreshToken(String, clientID: String, clientSecret: String)
  }

  /// The path of the file, for messages.
  let path: String
  /// The project of the key, if the file names one.
  let project: String?
  /// The URL of the token endpoint.
  let tokenURL: String
  private let proof: Proof

  /// The token endpoint of Google, if the file names none.
  private static let googleTokenURL = "https://oauth2.googleapis.com/token"
  /// The scopes of the tokens. Google requires them, and Hearth ignores them.
  private static let scopes = [
    "https://www.googleapis.com/auth/cloud-platform", "https://www.googleapis.com/auth/firebase",
    "https://www.googleapis.com/auth/identitytoolkit",
  ]
  /// The lifetime of an assertion, in seconds: the longest that Google and Hearth accept.
  private static let assertionSeconds: Int64 = 3600

  /// Reads a file.
  /// - Throws: ``CommandFailure`` if the file cannot be read or is not a credentials file of a known type.
  init(_ path: String) throws {
    self.path = path
    let bytes: [UInt8]
    do throws(HearthError) { bytes = try KeyFile.read(path) } catch { throw CommandFailure.data(error.description) }
    guard let map = MapValue(json: bytes), let type = map.text("type") else {
      throw CommandFailure.data(
        "\(path) is not a credentials file; `hearth keys create NAME` writes one, and so does the console of a cloud project"
      )
    }
    project = map.text("project_id") ?? map.text("quota_project_id")
    // The file of a person contains secrets for Google itself, so no other endpoint gets them.
    tokenURL = (type == "authorized_user" ? nil : map.text("token_uri")) ?? Self.googleTokenURL
    switch type {
    case "service_account":
      guard let email = map.text("client_email"), let pem = map.text("private_key"),
        let key = RSAKey(privatePEM: pem)
      else { throw CommandFailure.data("\(path) has no valid \"client_email\" and \"private_key\"") }
      proof = .key(key, id: map.text("private_key_id") ?? "", email: email)
    case "authorized_user":
      guard let token = map.text("refresh_token"), let id = map.text("client_id"),
        let secret = map.text("client_secret")
      else { throw CommandFailure.data("\(path) has no \"refresh_token\", \"client_id\" and \"client_secret\"") }
      proof = .refreshToken(token, clientID: id, clientSecret: secret)
    default:
      throw CommandFailure.data(
        "\(path) contains credentials of the type \(TerminalText.line(type)), which this verb cannot use; pass --token or "
          + "--token-command instead")
    }
  }

  /// Whether the key belongs to Google Cloud. Otherwise it belongs to a Hearth server.
  var isGoogles: Bool { WebHost.isGoogles(tokenURL) }

  /// Whether the key is a person's. Some services of Google then require the name of a project to bill.
  var isPersonal: Bool {
    if case .refreshToken = proof { return true }
    return false
  }

  /// The URL of the Hearth server that the key was created for, or `nil` for a key of Google.
  var serverURL: String? {
    guard !isGoogles, tokenURL.hasSuffix("/token") else { return nil }
    return String(tokenURL.dropLast("/token".count))
  }

  /// Returns the body of a request for an access token, a form.
  /// - Throws: ``CommandFailure`` if the key cannot sign.
  func tokenRequest(nowSeconds: Int64) throws -> [UInt8] {
    var fields: [(name: String, value: String)]
    switch proof {
    case .key(let key, let id, let email):
      let claims = MapValue([
        ("iss", .string(email)), ("sub", .string(email)), ("aud", .string(tokenURL)),
        ("scope", .string(Self.scopes.joined(separator: " "))), ("iat", .integer(nowSeconds)),
        ("exp", .integer(nowSeconds + Self.assertionSeconds)),
      ])
      let assertion: String
      do throws(TokenError) { assertion = try JSONWebToken.signed(claims, by: key, id: id) } catch {
        throw CommandFailure.data("\(path): \(error.description)")
      }
      fields = [("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"), ("assertion", assertion)]
    case .refreshToken(let token, let id, let secret):
      fields = [
        ("grant_type", "refresh_token"), ("refresh_token", token), ("client_id", id), ("client_secret", secret),
      ]
    }
    let form = fields.map { "\($0.name)=\(ServerClient.encode($0.value.utf8))" }
    return Array(form.joined(separator: "&").utf8)
  }
}

/// The owner of a host name.
enum WebHost {
  /// Returns whether a URL or a host belongs to Google's APIs.
  static func isGoogles(_ url: String) -> Bool {
    let host = parts(of: url).server.split(separator: "/").last.map(String.init) ?? url
    let name = host.split(separator: ":", maxSplits: 1).first.map(String.init)?.lowercased() ?? ""
    // Older keys name accounts.google.com.
    return ["googleapis.com", "google.com"].contains { name == $0 || name.hasSuffix(".\($0)") }
  }

  /// Returns whether a URL names this machine.
  static func isLoopback(_ url: String) -> Bool {
    let host = parts(of: url).server.split(separator: "/").last.map(String.init) ?? url
    return host.hasPrefix("[::1]")
      || HearthConfiguration.isLoopback(host.split(separator: ":", maxSplits: 1).first.map(String.init) ?? "")
  }

  /// Splits a URL into the server's address and the request target.
  static func parts(of url: String) -> (server: String, target: String) {
    let scheme = url.utf8.firstRange(of: "://".utf8)
    let rest = scheme.map { url.utf8[$0.upperBound...] } ?? url.utf8[...]
    guard let slash = rest.firstIndex(of: UInt8(ascii: "/")) else { return (url, "/") }
    return (String(url[..<slash]), String(url[slash...]))
  }
}
