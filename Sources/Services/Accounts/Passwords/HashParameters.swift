package import WireFormat

/// The hash algorithm of a batch of imported passwords, with the parameters that all its hashes share (auth-api.md,
/// section 9).
package struct HashParameters: Sendable {
  private enum Kind: Sendable {
    case firebaseScrypt(signerKey: [UInt8], saltSeparator: [UInt8], rounds: Int, memoryCost: Int)
    case scrypt(n: Int, r: Int, p: Int)
    case pbkdf2(digest: String, rounds: Int)
    case digest(String, rounds: Int, ImportedHash.Order)
    case hmac(digest: String, key: [UInt8], ImportedHash.Order)
    case argon2(type: String, passes: Int, memoryKibibytes: Int)
    case bcrypt
  }

  private let kind: Kind?

  /// Reads the fields `hashAlgorithm` and its parameters from an import request.
  /// - Throws: ``AccountError`` `INVALID_HASH_ALGORITHM`, or `INVALID_HASH_PARAMETERS` with the invalid parameter.
  package init(_ fields: JSONTree) throws(AccountError) {
    guard let algorithm = fields["hashAlgorithm"]?.text, algorithm != "HASH_ALGORITHM_UNSPECIFIED" else {
      kind = nil
      return
    }
    func number(_ value: JSONTree?) -> Int? { value?.int64.map { Int($0) } }
    func bytes(_ value: JSONTree?) -> [UInt8]? { value?.text.flatMap { Base64.decode($0) } }
    func required<T>(_ value: T?, _ name: StaticString) throws(AccountError) -> T {
      guard let value else { throw AccountError(.invalidHashParameter, "\(name) is required for \(algorithm)") }
      return value
    }
    // Without an order, the salt comes first in a digest and last in an HMAC, as firebase-admin's tests expect.
    let order: ImportedHash.Order? =
      switch fields["passwordHashOrder"]?.text {
      case "SALT_AND_PASSWORD": .saltFirst
      case "PASSWORD_AND_SALT": .passwordFirst
      default: nil
      }
    let rounds = number(fields["rounds"])
    switch algorithm {
    case "SCRYPT":
      kind = .firebaseScrypt(
        signerKey: try required(bytes(fields["signerKey"]), "signerKey"),
        saltSeparator: bytes(fields["saltSeparator"]) ?? [], rounds: try required(rounds, "rounds"),
        memoryCost: try required(number(fields["memoryCost"]), "memoryCost"))
    case "STANDARD_SCRYPT":
      kind = .scrypt(
        n: try required(number(fields["cpuMemCost"]) ?? number(fields["memoryCost"]), "cpuMemCost"),
        r: try required(number(fields["blockSize"]), "blockSize"),
        p: try required(number(fields["parallelization"]), "parallelization"))
    case "PBKDF_SHA1": kind = .pbkdf2(digest: "SHA1", rounds: try required(rounds, "rounds"))
    case "PBKDF2_SHA256": kind = .pbkdf2(digest: "SHA256", rounds: try required(rounds, "rounds"))
    // Zero rounds and one round mean the same: the digest itself.
    case "MD5": kind = .digest("MD5", rounds: max(1, rounds ?? 0), order ?? .saltFirst)
    case "SHA1", "SHA256", "SHA512": kind = .digest(algorithm, rounds: max(1, rounds ?? 1), order ?? .saltFirst)
    case "HMAC_MD5", "HMAC_SHA1", "HMAC_SHA256", "HMAC_SHA512":
      kind = .hmac(
        digest: String(algorithm.dropFirst("HMAC_".count)),
        key: try required(bytes(fields["signerKey"]), "signerKey"), order ?? .passwordFirst)
    case "BCRYPT": kind = .bcrypt
    case "ARGON2":
      let parameters = fields["argon2Parameters"]
      let type = parameters?["hashType"]?.text ?? "ARGON2_ID"
      guard type == "ARGON2_ID" || type == "ARGON2_I", (number(parameters?["parallelism"]) ?? 1) == 1,
        parameters?["version"]?.text != "VERSION_10", bytes(parameters?["associatedData"])?.isEmpty ?? true
      else {
        throw AccountError(
          .invalidHashParameter, "only ARGON2_ID and ARGON2_I of version 13 with one lane and no associated data")
      }
      let passes = try required(number(parameters?["iterations"]), "iterations")
      let memory = try required(number(parameters?["memoryCostKib"]), "memoryCostKib")
      guard Argon2.allows(passes: passes, memoryKibibytes: memory) else {
        throw AccountError(
          .invalidHashParameter,
          "iterations must be at most \(Argon2.passesMax), memoryCostKib \(Argon2.memoryKibibytesMax), and their "
            + "product \(Argon2.workKibibytesMax)")
      }
      kind = .argon2(type: type == "ARGON2_ID" ? "argon2id" : "argon2i", passes: passes, memoryKibibytes: memory)
    default: throw AccountError(.invalidHashAlgorithm, algorithm)
    }
  }

  /// Returns the hash of one user of the batch. A hash that this server exported contains its own parameters.
  /// - Parameters:
  ///   - hash: the bytes of the hash.
  ///   - salt: the salt, which may be empty.
  /// - Throws: ``AccountError`` `MISSING_HASH_ALGORITHM`, or `INVALID_HASH_PARAMETERS` if the hash and the
  ///   parameters do not match.
  package func hash(_ hash: [UInt8], salt: [UInt8]) throws(AccountError) -> PasswordHash {
    if hash.first == UInt8(ascii: "$"), let text = String(validating: hash, as: UTF8.self) {
      if let known = PasswordHash(text: text) { return known }
      guard kind != nil, !text.hasPrefix("$argon2") else {
        throw AccountError(.invalidHashParameter, "the hash is damaged, or too expensive to check")
      }
    }
    if case .argon2(let type, let passes, let memory) = kind {
      return try argon2(type, passes, memory, salt: salt, hash: hash)
    }
    let imported: ImportedHash? =
      switch kind {
      case .firebaseScrypt(let key, let separator, let rounds, let memoryCost):
        ImportedHash(
          .firebaseScrypt(signerKey: key, saltSeparator: separator, rounds: rounds, memoryCost: memoryCost),
          salt: salt, hash: hash)
      case .scrypt(let n, let r, let p): ImportedHash(.scrypt(n: n, r: r, p: p), salt: salt, hash: hash)
      case .pbkdf2(let digest, let rounds):
        ImportedHash(.pbkdf2(digest: digest, rounds: rounds), salt: salt, hash: hash)
      case .digest(let digest, let rounds, let order):
        ImportedHash(.digest(digest, rounds: rounds, order), salt: salt, hash: ImportedHash.bytes(hash, of: digest))
      case .hmac(let digest, let key, let order):
        ImportedHash(.hmac(digest: digest, key: key, order), salt: salt, hash: ImportedHash.bytes(hash, of: digest))
      // A bcrypt hash contains its own parameters and was returned above.
      case .bcrypt, .argon2: nil
      case nil: throw AccountError(.missingHashAlgorithm)
      }
    guard let imported else {
      throw AccountError(.invalidHashParameter, "the hash does not match the parameters")
    }
    return PasswordHash(unchecked: imported.text)
  }

  private func argon2(
    _ type: String, _ passes: Int, _ memory: Int, salt: [UInt8], hash: [UInt8]
  ) throws(AccountError) -> PasswordHash {
    func unpadded(_ bytes: [UInt8]) -> String { String(Base64.encode(bytes).prefix { $0 != "=" }) }
    let text = "$\(type)$v=19$m=\(memory),t=\(passes),p=1$\(unpadded(salt))$\(unpadded(hash))"
    guard salt.count >= 8, hash.count >= 16, let hash = PasswordHash(text: text) else {
      throw AccountError(.invalidHashParameter, "the salt or the hash is too short (8 and 16 bytes) or too long")
    }
    return hash
  }
}
