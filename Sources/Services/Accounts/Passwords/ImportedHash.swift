import Basics
import CCrypto
import CSodium
import WireFormat

/// A password hash made by another system, with all parameters needed to compute it again.
struct ImportedHash: Equatable {
  /// The order of salt and password in the hashed text.
  enum Order: String { case saltFirst = "sp", passwordFirst = "ps" }

  enum Scheme: Equatable {
    /// Firebase's scheme: scrypt derives a key, which encrypts the signer key.
    case firebaseScrypt(signerKey: [UInt8], saltSeparator: [UInt8], rounds: Int, memoryCost: Int)
    /// RFC 7914.
    case scrypt(n: Int, r: Int, p: Int)
    /// RFC 8018, with HMAC over a digest.
    case pbkdf2(digest: String, rounds: Int)
    /// A digest of salt and password, then `rounds` - 1 times of its own result.
    case digest(String, rounds: Int, Order)
    /// An HMAC of salt and password.
    case hmac(digest: String, key: [UInt8], Order)
  }

  var scheme: Scheme
  var salt: [UInt8]
  var hash: [UInt8]

  /// The most memory that one check uses, in bytes. For scrypt, also the limit of the memory of all lanes together,
  /// about half a second of work.
  static let memoryBytesMax = 128 << 20
  /// The most rounds of any scheme.
  static let roundsMax = 120_000
  /// The longest hash, salt or key, in bytes.
  static let partBytesMax = 1024

  /// Creates a hash. Returns `nil` if a parameter is out of range or the check would cost too much.
  init?(_ scheme: Scheme, salt: [UInt8], hash: [UInt8]) {
    let isBounded =
      switch scheme {
      case .firebaseScrypt(let key, let separator, let rounds, let memoryCost):
        (1...8).contains(rounds) && (1...14).contains(memoryCost) && (1...Self.partBytesMax).contains(key.count)
          && separator.count <= Self.partBytesMax && hash.count == key.count
      case .scrypt(let n, let r, let p):
        (2...1 << 20).contains(n) && n & (n - 1) == 0 && (1...64).contains(r) && (1...16).contains(p)
          && 128 * n * r * p <= Self.memoryBytesMax
      case .pbkdf2(_, let rounds):
        // A long hash is computed in blocks, each of which costs all rounds.
        (1...Self.roundsMax).contains(rounds) && rounds * hash.count <= Self.roundsMax * 64
      case .digest(_, let rounds, _): (1...8192).contains(rounds)
      case .hmac(_, let key, _): key.count <= Self.partBytesMax
      }
    // A short or empty hash would match by chance.
    guard isBounded, (8...Self.partBytesMax).contains(hash.count), salt.count <= Self.partBytesMax else { return nil }
    self.scheme = scheme
    self.salt = salt
    self.hash = hash
  }

  /// Returns the bytes of an imported digest. Some systems store its hexadecimal text, which is twice as long.
  static func bytes(_ hash: [UInt8], of digest: String) -> [UInt8] {
    guard let kind = EVP_get_digestbyname(digest), hash.count == 2 * Int(EVP_MD_get_size(kind)) else { return hash }
    return Hexadecimal.bytes(String(decoding: hash, as: UTF8.self).lowercased()) ?? hash
  }

  /// Returns whether `password` matches the hash.
  func accepts(_ password: [UInt8]) -> Bool {
    guard let made = make(password), made.count == hash.count else { return false }
    return sodium_memcmp(made, hash, hash.count) == 0
  }

  private func make(_ password: [UInt8]) -> [UInt8]? {
    switch scheme {
    case .firebaseScrypt(let signerKey, let separator, let rounds, let memoryCost):
      scrypt(password, salt + separator, n: 1 << memoryCost, r: rounds, p: 1, count: 32)
        .flatMap { Self.encrypt(signerKey, key: $0) }
    case .scrypt(let n, let r, let p): scrypt(password, salt, n: n, r: r, p: p, count: hash.count)
    case .pbkdf2(let digest, let rounds): pbkdf2(password, digest, rounds)
    case .digest(let digest, let rounds, let order): Self.digest(joined(password, order), digest, rounds)
    case .hmac(let digest, let key, let order): Self.hmac(joined(password, order), digest, key)
    }
  }

  private func joined(_ password: [UInt8], _ order: Order) -> [UInt8] {
    order == .saltFirst ? salt + password : password + salt
  }

  // MARK: libcrypto

  private func scrypt(_ password: [UInt8], _ salt: [UInt8], n: Int, r: Int, p: Int, count: Int) -> [UInt8]? {
    var out = [UInt8](repeating: 0, count: count)
    let status = password.withUnsafeBytes { password in
      EVP_PBE_scrypt(
        password.baseAddress?.assumingMemoryBound(to: CChar.self), password.count, salt, salt.count, UInt64(n),
        UInt64(r), UInt64(p), UInt64(Self.memoryBytesMax + (64 << 20)), &out, count)
    }
    return status == 1 ? out : nil
  }

