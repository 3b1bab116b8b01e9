import Basics

/// A copy of content in the shared content. Its name is never used again.
///
/// Equal content may have several copies: an upload makes a copy of its own unless an object refers to the content already.
/// So the removal of a copy, however late it happens, cannot remove what a later upload relies on.
package struct SharedCopy: Hashable, Sendable {
  /// The content.
  package let digest: ContentDigest
  /// A random number.
  package let number: UInt64

  /// Creates the name of a copy. The number is random unless it is given.
  package init(of digest: ContentDigest, number: UInt64 = .random(in: 0 ... .max)) {
    self.digest = digest
    self.number = number
  }

  /// The number as 16 lower-case hexadecimal digits.
  package var numberText: String {
    Hexadecimal.text((0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) })
  }

  /// Reads a name from its parts. Returns `nil` if one of them has another form, such as that of a foreign file.
  package init?(digestText: some StringProtocol, numberText: some StringProtocol) {
    guard let digest = ContentDigest(text: digestText), let number = Self.number(numberText) else { return nil }
    self.init(of: digest, number: number)
  }

  /// Reads a number of 16 lower-case hexadecimal digits. Returns `nil` if the text has another form.
  package static func number(_ text: some StringProtocol) -> UInt64? {
    guard text.utf8.count == 16, let bytes = Hexadecimal.bytes(text) else { return nil }
    return bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }
}
