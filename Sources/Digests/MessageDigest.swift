import CCrypto

/// The digest of bytes that arrive in pieces, computed by libcrypto. Used by one thread at a time.
package struct MessageDigest: ~Copyable {
  /// A hash function.
  package enum Algorithm: Sendable {
    /// RFC 1321; 16 bytes. For checksums only, because collisions are easy to make.
    case md5
    /// FIPS 180-4; 32 bytes.
    case sha256
  }

  private let context: OpaquePointer?
  /// Whether libcrypto failed: memory is short, or its configuration forbids the algorithm.
  private var isBroken: Bool

  /// Starts the digest of no bytes.
  package init(_ algorithm: Algorithm) {
    context = EVP_MD_CTX_new()
    isBroken = context == nil || EVP_DigestInit_ex(context, Self.function(algorithm), nil) != 1
  }

  deinit { EVP_MD_CTX_free(context) }

  /// Processes the next bytes.
  package mutating func update(_ bytes: UnsafeRawBufferPointer) {
    if isBroken || bytes.isEmpty { return }
    isBroken = EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) != 1
  }

  /// Returns the digest of all bytes, or `nil` if libcrypto failed. Call it once.
  package mutating func finish() -> [UInt8]? {
    isBroken ? nil : Self.bytes { EVP_DigestFinal_ex(context, $0, $1) }
  }

  /// Returns the digest of `bytes`, or `nil` if libcrypto failed.
  package static func compute(_ algorithm: Algorithm, _ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
    Self.bytes { EVP_Digest(bytes.baseAddress, bytes.count, $0, $1, function(algorithm), nil) }
  }

  private static func function(_ algorithm: Algorithm) -> OpaquePointer? {
    switch algorithm {
    case .md5: EVP_md5()
    case .sha256: EVP_sha256()
    }
  }

  /// Returns the bytes that `write` produces, or `nil` if its status is not 1.
  private static func bytes(
    _ write: (UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<UInt32>) -> Int32
  ) -> [UInt8]? {
    var isWritten = false
    let bytes = [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
      var length: UInt32 = 0
      isWritten = write(buffer.baseAddress, &length) == 1
      count = isWritten ? Int(length) : 0
    }
    return isWritten ? bytes : nil
  }
}
