/// A language in which texts are searched. It decides how words are reduced to their stems.
package struct TextLanguage: Hashable, Sendable {
  /// The ISO 639 code: two lowercase letters.
  package let code: String

  /// Creates the language of a BCP 47 tag such as `en-US`, or `nil` if it is not in ``stemmed`` or ``plain``.
  package init?(tag: String) {
    let code = tag.utf8.prefix { $0 != UInt8(ascii: "-") }.map { $0 | 0x20 }
    guard code.count == 2 else { return nil }
    let text = String(decoding: code, as: UTF8.self)
    guard Self.stemmed.contains(text) || Self.plain.contains(text) else { return nil }
    self.code = text
  }

  private init(code: String) { self.code = code }

  /// The language of texts that name no other.
  package static let english = TextLanguage(code: "en")

  /// Whether words have stems. If not, a search finds only words in the same form.
  package var hasStems: Bool { Self.stemmed.contains(code) }

  /// The codes of languages that Snowball has an algorithm for.
  package static let stemmed: Set<String> = [
    "ar", "ca", "da", "de", "el", "en", "es", "eu", "fi", "fr", "ga", "hi", "hu", "hy", "id", "it", "lt", "ne", "nl",
    "no", "pt", "ro", "ru", "sr", "sv", "ta", "tr", "yi",
  ]
  /// The codes of other languages. Their words keep their form.
  package static let plain: Set<String> = [
    "bg", "bn", "cs", "et", "fa", "gu", "he", "hr", "ja", "kn", "ko", "lv", "ml", "mr", "pl", "sk", "sl", "te", "th",
    "uk", "ur", "vi", "zh",
  ]
}
