import Accounts
import DocumentModel
import Glibc
import IdentityService

/// Reads the providers of the configuration, a JSON object:
///
///     {"google.com": {"clientId": "…", "clientSecretFile": "google.secret"},
///      "oidc.work": {"issuer": "https://login.example.com", "clientId": "…"}}
enum SignInProviderText {
  /// The members of a provider.
  private static let members = [
    "issuer", "clientId", "clientSecretFile", "scopes", "teamId", "keyId", "privateKeyFile",
  ]

  /// Returns the providers, and reads the files that they name. Relative paths begin in `folder`, or in the working
  /// directory if it is `nil`.
  /// - Throws: ``HearthError/configuration(_:)`` with the provider and the member that is not valid, or
  ///   ``HearthError/data(_:)`` for a file.
  static func read(_ text: String, in folder: String?) throws(HearthError) -> [SignInProvider] {
    guard let map = MapValue(json: Array(text.utf8)) else {
      throw .configuration("providers must be a JSON object, such as {\"google.com\": {\"clientId\": \"…\"}}")
    }
    var providers: [SignInProvider] = []
    for (id, value) in map.entries {
      guard case .map(let fields) = value else { throw problem(id, "must be an object with clientId") }
      providers.append(try provider(id, fields, folder))
    }
    return providers
  }

  /// Returns the paths of the files with secrets that the providers name.
  static func secretFiles(_ text: String, in folder: String?) -> [String] {
    guard let map = MapValue(json: Array(text.utf8)) else { return [] }
    return map.entries.flatMap { _, value -> [String] in
      guard case .map(let fields) = value else { return [] }
      return ["clientSecretFile", "privateKeyFile"].compactMap { fields.text($0).map { path($0, in: folder) } }
    }
  }

  private static func path(_ file: String, in folder: String?) -> String {
    file.hasPrefix("/") ? file : folder.map { "\($0)/\(file)" } ?? file
  }

  private static func provider(
    _ id: String, _ fields: MapValue, _ folder: String?
  ) throws(HearthError) -> SignInProvider {
    guard id.utf8.count <= 128, id == "google.com" || id == "apple.com" || (id.hasPrefix("oidc.") && id.utf8.count > 5)
    else {
      throw problem(
        id,
        "is not supported; the name must be google.com, apple.com, or begin with oidc., and the provider must "
          + "support OpenID Connect")
    }
    for (name, value) in fields.entries {
      guard members.contains(name) else {
        throw problem(id, "has the unknown member \"\(name)\"; the members are \(members.joined(separator: ", "))")
      }
      if name != "scopes", case .string = value { continue }
      if name == "scopes", case .array = value { continue }
      throw problem(id, name == "scopes" ? "\"scopes\" must be an array of strings" : "\"\(name)\" must be a string")
    }
    guard let clientID = fields.text("clientId"), !clientID.isEmpty else { throw problem(id, "lacks \"clientId\"") }
    guard let issuer = fields.text("issuer") ?? SignInProvider.issuer(of: id) else {
      throw problem(id, "lacks \"issuer\", the https URL that the provider's tokens name")
    }
    guard SignInProvider.isUsable(issuer: issuer) else {
      throw problem(id, "\"issuer\" must be an https URL without a query")
    }
    var scopes: [String] = []
    if case .array(let values)? = fields["scopes"] {
      for value in values {
        guard case .string(let text) = value else { throw problem(id, "\"scopes\" must be an array of strings") }
        scopes.append(text)
      }
    }
    return SignInProvider(
      id: id, issuer: issuer, clientID: clientID, credential: try credential(id, fields, folder),
      scopes: scopes)
  }

  private static func credential(
    _ id: String, _ fields: MapValue, _ folder: String?
  ) throws(HearthError) -> SignInProvider.Credential {
    if let file = fields.text("clientSecretFile").map({ path($0, in: folder) }) {
      let secret = String(decoding: try KeyFile.read(file), as: UTF8.self)
      let text = String(secret.reversed().drop { $0.isWhitespace }.reversed())
      guard !text.isEmpty, text.utf8.count <= 4096, !text.contains(where: \.isNewline) else {
        throw .data("\(file) must contain the client secret of \(id) in one line")
      }
      return .secret(text)
    }
    guard let file = fields.text("privateKeyFile").map({ path($0, in: folder) }) else {
      if id == "google.com" { throw problem(id, "lacks \"clientSecretFile\", which Google requires") }
      if id == "apple.com" { throw problem(id, "lacks \"teamId\", \"keyId\" and \"privateKeyFile\"") }
      return .none
    }
    guard let team = fields.text("teamId"), let keyID = fields.text("keyId") else {
      throw problem(id, "lacks \"teamId\" or \"keyId\", which belong to \"privateKeyFile\"")
    }
    guard let key = EllipticKey(privatePEM: String(decoding: try KeyFile.read(file), as: UTF8.self)) else {
      throw .data("\(file) must contain a private key on the curve P-256, in PEM form without a passphrase")
    }
    return .signed(teamID: team, keyID: keyID, key)
  }

  private static func problem(_ id: String, _ text: String) -> HearthError {
    .configuration("provider \(id): \(text)")
  }
}
