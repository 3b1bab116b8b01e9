import Accounts
import DocumentModel
import FixtureTree
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

/// Checks the keys of trusted issuers and identity providers, and the keys of programs with administrator rights.
struct KeysChecks {
  let configuration: HearthConfiguration
  /// The data directory; `nil` if its accounts cannot be read.
  let directory: String?
  /// Microseconds since 1970.
  let now: Int64

  /// The maximum size of a service-account file, which is usually a tenth of this.
  private static let keyFileBytesMax = 64 << 10

  func findings() -> [Finding] {
    var findings = configuration.trustedIssuers.map { issuer in
      checks("issuer", issuer.path, of: issuer.issuer) { (keys) throws(TokenError) in
        try TrustedIssuers().trust(TrustedIssuer(issuer: issuer.issuer, audience: issuer.audience), keys: keys)
      }
    }
    findings += configuration.accounts.identityProviders.map { provider in
      checks("identity provider", provider.keysPath, of: provider.id) { (keys) throws(TokenError) in
        try IdentityProviders().add(provider.id, issuer: provider.issuer, clientID: provider.clientID, keys: keys)
      }
    }
    findings += configuration.onlineIssuers.map(online)
    guard let directory else { return findings }
    for project in DataDirectory.accountsProjects(in: directory) { findings += programs(of: project, in: directory) }
    return findings
  }

  /// Fetches the keys of an issuer that has no file, as the server does.
  private func online(_ issuer: HearthConfiguration.OnlineIssuer) -> Finding {
    let topic = "issuer"
    guard let fetch = configuration.fetchDocument else { return .ok(topic, issuer.issuer) }
    do throws(HearthError) {
      try OnlineIssuers.check(issuer, fetch)
      return .ok(topic, "the keys of \(issuer.issuer) were fetched")
    } catch {
      return .problem(
        topic, "the keys of \(issuer.issuer) cannot be fetched: \(error.description)",
        "Correct the issuer or the network, or name a file with its keys: --trust-issuer ISSUER=FILE")
    }
  }

  /// Checks a file with the public keys of an issuer or a provider.
  private func checks(
    _ topic: String, _ path: String, of name: String, _ use: ([UInt8]) throws(TokenError) -> Void
  ) -> Finding {
    let keys: [UInt8]
    do throws(HearthError) { keys = try KeyFile.read(path) } catch {
      return .problem(topic, "the keys of \(name): \(error.description)", "Name a readable file.")
    }
    do throws(TokenError) { try use(keys) } catch {
      return .problem(
        topic, "\(path): \(error.description)", "Fetch the keys from the provider again, as a JSON Web Key Set.")
    }
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & 0o002 != 0 {
      return .problem(
        topic, "every user of this machine can write \(path), and so sign in as any user", "chmod o-w \(path)")
    }
    return .ok(topic, "\(path) contains keys of \(name)")
  }

  /// Checks the keys of programs: whether their connections are encrypted, and whether other users can read the files
  /// that `hearth keys create` wrote.
  private func programs(of project: String, in directory: String) -> [Finding] {
    let topic = "program keys"
    let keys: [ServiceKey]
    do throws(StorageError) {
      let options = LMDBOptions(path: DataDirectory.accountsFile(of: project, in: directory), readOnly: true)
      let now = now
      keys = try AccountStore(
        store: try LMDBStore.open(options), project: AccountsProject(project), mode: .production, now: { now }
      ).serviceKeys.all
    } catch {
      return [.problem(topic, error.description, "Restore the accounts from a backup of the directory.")]
    }
    guard !keys.isEmpty else { return [] }
    let findings = keys.flatMap { [exposure(of: $0, topic), connection(of: $0, topic)].compactMap { $0 } }
    guard findings.isEmpty else { return findings }
    return [.ok(topic, "\(project): \(keys.map(\.name).joined(separator: ", "))")]
  }

  private func exposure(of key: ServiceKey, _ topic: String) -> Finding? {
    let file = "\(key.name).json"
    var status = stat()
    guard stat(file, &status) == 0, status.st_mode & 0o077 != 0,
      let bytes = try? ByteSource(file: file).readAll(bytesMax: Self.keyFileBytesMax),
      String(decoding: bytes, as: UTF8.self).contains(key.id)
    else { return nil }
    return .problem(
      topic, "\(file) gives administrator rights, but users other than its owner can read it",
      "chmod go= it, then run hearth keys revoke \(key.name), and create a new key.")
  }

  private func connection(of key: ServiceKey, _ topic: String) -> Finding? {
    guard key.url.hasPrefix("http://") else { return nil }
    let rest = key.url.dropFirst("http://".count).prefix { $0 != "/" }
    let host = rest.hasPrefix("[") ? rest.dropFirst().prefix { $0 != "]" } : rest.prefix { $0 != ":" }
    let isLocal = HearthConfiguration.isLoopback(String(host))
    guard configuration.tls != nil || !isLocal else { return nil }
    let text = "\(key.name) connects to \(key.url)"
    return .warning(
      topic, configuration.tls != nil ? "\(text), but the server uses TLS" : "\(text): its tokens are sent unencrypted",
      "Run hearth keys revoke \(key.name), and create the key again with --url https://…")
  }
}
