import DocumentModel
import KeyValue
import Synchronization
import WireFormat

/// The keys that sign tokens: created on first use, kept in the store, and rotated.
///
/// A new key is published before it signs, because other verifiers cache the published keys for
/// ``publishedSeconds``. A retired key stays published until its last token has expired.
package final class SigningKeys: Sendable {
  /// The tokens that a key signs. The names are on disk.
  package enum Purpose: String, CaseIterable, Sendable {
    /// ID tokens, which live an hour.
    case idToken
    /// Session cookies, which live up to two weeks.
    case sessionCookie

    /// The longest lifetime of a token signed by the key, in seconds.
    package var lifetimeSecondsMax: Int64 { self == .idToken ? 3600 : 14 * 86_400 }
  }

  /// A signing key.
  package struct Key: Sendable {
    /// The key ID in tokens and key lists.
    package let id: String
    package let purpose: Purpose
    /// The time from which the key signs, in seconds since 1970.
    package let fromSeconds: Int64
    package let key: RSAKey
    /// The self-signed certificate of the key, in PEM form.
    package let certificate: String
  }

  /// The time for which verifiers may cache a list of keys, in seconds.
  package static let publishedSeconds: Int64 = 3600
  /// The time for which a key signs before the next key replaces it, in seconds.
  package static let rotationSeconds: Int64 = 30 * 86_400
  /// The accepted difference between clocks, in seconds.
  package static let skewSeconds: Int64 = 10
  /// The most keys that are loaded. A store has a handful.
  private static let keysMax = 100

  private let store: any KeyValueStore
  private let now: @Sendable () -> Int64
  /// The keys, oldest first.
  private let keys: Mutex<[Key]>
  /// Held while a key is created, so two concurrent first uses create one key.
  private let making = Mutex(())
  private let revocations: TokenRevocations

  /// Reads the keys of a store.
  /// - Throws: ``StorageError`` if the store fails; `corruption` if a row is not valid.
  init(
    store: any KeyValueStore, revocations: TokenRevocations, now: @escaping @Sendable () -> Int64
  ) throws(StorageError) {
    self.store = store
    self.revocations = revocations
    self.now = now
    keys = Mutex(try Self.read(store, known: []))
  }

  /// Reads the keys, oldest first. The row of a key never changes, so those of known keys are not decoded.
  private static func read(_ store: any KeyValueStore, known: [Key]) throws(StorageError) -> [Key] {
    var found: [Key] = []
    for (id, row) in try store.rows(AccountsKey(.signingKeys), limit: keysMax) {
      let id = String(decoding: id, as: UTF8.self)
      guard let key = known.first(where: { $0.id == id }) ?? Key(id: id, row: row) else {
        throw .corruption(path: "the account store", detail: "the row of a signing key is not valid")
      }
      found.append(key)
    }
    return found.sorted(by: isOlder)
  }

  /// Reads the keys again, after another process wrote to the store.
  /// - Throws: ``StorageError`` if the store fails; `corruption` if a row is not valid.
  func reload() throws(StorageError) {
    let found = try Self.read(store, known: keys.withLock { $0 })
    keys.withLock { $0 = found }
  }

  private static func isOlder(_ a: Key, _ b: Key) -> Bool { (a.fromSeconds, a.id) < (b.fromSeconds, b.id) }

  private var nowSeconds: Int64 { now() / 1_000_000 }

  /// Returns the key that signs now. The first call creates one. Cost: one lock; the first call takes a tenth of a
  /// second.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if libcrypto fails, or ``TokenError/storage(_:)``.
  package func current(_ purpose: Purpose) throws(TokenError) -> Key {
    if let key = signing(purpose) { return key }
    return try making.withLock { _ throws(TokenError) in
      if let key = signing(purpose) { return key }
      return try make(purpose, fromSeconds: nowSeconds)
    }
  }

  /// Returns the newest key whose time has come, or `nil` if no key exists.
  private func signing(_ purpose: Purpose) -> Key? {
    let now = nowSeconds
    return keys.withLock { keys in
      let own = keys.filter { $0.purpose == purpose }
      // If the clock was set back, the first key keeps signing; a second first key must not be created.
      return own.last { $0.fromSeconds <= now } ?? own.first
    }
  }

  /// Returns the key with an ID if its tokens may still be valid, or `nil`. Cost: one lock.
  package func key(_ id: String, for purpose: Purpose) -> Key? {
    published(purpose).first { $0.id.utf8.elementsEqual(id.utf8) }
  }

  /// Returns the keys that verifiers need, oldest first: those whose tokens may still be valid, and the next one.
  package func published(_ purpose: Purpose) -> [Key] {
    let now = nowSeconds
    return keys.withLock { keys in
      let own = keys.filter { $0.purpose == purpose }
      return own.indices.filter { index in
        guard index + 1 < own.count else { return true }
        let lastSigned = own[index + 1].fromSeconds
        return now <= lastSigned + purpose.lifetimeSecondsMax + Self.skewSeconds
      }.map { own[$0] }
    }
  }

  /// Creates the next key. It starts to sign when other verifiers have had time to load it.
  ///
  /// If `immediately` is set, for a key that has leaked, the new key signs from now on. All other keys of the
  /// purpose are withdrawn, so the tokens they signed are rejected.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if libcrypto fails, or ``TokenError/storage(_:)``.
  @discardableResult
  package func rotate(_ purpose: Purpose, immediately: Bool = false) throws(TokenError) -> Key {
    try making.withLock { _ throws(TokenError) in
      guard immediately else { return try make(purpose, fromSeconds: nowSeconds + Self.publishedSeconds) }
      // This includes the next key, because an attacker with access to one key has access to all.
      let others = keys.withLock { keys in keys.filter { $0.purpose == purpose } }
      return try make(purpose, fromSeconds: nowSeconds, inPlaceOf: others)
    }
  }

  /// Creates the next keys if they are due, and removes keys whose tokens have all expired.
  /// - Throws: ``TokenError/keyUnusable(_:)`` if libcrypto fails, or ``TokenError/storage(_:)``.
  package func maintain() throws(TokenError) {
    for purpose in Purpose.allCases {
      let newest = keys.withLock { keys in keys.last { $0.purpose == purpose } }
      guard let newest else { continue }
      if newest.fromSeconds + Self.rotationSeconds - Self.publishedSeconds <= nowSeconds { try rotate(purpose) }
      let kept = Set(published(purpose).map(\.id))
      let gone = keys.withLock { keys in keys.filter { $0.purpose == purpose && !kept.contains($0.id) } }
      guard !gone.isEmpty else { continue }
      do throws(StorageError) {
        try store.write { (txn) throws(StorageError) in
          for key in gone { try txn.remove(AccountsKey(.signingKeys).ending(key.id).bytes) }
        }
      } catch { throw .storage(error) }
      keys.withLock { keys in keys.removeAll { key in gone.contains { $0.id == key.id } } }
    }
  }

  private func make(
    _ purpose: Purpose, fromSeconds: Int64, inPlaceOf withdrawn: [Key] = []
  ) throws(TokenError) -> Key {
    let id = RandomBytes.hexadecimal(20)
    // Verifiers check only the signature, but some reject expired certificates.
    guard let rsa = RSAKey.make(), let pem = rsa.privatePEM,
      let certificate = rsa.selfSignedCertificate(
        name: "securetoken", fromSeconds: nowSeconds - 86_400, toSeconds: fromSeconds + 10 * 365 * 86_400)
    else { throw .keyUnusable("libcrypto could not make an RSA key") }
    let key = Key(id: id, purpose: purpose, fromSeconds: fromSeconds, key: rsa, certificate: certificate)
    let row = MapValue([
      ("purpose", .string(purpose.rawValue)), ("from", .integer(fromSeconds)), ("privateKey", .string(pem)),
      ("certificate", .string(certificate)),
    ])
    do throws(StorageError) {
      try store.write { (txn) throws(StorageError) in
        try txn.put(AccountsKey(.signingKeys).ending(id).bytes, row.json)
        for key in withdrawn { try txn.remove(AccountsKey(.signingKeys).ending(key.id).bytes) }
      }
    } catch { throw .storage(error) }
    keys.withLock { keys in
      keys.removeAll { key in withdrawn.contains { $0.id == key.id } }
      keys.append(key)
      keys.sort(by: Self.isOlder)
    }
    if !withdrawn.isEmpty { revocations.note(.everyone) }
    return key
  }

  // MARK: Published

  /// Returns the keys as a JSON Web Key Set (RFC 7517): `{"keys": […]}`.
  package func jsonWebKeySet(_ purpose: Purpose) -> [UInt8] {
    func text(_ bytes: [UInt8]) -> Value { .string(String(decoding: Base64URL.encode(bytes), as: UTF8.self)) }
    let keys = published(purpose).map { key in
      Value.map(
        MapValue([
          ("kty", .string("RSA")), ("alg", .string("RS256")), ("use", .string("sig")), ("kid", .string(key.id)),
          ("n", text(key.key.modulus)), ("e", text(key.key.exponent)),
        ]))
    }
    return MapValue([("keys", .array(keys))]).json
  }

  /// Returns the keys as certificates in PEM form, by key ID: `{"id": "certificate", …}`.
  package func certificates(_ purpose: Purpose) -> [UInt8] {
    MapValue(published(purpose).map { ($0.id, .string($0.certificate)) }).json
  }
}

extension SigningKeys.Key {
  /// Reads a row. Returns `nil` if it is not valid.
  fileprivate init?(id: String, row: [UInt8]) {
    guard let map = MapValue(json: row), let purpose = map.text("purpose").flatMap(SigningKeys.Purpose.init),
      let fromSeconds = map.integer("from"), let certificate = map.text("certificate"),
      let key = map.text("privateKey").flatMap({ RSAKey(privatePEM: $0) })
    else { return nil }
    self.init(id: id, purpose: purpose, fromSeconds: fromSeconds, key: key, certificate: certificate)
  }
}
