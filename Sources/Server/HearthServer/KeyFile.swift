import Accounts
import Glibc

/// Reads files with the keys of an identity provider: a JSON Web Key Set, or certificates by key ID.
package enum KeyFile {
  /// Returns the bytes of a file. If it is longer than allowed, returns one byte more than the limit, so that the
  /// parser reports the error.
  /// - Throws: ``HearthError/data(_:)`` if the file cannot be read.
  package static func read(_ path: String) throws(HearthError) -> [UInt8] {
    guard let stream = fopen(path, "re") else { throw unreadable(path) }
    defer { fclose(stream) }
    var bytes = [UInt8](repeating: 0, count: TrustedIssuers.keysBytesMax + 1)
    let count = fread(&bytes, 1, bytes.count, stream)
    guard ferror(stream) == 0 else { throw unreadable(path) }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  private static func unreadable(_ path: String) -> HearthError {
    .data("\(path) cannot be read: \(String(cString: strerror(errno)))")
  }
}