  private func pbkdf2(_ password: [UInt8], _ digest: String, _ rounds: Int) -> [UInt8]? {
    guard let kind = EVP_get_digestbyname(digest) else { return nil }
    var out = [UInt8](repeating: 0, count: hash.count)
    let status = password.withUnsafeBytes { password in
      PKCS5_PBKDF2_HMAC(
        password.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(password.count), salt, Int32(salt.count),
        Int32(rounds), kind, Int32(out.count), &out)
    }
    return status == 1 ? out : nil
  }

  private static func digest(_ text: [UInt8], _ digest: String, _ rounds: Int) -> [UInt8]? {
    guard let kind = EVP_get_digestbyname(digest) else { return nil }
    var text = text
    for _ in 0..<rounds {
      var out = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
      var count: UInt32 = 0
      guard EVP_Digest(text, text.count, &out, &count, kind, nil) == 1 else { return nil }
      text = Array(out.prefix(Int(count)))
    }
    return text
  }

  private static func hmac(_ text: [UInt8], _ digest: String, _ key: [UInt8]) -> [UInt8]? {
    var out = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count = 0
    let made = EVP_Q_mac(
      nil, "HMAC", nil, digest, nil, key, key.count, text, text.count, &out, out.count, &count)
    return made == nil ? nil : Array(out.prefix(count))
  }

  private static func encrypt(_ text: [UInt8], key: [UInt8]) -> [UInt8]? {
    guard let context = EVP_CIPHER_CTX_new() else { return nil }
    defer { EVP_CIPHER_CTX_free(context) }
    var out = [UInt8](repeating: 0, count: text.count)
    var count: Int32 = 0
    guard EVP_EncryptInit_ex(context, EVP_aes_256_ctr(), nil, key, [UInt8](repeating: 0, count: 16)) == 1,
      EVP_EncryptUpdate(context, &out, &count, text, Int32(text.count)) == 1, Int(count) == text.count
    else { return nil }
    return out
  }
}

/// The text form of a hash: `$scheme$name=value,…$salt$hash`, with bytes in base64.
extension ImportedHash {
  private static let digests = ["MD5", "SHA1", "SHA256", "SHA512"]

  /// The hash in its text form.
  var text: String {
    let (name, parameters): (String, String) =
      switch scheme {
      case .firebaseScrypt(let key, let separator, let rounds, let memoryCost):
        (
          "firebase-scrypt",
          "k=\(Base64.encode(key)),s=\(Base64.encode(separator)),r=\(rounds),m=\(memoryCost)"
        )
      case .scrypt(let n, let r, let p): ("scrypt", "n=\(n),r=\(r),p=\(p)")
      case .pbkdf2(let digest, let rounds): ("pbkdf2", "d=\(digest),r=\(rounds)")
      case .digest(let digest, let rounds, let order): ("digest", "d=\(digest),r=\(rounds),o=\(order.rawValue)")
      case .hmac(let digest, let key, let order):
        ("hmac", "d=\(digest),k=\(Base64.encode(key)),o=\(order.rawValue)")
      }
    return "$\(name)$\(parameters)$\(Base64.encode(salt))$\(Base64.encode(hash))"
  }

  /// Parses the text form. Returns `nil` if `text` is not valid.
  init?(text: String) {
    let parts = text.split(separator: "$", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 5, parts[0].isEmpty, let salt = Base64.decode(parts[3]), let hash = Base64.decode(parts[4])
    else { return nil }
    var values: [String: String] = [:]
    for pair in parts[2].split(separator: ",") {
      guard let equals = pair.firstIndex(of: "=") else { return nil }
      values[String(pair[..<equals])] = String(pair[pair.index(after: equals)...])
    }
    func number(_ name: String) -> Int? { values[name].flatMap { Int($0) } }
    func bytes(_ name: String) -> [UInt8]? { values[name].flatMap { Base64.decode($0) } }
    let digest = values["d"].flatMap { name in Self.digests.first { $0 == name } }
    let order = values["o"].flatMap(Order.init)
    let scheme: Scheme? =
      switch parts[1] {
      case "firebase-scrypt":
        if let key = bytes("k"), let separator = bytes("s"), let rounds = number("r"), let cost = number("m") {
          .firebaseScrypt(signerKey: key, saltSeparator: separator, rounds: rounds, memoryCost: cost)
        } else {
          nil
        }
      case "scrypt":
        if let n = number("n"), let r = number("r"), let p = number("p") { .scrypt(n: n, r: r, p: p) } else { nil }
      case "pbkdf2": if let digest, let rounds = number("r") { .pbkdf2(digest: digest, rounds: rounds) } else { nil }
      case "digest":
        if let digest, let order, let rounds = number("r") { .digest(digest, rounds: rounds, order) } else { nil }
      case "hmac":
        if let digest, let order, let key = bytes("k") { .hmac(digest: digest, key: key, order) } else { nil }
      default: nil
      }
    guard let scheme else { return nil }
    self.init(scheme, salt: salt, hash: hash)
  }
}
