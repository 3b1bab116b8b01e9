import CStemmer
import DocumentModel

/// Reduces words to their stems with Snowball's algorithms, so that a search for `taco` finds `tacos`.
struct Stemmer: ~Copyable {
  private let stemmer: UnsafeMutableRawPointer?

  /// Creates a stemmer. The library must be loaded.
  /// - Throws: ``TextAnalysisError`` if the library lacks the algorithm of the language.
  init(_ language: TextLanguage) throws(TextAnalysisError) {
    stemmer = language.hasStems ? hearth_stemmer_create(language.code) : nil
    guard stemmer != nil || !language.hasStems else {
      throw TextAnalysisError("libstemmer has no algorithm for the language \(language.code)")
    }
  }

  deinit { if let stemmer { hearth_stemmer_destroy(stemmer) } }

  /// Returns the stem of a folded word, valid until the next call. A language without stems returns the word, and so does
  /// a word of which an algorithm leaves nothing.
  func stem(_ word: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var count: Int32 = 0
    guard let stemmer,
      let stem = hearth_stemmer_stem(
        stemmer, word.baseAddress?.assumingMemoryBound(to: UInt8.self), Int32(word.count), &count),
      count > 0
    else { return word }
    return UnsafeRawBufferPointer(start: stem, count: Int(count))
  }
}
