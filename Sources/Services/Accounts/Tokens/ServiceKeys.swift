import CSodium
import DocumentModel
import KeyValue
import Synchronization

/// The key of a program with admin access, as the server stores it. The private key exists only in the program's
/// file.
package struct ServiceKey: Sendable {
  /// The key ID, as tokens name it.
  package let id: String
  /// The name that the administrator chose.
  package let name: String
  /// The service account of the key, in the form of an e-mail address.
  package let email: String
  /// The creation time, in seconds since 1970.
  package let createdSeconds: Int64
  /// The server's address in the program's file.
  package let url: String
  package let key: RSAKey

  /// The token endpoint, where the program exchanges assertions for access tokens.
  package var tokenURL: String { "\(url)/token" }
}

/// The service keys of programs with admin access: creates, lists and revokes them, and verifies the tokens they
/// sign.
///
/// A program signs a JWT with its key. It exchanges the JWT for an access token at the token endpoint, sends it as
/// a bearer token, or hands it to a user as a custom token. Only the first two give admin access.
package final class ServiceKeys: Sendable {
  /// The most keys at one time.
  package static let keysMax = 1000
  /// The longest lifetime of a JWT signed by a key, in seconds.
  package static let assertionSecondsMax: Int64 = 3600
  /// The lifetime of an access token, in seconds.
  package static let accessTokenSeconds: Int64 = 3600
  /// The accepted difference between the clocks of programs and the server, in seconds.
  package static let skewSeconds: Int64 = 60
  /// The audience in the JWTs of programs that do not name the server's token endpoint.
  package static let tokenAudience = "https://oauth2.googleapis.com/token"

  private let store: any KeyValueStore
  private let now: @Sendable () -> Int64
  private let project: AccountsProject
  private let keys: Mutex<[String: ServiceKey]>
  private let revocations: TokenRevocations
  /// The key that signs access tokens.
  let secret: [UInt8]

  /// Reads the keys of a store.
  /// - Throws: ``StorageError`` if the store fails; `corruption` if a row is not valid.
  init(
    store: any KeyValueStore, project: AccountsProject, revocations: TokenRevocations,
    now: @escaping @Sendable () -> Int64
  ) throws(StorageError) {
    self.store = store
    self.revocations = revocations
    self.project = project
    self.now = now
    keys = Mutex(try Self.read(store, known: [:]))
    if let stored = try Self.secret(in: store) {
      secret = stored
    } else {
      let made = RandomBytes.make(crypto_auth_hmacsha256_keybytes())
      try store.write { (txn) throws(StorageError) in try txn.put(Self.secretKey, made) }
      secret = made
    }
  }

  private static let secretKey = AccountsKey(.meta).ending("secret").bytes

  private static func secret(in store: any KeyValueStore) throws(StorageError) -> [UInt8]? {
    guard let stored = try store.read(secretKey), stored.count == crypto_auth_hmacsha256_keybytes() else { return nil }
    return stored
  }

  /// Whether a store has the key that signs access tokens.
  static func hasSecret(_ store: any KeyValueStore) throws(StorageError) -> Bool { try secret(in: store) != nil }

  /// Reads the keys by ID. The row of a key never changes, so those of known keys are not decoded.
  private static func read(
    _ store: any KeyValueStore, known: [String: ServiceKey]
  ) throws(StorageError) -> [String: ServiceKey] {
    var found: [String: ServiceKey] = [:]
    for (id, row) in try store.rows(AccountsKey(.serviceKeys), limit: .max) {
      let id = String(decoding: id, as: UTF8.self)
      guard let key = known[id] ?? ServiceKey(id: id, row: row) else {
        throw .corruption(path: "the account store", detail: "the row of a service key is not valid")
      }
      found[key.id] = key
    }
    return found
  }

  /// Reads the keys again, after another process wrote to the store.
  /// - Throws: ``StorageError`` if the store fails; `corruption` if a row is not valid.
  func reload() throws(StorageError) {
    let found = try Self.read(store, known: keys.withLock { $0 })
    keys.withLock { $0 = found }
  }

  var nowSeconds: Int64 { now() / 1_000_000 }

  /// All keys, oldest first.
  package var all: [ServiceKey] {
    keys.withLock { $0.values.sorted { ($0.createdSeconds, $0.id) < ($1.createdSeconds, $1.id) } }
  }

  /// Returns the key with an ID, or `nil` if it does not exist or was revoked. Cost: one lock.
  package func key(_ id: String) -> ServiceKey? { keys.withLock { $0[id] } }

  /// Creates a key and returns its service-account file as JSON, the only copy of the private key. `url` is the
  /// server's address. Cost: a tenth of a second.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if the name is not valid or already used, or there are too many keys;
  ///   ``TokenError/storage(_:)`` if the write fails.
  package func create(name: String, url: String) throws(TokenError) -> [UInt8] {
    guard Self.isName(name) else {
      throw .keyUnusable("a key's name has 1 to 40 lower-case letters, digits and dashes, and begins with a letter")
    }
    let taken = all
    guard !taken.contains(where: { $0.name == name }) else {
      throw .keyUnusable("a key named \(name) already exists; revoke it first, or choose another name")
    }
    guard taken.count < Self.keysMax else { throw .keyUnusable("\(Self.keysMax) keys already exist; revoke some") }
    guard let rsa = RSAKey.make(), let privatePEM = rsa.privatePEM, let publicPEM = rsa.publicPEM else {
      throw .keyUnusable("libcrypto could not make an RSA key")
    }
    let id = RandomBytes.hexadecimal(20)
    let email = "\(name)@\(project.id).iam.gserviceaccount.com"
    let key = ServiceKey(id: id, name: name, email: email, createdSeconds: nowSeconds, url: url, key: rsa)
    let row = MapValue([
      ("name", .string(name)), ("email", .string(email)), ("created", .integer(key.createdSeconds)),
      ("url", .string(url)), ("publicKey", .string(publicPEM)),
    ])
    do throws(StorageError) {
      try store.write { (txn) throws(StorageError) in
        try txn.put(AccountsKey(.serviceKeys).ending(id).bytes, row.json)
      }
    } catch { throw .storage(error) }
    keys.withLock { $0[id] = key }
    return MapValue([
      ("type", .string("service_account")), ("project_id", .string(project.id)), ("private_key_id", .string(id)),
      ("private_key", .string(privatePEM)), ("client_email", .string(email)), ("client_id", .string(id)),
      ("token_uri", .string(key.tokenURL)), ("universe_domain", .string("googleapis.com")),
    ]).json
  }

  /// Returns whether `name` is valid for a key.
  package static func isName(_ name: String) -> Bool {
    let bytes = Array(name.utf8)
    return (1...40).contains(bytes.count) && bytes[0] >= UInt8(ascii: "a") && bytes[0] <= UInt8(ascii: "z")
      && bytes.allSatisfy {
        ($0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z")) || ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9"))
          || $0 == UInt8(ascii: "-")
      }
  }

  /// Revokes a key, by its name or its ID: everything that it signed is no longer valid. Returns whether the key
  /// existed.
  /// - Throws: ``TokenError/storage(_:)`` if the write fails.
  package func revoke(_ nameOrID: String) throws(TokenError) -> Bool {
    guard let key = all.first(where: { $0.name == nameOrID || $0.id == nameOrID }) else { return false }
    do throws(StorageError) {
      try store.write { (txn) throws(StorageError) in
        try txn.remove(AccountsKey(.serviceKeys).ending(key.id).bytes)
      }
    } catch { throw .storage(error) }
    keys.withLock { $0[key.id] = nil }
    revocations.note(.everyone)
    return true
  }

  // MARK: Proof

  /// Verifies a signature over `text` by a current key of the service account with an email address. Returns `nil` if
  /// the signature is wrong, or the key is unknown or revoked. Cost: an RSA verification for each key of the account.
  package func verify(_ signature: [UInt8], over text: [UInt8], by email: String) -> ServiceKeySignature? {
    let signer = all.first { key in
      key.email.utf8.elementsEqual(email.utf8) && text.withUnsafeBytes { key.key.verifies(signature, over: $0) }
    }
    return signer.map { ServiceKeySignature(keyID: $0.id, keys: self) }
  }

  /// Whether the service account with an email address has a current key.
  package func hasKey(of email: String) -> Bool { all.contains { $0.email.utf8.elementsEqual(email.utf8) } }

  /// Returns the key that signed a token.
  /// - Throws: ``TokenError/unsigned``, ``TokenError/unknownKey`` or ``TokenError/badSignature`` if none did.
  func verify(_ token: JSONWebToken) throws(TokenError) -> ServiceKey {
    guard !token.isUnsigned else { throw .unsigned }
    guard let id = token.keyID, let key = key(id) else { throw .unknownKey }
    try token.verify(with: key.key)
    return key
  }

  /// Checks the times of a JWT signed by a key.
  /// - Throws: ``TokenError/expired``, ``TokenError/usedTooEarly``, or ``TokenError/badClaim(_:)`` if a time is
  ///   missing or its lifetime is too long.
  static func checkTime(of claims: MapValue, nowSeconds: Int64) throws(TokenError) {
    guard let issued = claims.integer("iat"), let expiry = claims.integer("exp") else {
      throw .badClaim("exp and iat must be whole numbers of seconds")
    }
    guard expiry > nowSeconds - skewSeconds else { throw .expired }
    guard issued <= nowSeconds + skewSeconds else { throw .usedTooEarly }
    guard issued > 0, expiry - issued <= assertionSecondsMax else {
      throw .badClaim("exp must be at most \(assertionSecondsMax) seconds after iat")
    }
  }
}

/// Proof that a current service key signed a text. Only ``ServiceKeys/verify(_:over:by:)`` makes it.
package struct ServiceKeySignature: Sendable {
  /// The ID of the key.
  package let keyID: String
  private let keys: ServiceKeys

  fileprivate init(keyID: String, keys: ServiceKeys) {
    self.keyID = keyID
    self.keys = keys
  }

  /// Whether the key was revoked since. Cost: one lock.
  package var isRevoked: Bool { keys.key(keyID) == nil }
}

extension ServiceKey {
  /// Reads a row. Returns `nil` if it is not valid.
  fileprivate init?(id: String, row: [UInt8]) {
    guard let map = MapValue(json: row), let name = map.text("name"), let email = map.text("email"),
      let created = map.integer("created"), let url = map.text("url"),
      let key = map.text("publicKey").flatMap({ RSAKey(publicPEM: $0) })
    else { return nil }
    self.init(id: id, name: name, email: email, createdSeconds: created, url: url, key: key)
  }
}
