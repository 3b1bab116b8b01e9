import Basics
import Digests
import Glibc
import KeyValue

/// A new file whose SHA-256 is computed while it is written.
final class DigestedFile {
  private let path: String
  private let descriptor: Int32
  private var hash = MessageDigest(.sha256)

  static let noDigests = CommandFailure.failed(
    "libcrypto cannot compute SHA-256; check the OpenSSL configuration")
  private static let readBytes = 1 << 20

  /// Creates a file that only its owner can read.
  /// - Throws: `StorageError` if it exists or cannot be created.
  init(_ path: String) throws(StorageError) {
    self.path = path
    descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw .system(operation: "open", path: path, code: errno) }
  }

  deinit { close(descriptor) }

  /// Appends bytes.
  /// - Throws: `StorageError` if they cannot be written.
  func write(_ bytes: [UInt8]) throws(StorageError) {
    do throws(Terminal.WriteFailure) { try Terminal(descriptor: descriptor).writeAll(bytes) } catch {
      if error.code == ENOSPC || error.code == EDQUOT { throw .diskFull(path: path) }
      throw .system(operation: "write", path: path, code: error.code)
    }
    bytes.withUnsafeBytes { hash.update($0) }
  }

  /// Writes the file to the disk. Returns the digest as 64 hexadecimal digits.
  /// - Throws: `StorageError` or ``CommandFailure`` if that fails.
  func finish() throws -> String {
    guard fsync(descriptor) == 0 else { throw StorageError.system(operation: "fsync", path: path, code: errno) }
    guard let digest = hash.finish() else { throw Self.noDigests }
    return Hexadecimal.text(digest)
  }

  /// Returns the digest of a file as 64 hexadecimal digits. Cost: reads the file.
  /// - Throws: `StorageError` or ``CommandFailure`` if that fails.
  static func digest(of path: String) throws -> String {
    var hash = MessageDigest(.sha256)
    // A closure cannot capture the digest, because it cannot be copied.
    let descriptor = try openForReading(path)
    defer { close(descriptor) }
    while let bytes = try part(of: descriptor, path) { bytes.withUnsafeBytes { hash.update($0) } }
    guard let digest = hash.finish() else { throw noDigests }
    return Hexadecimal.text(digest)
  }

  /// Passes the bytes of a file to `take`, a megabyte at a time.
  /// - Throws: `StorageError` if the file cannot be read, or the error of `take`.
  static func forEachPart(of path: String, _ take: ([UInt8]) throws -> Void) throws {
    let descriptor = try openForReading(path)
    defer { close(descriptor) }
    while let bytes = try part(of: descriptor, path) { try take(bytes) }
  }

  private static func openForReading(_ path: String) throws(StorageError) -> Int32 {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system(operation: "open", path: path, code: errno) }
    return descriptor
  }

  /// Returns the next part of a file, or `nil` at its end.
  private static func part(of descriptor: Int32, _ path: String) throws(StorageError) -> [UInt8]? {
    while true {
      var code: Int32 = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: readBytes) { space, count in
        let result = read(descriptor, space.baseAddress, space.count)
        code = result < 0 ? errno : 0
        count = max(0, result)
      }
      if code == EINTR { continue }
      guard code == 0 else { throw .system(operation: "read", path: path, code: code) }
      return bytes.isEmpty ? nil : bytes
    }
  }
}
