import CStemmer

/// Reduces words to their stems, so that a search for `taco` finds `tacos`. Uses Snowball's algorithms; words of other
/// languages keep their form.
final class Stemmer {
  private let stemmer: UnsafeMutableRawPointer?

  /// Languages without an algorithm. Their words keep their form.
  private static let plainLanguages: Set<String> = [
    "bg", "bn", "cs", "et", "fa", "gu", "he", "hr", "ja", "kn", "ko", "lv", "ml", "mr", "pl", "sk", "sl", "te", "th",
    "uk", "ur", "vi", "zh",
  ]

  /// Creates a stemmer for a language, given as a BCP 47 tag such as `en-US`.
  /// - Throws: ``PipelineError`` if the language is unknown, or if the library is not installed.
  init(_ language: String) throws(PipelineError) {
    if let reason = hearth_stemmer_load() {
      throw PipelineError(
        "The stage search needs the library libstemmer on the server (Debian: libstemmer0d): "
          + String(cString: reason), .unimplemented)
    }
    let code = language.split(separator: "-").first.map { $0.lowercased() } ?? ""
    // The library also knows algorithms by other names, such as "porter".
    stemmer = code.utf8.count == 2 ? hearth_stemmer_create(code) : nil
    guard stemmer != nil || Self.plainLanguages.contains(code) else {
      throw PipelineError("language_code: the language \"\(language)\" is unknown.")
    }
  }

  deinit { if let stemmer { hearth_stemmer_destroy(stemmer) } }

  /// Returns the stem of a lowercase word.
  func stem(_ word: String) -> String {
    guard let stemmer else { return word }
    var word = word
    return word.withUTF8 { bytes in
      var count: Int32 = 0
      guard bytes.count <= Self.wordBytesMax,
        let stem = hearth_stemmer_stem(stemmer, bytes.baseAddress, Int32(bytes.count), &count)
      else { return String(decoding: bytes, as: UTF8.self) }
      return String(decoding: UnsafeBufferPointer(start: stem, count: Int(count)), as: UTF8.self)
    }
  }

  /// Longer words keep their form.
  private static let wordBytesMax = 200
}
