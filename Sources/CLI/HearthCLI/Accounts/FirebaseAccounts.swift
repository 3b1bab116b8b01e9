import Accounts
import WireFormat

/// Converts exported accounts to the form that `firebase auth:import` accepts.
///
/// That program rejects fields and providers that it does not know, and imports hashes of one algorithm with the same
/// parameters. So the conversion keeps one kind of hash, and counts what it omits. It cannot keep Argon2id, Hearth's
/// own algorithm.
struct FirebaseAccounts {
  /// The fields that `firebase auth:import` accepts, with their names in Hearth's export.
  private static let fields: [(String, StaticString)] = [
    ("localId", "localId"), ("email", "email"), ("emailVerified", "emailVerified"), ("displayName", "displayName"),
    ("photoUrl", "photoUrl"), ("phoneNumber", "phoneNumber"), ("disabled", "disabled"),
    ("customAttributes", "customAttributes"), ("createdAt", "createdAt"), ("lastSignedInAt", "lastLoginAt"),
  ]
  private static let providerFields: [StaticString] = ["providerId", "rawId", "email", "displayName", "photoUrl"]
  private static let providers = ["google.com", "facebook.com", "twitter.com", "github.com"]
  /// The entries that Hearth derives from the email address and the telephone number.
  private static let derivedProviders = ["password", "phone"]

  /// A hash in the form that the program accepts.
  private struct Hash {
    /// The options that describe the algorithm, without the signer key, which is a secret.
    var options: String
    /// Tells hashes apart that cannot be in one file.
    var group: String
    var hash: String
    var salt: String?
  }

  /// The kind of hash to keep: the first one that an account has.
  private var kept: Hash?
  private var passwords = 0
  private var lostPasswords = 0
  private var lostLinks = 0

  /// Returns the account in the other form.
  mutating func convert(_ user: JSONTree) -> JSONTree {
    var members: [JSONTree.Member] = []
    for (name, own) in Self.fields {
      if let value = user[own] { members.append(JSONTree.Member(name: name, value: value)) }
    }
    if let text = user["passwordHash"]?.text {
      let hash = Self.hash(text)
      if let hash, kept == nil || kept?.group == hash.group {
        kept = hash
        passwords += 1
        members.append(JSONTree.Member(name: "passwordHash", value: JSONTree(.string(hash.hash))))
        if let salt = hash.salt { members.append(JSONTree.Member(name: "salt", value: JSONTree(.string(salt)))) }
      } else {
        lostPasswords += 1
      }
    }
    let links = (user["providerUserInfo"]?.elements ?? []).filter { link in
      !Self.derivedProviders.contains(link["providerId"]?.text ?? "")
    }
    let known = links.filter { Self.providers.contains($0["providerId"]?.text ?? "") }
    lostLinks += links.count - known.count
    let converted = known.map { link in
      JSONTree(
        .object(
          Self.providerFields.compactMap { name in link[name].map { JSONTree.Member(name: "\(name)", value: $0) } }))
    }
    members.append(JSONTree.Member(name: "providerUserInfo", value: JSONTree(.array(converted))))
    return JSONTree(.object(members))
  }

  /// A summary of the omitted facts, and the options that import the file.
  var report: String {
    var lines: [String] = []
    if lostPasswords > 0 {
      lines.append(
        "\(CountText.of(lostPasswords, "account is", "accounts are")) without \(lostPasswords == 1 ? "its password" : "their passwords"): Firebase "
          + "imports neither Argon2id, Hearth's algorithm, nor several algorithms in a file; these users must reset "
          + "their passwords")
    }
    if lostLinks > 0 {
      lines.append(
        "\(CountText.of(lostLinks, "link")) to providers other than \(Self.providers.joined(separator: ", ")) "
          + "omitted")
    }
    if let kept, passwords > 0 {
      lines.append("import the \(CountText.of(passwords, "kept hash", "kept hashes")) with: \(kept.options)")
    }
    return lines.map { "hearth: \($0)\n" }.joined()
  }

  /// Parses a hash of Hearth's export. Returns `nil` if Firebase cannot import it.
  private static func hash(_ text: String) -> Hash? {
    guard let bytes = Base64.decode(text) else { return nil }
    let parts = String(decoding: bytes, as: UTF8.self).split(separator: "$", omittingEmptySubsequences: false)
    guard parts.count > 3 else { return nil }
    if parts[1].hasPrefix("2") {
      return Hash(options: "--hash-algo BCRYPT", group: "bcrypt", hash: text, salt: nil)
    }
    guard parts[1] == "firebase-scrypt", parts.count == 5 else { return nil }
    var values: [Substring: Substring] = [:]
    for pair in parts[2].split(separator: ",") {
      let sides = pair.split(separator: "=", maxSplits: 1)
      if sides.count == 2 { values[sides[0]] = sides[1] }
    }
    return Hash(
      options: "--hash-algo SCRYPT --hash-key KEY --salt-separator \(values["s"] ?? "") --rounds \(values["r"] ?? "") "
        + "--mem-cost \(values["m"] ?? ""); KEY is that of the project which the hashes come from",
      group: "scrypt \(parts[2])", hash: String(parts[4]), salt: String(parts[3]))
  }
}
