import Basics

/// The SHA-256 of content.
package struct ContentDigest: Hashable, Sendable {
  /// The 32 bytes of the digest.
  package let bytes: [UInt8]

  /// Creates a digest from 32 bytes.
  package init(bytes: [UInt8]) { self.bytes = bytes }

  /// The digest as 64 lower-case hexadecimal digits.
  package var text: String { Hexadecimal.text(bytes) }

  /// Parses 64 lower-case hexadecimal digits. Returns `nil` if the text is not valid.
  package init?(text: some StringProtocol) {
    guard text.utf8.count == 64, let bytes = Hexadecimal.bytes(text) else { return nil }
    self.bytes = bytes
  }
}
