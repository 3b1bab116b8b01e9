import Accounts
import Glibc

/// A file with the keys of an identity provider elsewhere: a JSON Web Key Set, or certificates by key id.
package enum KeyFile {
  /// The bytes of a file; one more than keys may have where it is longer, so that who reads the keys says so.
  /// - Throws: ``HearthError/data(_:)`` when it cannot be read.
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
