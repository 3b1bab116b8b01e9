import DocumentModel
import KeyValue
import Synchronization
import WireFormat

/// The keys that sign tokens: made on first use, kept in the store, changed from time to time.
///
/// A new key is published before it signs, so that verifiers elsewhere, which remember what is published for
/// ``publishedSeconds``, know it in time; one that signs no more stays published until its last token is expired.
package final class SigningKeys: Sendable {
  /// What a key signs. The names are on disk.
  package enum Purpose: String, CaseIterable, Sendable {
    /// ID tokens, which live an hour.
    case idToken
    /// Session cookies, which live up to two weeks.
    case sessionCookie

    /// The longest that what it signs may live, in seconds.
    package var lifetimeSecondsMax: Int64 { self == .idToken ? 3600 : 14 * 86_400 }
  }

  /// A key.
  package struct Key: Sendable {
    /// What tokens and key lists call it.
    package let id: String
    /// What it signs.
    package let purpose: Purpose
    /// From when it signs, in seconds since 1970.
    package let fromSeconds: Int64
    /// The key.
    package let key: RSAKey
    /// Its certificate, which it gave itself, in PEM form.
    package let certificate: String
  }

  /// How long verifiers may remember a list of keys.
  package static let publishedSeconds: Int64 = 3600
  /// How long a key signs before the next one does.
  package static let rotationSeconds: Int64 = 30 * 86_400
  /// What clocks may differ by.
  package static let skewSeconds: Int64 = 10
  /// The most keys that are kept; a store holds a handful.
  private static let keysMax = 100

  private let store: any KeyValueStore
  private let now: @Sendable () -> Int64
  /// The keys, oldest first.
  private let keys: Mutex<[Key]>
  /// Held while a key is made, so that two first uses make one key.
  private let making = Mutex(())
  private let withdrawals = Atomic<UInt64>(0)

  /// Reads the keys of a store.
  /// - Throws: ``StorageError``, `corruption` for one that cannot be read.
  init(store: any KeyValueStore, now: @escaping @Sendable () -> Int64) throws(StorageError) {
    self.store = store
    self.now = now
    var found: [Key] = []
    for (id, row) in try store.rows(AccountsKey(.signingKeys), limit: Self.keysMax) {
      guard let key = Key(id: String(decoding: id, as: UTF8.self), row: row) else {
        throw .corruption(path: "the store of accounts", detail: "a signing key cannot be read")
      }
      found.append(key)
    }
    keys = Mutex(found.sorted(by: Self.isOlder))
  }

  private static func isOlder(_ a: Key, _ b: Key) -> Bool { (a.fromSeconds, a.id) < (b.fromSeconds, b.id) }

  private var nowSeconds: Int64 { now() / 1_000_000 }

  /// The key that signs now; the first call ever makes one. Cost: a lock; the first time a tenth of a second.
  /// - Throws: ``TokenError/keyUnusable(_:)`` and ``TokenError/storage(_:)``.
  package func current(_ purpose: Purpose) throws(TokenError) -> Key {
    if let key = signing(purpose) { return key }
    return try making.withLock { _ throws(TokenError) in
      if let key = signing(purpose) { return key }
      return try make(purpose, fromSeconds: nowSeconds)
    }
  }

  /// The newest key that signs already.
  private func signing(_ purpose: Purpose) -> Key? {
    let now = nowSeconds
    return keys.withLock { keys in
      let own = keys.filter { $0.purpose == purpose }
      // A clock that was set back must not bring a second first key.
      return own.last { $0.fromSeconds <= now } ?? own.first
    }
  }

  /// The key with an id that may still verify; `nil` where there is none. Cost: a lock.
  package func key(_ id: String, for purpose: Purpose) -> Key? {
    published(purpose).first { $0.id.utf8.elementsEqual(id.utf8) }
  }

  /// The keys that verifiers are to know, oldest first: those whose tokens may still live, and the next.
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

  /// Grows with every key that is withdrawn before its last token is expired: what was found at the same number still
  /// holds. Cost: one load.
  package var changes: UInt64 { withdrawals.load(ordering: .acquiring) }

  /// Makes the next key. It signs once verifiers elsewhere have had the time to learn of it.
  ///
  /// `immediately`, for a key that has leaked, it signs from now on, and every other key of the purpose is withdrawn:
  /// what those signed is refused.
  /// - Throws: ``TokenError/keyUnusable(_:)`` and ``TokenError/storage(_:)``.
  @discardableResult
  package func rotate(_ purpose: Purpose, immediately: Bool = false) throws(TokenError) -> Key {
    try making.withLock { _ throws(TokenError) in
      guard immediately else { return try make(purpose, fromSeconds: nowSeconds + Self.publishedSeconds) }
      // Also the one that is to sign next: whoever has read one key has read all.
      let others = keys.withLock { keys in keys.filter { $0.purpose == purpose } }
      return try make(purpose, fromSeconds: nowSeconds, inPlaceOf: others)
    }
  }

  /// Makes the next keys where it is time, and removes those that no living token is signed with.
  /// - Throws: ``TokenError/keyUnusable(_:)`` and ``TokenError/storage(_:)``.
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
    // Verifiers look at the signature only, but some refuse certificates whose time is over.
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
    if !withdrawn.isEmpty { withdrawals.add(1, ordering: .acquiringAndReleasing) }
    return key
  }

  // MARK: Published

  /// `{"keys": […]}`: the keys as a JSON Web Key Set (RFC 7517).
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

  /// `{"id": "certificate", …}`: the keys as certificates in PEM form, by key id.
  package func certificates(_ purpose: Purpose) -> [UInt8] {
    MapValue(published(purpose).map { ($0.id, .string($0.certificate)) }).json
  }
}

extension SigningKeys.Key {
  /// Reads a row; `nil` for what is none.
  fileprivate init?(id: String, row: [UInt8]) {
    guard let map = MapValue(json: row), let purpose = map.text("purpose").flatMap(SigningKeys.Purpose.init),
      let fromSeconds = map.integer("from"), let certificate = map.text("certificate"),
      let key = map.text("privateKey").flatMap({ RSAKey(privatePEM: $0) })
    else { return nil }
    self.init(id: id, purpose: purpose, fromSeconds: fromSeconds, key: key, certificate: certificate)
  }
}
