import CSodium
import DocumentModel
import KeyValue
import Synchronization

/// The key of a program that is admin, as far as the server knows it: the private half is only in the file of the
/// program.
package struct ServiceKey: Sendable {
  /// What tokens call the key.
  package let id: String
  /// What a person called it.
  package let name: String
  /// The account that the key is for, in the form of an e-mail address.
  package let email: String
  /// When it was made, in seconds since 1970.
  package let createdSeconds: Int64
  /// Where the server answers, as the program was told.
  package let url: String
  /// The public key.
  package let key: RSAKey

  /// Where the program exchanges assertions for access tokens.
  package var tokenURL: String { "\(url)/token" }
}

/// The keys of programs that are admins.
///
/// A program proves itself with a JWT that its key signs: in exchange for an access token at the token endpoint, as a
/// bearer token itself, or as a custom token for somebody else to sign in with. Only the first two make an admin.
package final class ServiceKeys: Sendable {
  /// The most keys at a time.
  package static let keysMax = 1000
  /// The longest a JWT of a key may live, in seconds.
  package static let assertionSecondsMax: Int64 = 3600
  /// How long an access token lives, in seconds.
  package static let accessTokenSeconds: Int64 = 3600
  /// What the clocks of programs may differ by, in seconds.
  package static let skewSeconds: Int64 = 60
  /// Where programs believe the token endpoint to be that do not put its address in their JWTs.
  package static let tokenAudience = "https://oauth2.googleapis.com/token"

  private let store: any KeyValueStore
  private let now: @Sendable () -> Int64
  private let project: AccountsProject
  private let keys: Mutex<[String: ServiceKey]>
  private let revocations = Atomic<UInt64>(0)
  /// Signs access tokens.
  let secret: [UInt8]

  /// Reads the keys of a store.
  /// - Throws: ``StorageError``, `corruption` for one that cannot be read.
  init(
    store: any KeyValueStore, project: AccountsProject, now: @escaping @Sendable () -> Int64
  ) throws(StorageError) {
    self.store = store
    self.project = project
    self.now = now
    var found: [String: ServiceKey] = [:]
    for (id, row) in try store.rows(AccountsKey(.serviceKeys), limit: .max) {
      guard let key = ServiceKey(id: String(decoding: id, as: UTF8.self), row: row) else {
        throw .corruption(path: "the store of accounts", detail: "a service key cannot be read")
      }
      found[key.id] = key
    }
    keys = Mutex(found)
    let secretKey = AccountsKey(.meta).ending("secret").bytes
    if let stored = try store.read(secretKey), stored.count == crypto_auth_hmacsha256_keybytes() {
      secret = stored
    } else {
      let made = RandomBytes.make(crypto_auth_hmacsha256_keybytes())
      try store.write { (txn) throws(StorageError) in try txn.put(secretKey, made) }
      secret = made
    }
  }

  var nowSeconds: Int64 { now() / 1_000_000 }

  /// Grows whenever a key is revoked. Cost: one load.
  package var changes: UInt64 { revocations.load(ordering: .acquiring) }

  /// All keys, oldest first.
  package var all: [ServiceKey] {
    keys.withLock { $0.values.sorted { ($0.createdSeconds, $0.id) < ($1.createdSeconds, $1.id) } }
  }

  /// The key with an id; `nil` for one that is not, or no longer. Cost: a lock.
  package func key(_ id: String) -> ServiceKey? { keys.withLock { $0[id] } }

  /// Makes a key and returns what its program is given: a service-account file, JSON, the only place where the private
  /// key ever is. `url` is where the server answers. Cost: a tenth of a second.
  /// - Throws: ``TokenError/badClaim(_:)`` for a name that cannot be one or is taken, ``TokenError/keyUnusable(_:)``,
  ///   ``TokenError/storage(_:)``.
  package func create(name: String, url: String) throws(TokenError) -> [UInt8] {
    guard Self.isName(name) else {
      throw .keyUnusable("a key's name has 1 to 40 lower-case letters, digits and dashes, and begins with a letter")
    }
    let taken = all
    guard !taken.contains(where: { $0.name == name }) else {
      throw .keyUnusable("there is a key named \(name) already; revoke it first, or choose another name")
    }
    guard taken.count < Self.keysMax else { throw .keyUnusable("there are \(Self.keysMax) keys already; revoke some") }
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

  /// Whether a key may be called so.
  package static func isName(_ name: String) -> Bool {
    let bytes = Array(name.utf8)
    return (1...40).contains(bytes.count) && bytes[0] >= UInt8(ascii: "a") && bytes[0] <= UInt8(ascii: "z")
      && bytes.allSatisfy {
        ($0 >= UInt8(ascii: "a") && $0 <= UInt8(ascii: "z")) || ($0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9"))
          || $0 == UInt8(ascii: "-")
      }
  }

  /// Takes a key out of force, by its name or its id: what it signed counts no more. Returns whether there was one.
  /// - Throws: ``TokenError/storage(_:)``.
  package func revoke(_ nameOrID: String) throws(TokenError) -> Bool {
    guard let key = all.first(where: { $0.name == nameOrID || $0.id == nameOrID }) else { return false }
    do throws(StorageError) {
      try store.write { (txn) throws(StorageError) in
        try txn.remove(AccountsKey(.serviceKeys).ending(key.id).bytes)
      }
    } catch { throw .storage(error) }
    keys.withLock { $0[key.id] = nil }
    revocations.add(1, ordering: .acquiringAndReleasing)
    return true
  }

  // MARK: Proof

  /// The key that signed a token.
  /// - Throws: ``TokenError/unsigned``, ``TokenError/unknownKey``, ``TokenError/badSignature``.
  func verify(_ token: JSONWebToken) throws(TokenError) -> ServiceKey {
    guard !token.isUnsigned else { throw .unsigned }
    guard let id = token.keyID, let key = key(id) else { throw .unknownKey }
    try token.verify(with: key.key)
    return key
  }

  /// Checks when a JWT of a key counts.
  /// - Throws: ``TokenError/expired``, ``TokenError/usedTooEarly``, ``TokenError/badClaim(_:)``.
  static func checkTime(of claims: MapValue, nowSeconds: Int64) throws(TokenError) {
    guard let issued = claims.integer("iat"), let expiry = claims.integer("exp") else {
      throw .badClaim("exp and iat must be whole numbers of seconds")
    }
    guard expiry > nowSeconds - skewSeconds else { throw .expired }
    guard issued <= nowSeconds + skewSeconds else { throw .usedTooEarly }
    guard issued > 0, expiry - issued <= assertionSecondsMax else {
      throw .badClaim("exp may be \(assertionSecondsMax) seconds behind iat at most")
    }
  }
}

extension ServiceKey {
  /// Reads a row; `nil` for what is none.
  fileprivate init?(id: String, row: [UInt8]) {
    guard let map = MapValue(json: row), let name = map.text("name"), let email = map.text("email"),
      let created = map.integer("created"), let url = map.text("url"), let key = map.text("publicKey").flatMap({ RSAKey(publicPEM: $0) })
    else { return nil }
    self.init(id: id, name: name, email: email, createdSeconds: created, url: url, key: key)
  }
}
