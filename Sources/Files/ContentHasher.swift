import CCrypto

/// Computes the checksums of content while it streams by. Belongs to one thread at a time.
package final class ContentHasher {
  private let md5: OpaquePointer?
  private let sha256: OpaquePointer?
  private var crc32c: UInt32 = 0
  /// Bytes taken so far.
  package private(set) var size = 0

  /// Starts with nothing.
  package init() {
    md5 = EVP_MD_CTX_new()
    sha256 = EVP_MD_CTX_new()
    if EVP_DigestInit_ex(md5, EVP_md5(), nil) != 1 || EVP_DigestInit_ex(sha256, EVP_sha256(), nil) != 1 {
      isBroken = true
    }
  }

  deinit {
    EVP_MD_CTX_free(md5)
    EVP_MD_CTX_free(sha256)
  }

  /// Whether the library could not compute a digest: it has no memory.
  private var isBroken = false

  /// Takes the next bytes.
  package func update(_ bytes: UnsafeRawBufferPointer) {
    guard !bytes.isEmpty else { return }
    size += bytes.count
    crc32c = Crc32c.extend(crc32c, bytes)
    if EVP_DigestUpdate(md5, bytes.baseAddress, bytes.count) != 1 { isBroken = true }
    if EVP_DigestUpdate(sha256, bytes.baseAddress, bytes.count) != 1 { isBroken = true }
  }

  /// The checksums of all bytes. Call once.
  /// - Throws: ``FilesError/system(operation:path:code:)`` where the library failed.
  package func finish() throws(FilesError) -> ContentSummary {
    let digest = result(sha256, count: 32)
    let sum = result(md5, count: 16)
    guard !isBroken else { throw .system(operation: "EVP_DigestUpdate", path: "libcrypto", code: 12) }
    return ContentSummary(size: size, crc32c: crc32c, md5: sum, digest: ContentDigest(bytes: digest))
  }

  private func result(_ context: OpaquePointer?, count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var length: UInt32 = 0
    if EVP_DigestFinal_ex(context, &bytes, &length) != 1 || Int(length) != count { isBroken = true }
    return Array(bytes.prefix(count))
  }
}
