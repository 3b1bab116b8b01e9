import CCrypto

/// Keyed digests of messages (HMAC, RFC 2104), computed by libcrypto.
package enum MessageAuthentication {
  /// Returns the HMAC-SHA256 of bytes, 32 bytes long, or `nil` if libcrypto failed.
  package static func sha256(_ bytes: [UInt8], key: [UInt8]) -> [UInt8]? {
    var code = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count = 0
    // Both pointers must be valid for empty arrays too.
    let isDone = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: max(1, key.count)) { space in
      _ = space.initialize(from: key)
      return EVP_Q_mac(
        nil, "HMAC", nil, "SHA256", nil, space.baseAddress, key.count, bytes, bytes.count, &code, code.count, &count)
        != nil
    }
    return isDone ? Array(code.prefix(count)) : nil
  }
}
