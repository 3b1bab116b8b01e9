import CICU
import CStemmer
package import DocumentModel

/// The reason why texts cannot be divided into words: a library is not installed, or has no memory.
package struct TextAnalysisError: Error, CustomStringConvertible {
  /// The failed step, without a final period.
  package let description: String

  init(_ description: String) { self.description = description }
}

/// Divides texts of one language into terms: words without differences of case, reduced to their stems.
///
/// ICU finds the words and folds their case, Snowball finds the stems. Tags of HTML are not part of a text. Use an
/// analyzer on one thread at a time; ``TextAnalyzers`` keeps some for reuse. Memory: a copy of the longest text so far
/// that contained a tag.
package final class TextAnalyzer {
  /// The language of the texts.
  package let language: TextLanguage
  private let words: UnsafeMutableRawPointer
  private let stemmer: Stemmer
  /// A text with spaces in place of its tags.
  private var cleaned: [UInt8] = []
  private let folded: UnsafeMutableRawBufferPointer

  /// Loads the libraries. Returns the reason if one is missing, or `nil`. Cost: a few milliseconds at the first call.
  package static var unavailableReason: String? {
    if let reason = hearth_icu_load() {
      return "ICU is not available (Debian: libicu72, or libicu of a later version): \(String(cString: reason))"
    }
    guard let reason = hearth_stemmer_load() else { return nil }
    return "libstemmer is not available (Debian: libstemmer0d): \(String(cString: reason))"
  }

  /// The version of the terms. An index that was built with another version must be built again. `nil` if the libraries
  /// are not available.
  package static let version: String? =
    unavailableReason == nil ? "1 icu \(String(cString: hearth_icu_version()))" : nil

  /// Creates an analyzer. Cost: some ten microseconds.
  /// - Throws: ``TextAnalysisError`` if a library is not available.
  package init(_ language: TextLanguage) throws(TextAnalysisError) {
    if let reason = Self.unavailableReason { throw TextAnalysisError(reason) }
    self.language = language
    stemmer = try Stemmer(language)
    guard let words = hearth_words_create(language.code) else {
      throw TextAnalysisError("ICU cannot divide texts of the language \(language.code) into words")
    }
    self.words = words
    folded = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.foldedBytesMax, alignment: 1)
  }

  deinit {
    hearth_words_destroy(words)
    folded.deallocate()
  }

  /// Calls `body` with each term of a text in UTF-8, in order. The bytes of a term are valid during the call. At most
  /// ``Limits/indexedWordBytesMax`` bytes of a word count. Cost: about 0.1 microseconds for each byte.
  package func forEachTerm(in text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) {
    guard !text.isEmpty else { return }
    guard removeTags(text) else { return divide(text, body) }
    cleaned.withUnsafeBytes { divide($0, body) }
    if cleaned.capacity > Self.keptBytesMax { cleaned = [] }
  }

  private func divide(_ text: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void) {
    let start = text.baseAddress?.assumingMemoryBound(to: CChar.self)
    guard hearth_words_begin(words, start, Int64(text.count)) != 0 else { return }
    var bounds: (start: Int32, end: Int32) = (0, 0)
    while hearth_words_next(words, &bounds.start, &bounds.end) != 0 {
      let word = UnsafeRawBufferPointer(rebasing: text[Int(bounds.start)..<Int(bounds.end)])
      let folded = fold(Self.cut(word))
      if !folded.isEmpty { body(stemmer.stem(folded)) }
    }
  }

  /// Returns at most as many bytes of a word as an index keeps, without a part of a character.
  private static func cut(_ word: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard word.count > Limits.indexedWordBytesMax else { return word }
    var count = Limits.indexedWordBytesMax
    while count > 0, word[count] & 0xC0 == 0x80 { count -= 1 }
    return UnsafeRawBufferPointer(rebasing: word[..<count])
  }

  private func fold(_ word: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    var isASCII = true
    for (index, byte) in word.enumerated() {
      guard byte < 0x80 else {
        isASCII = false
        break
      }
      folded[index] = byte &- UInt8(ascii: "A") < 26 ? byte | 0x20 : byte
    }
    if isASCII { return UnsafeRawBufferPointer(rebasing: folded[..<word.count]) }
    let count = hearth_words_fold(
      word.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(word.count),
      folded.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(folded.count))
    guard count >= 0 else { return word }
    return straightened(UnsafeMutableRawBufferPointer(rebasing: folded[..<Int(count)]))
  }

  /// Replaces the typographic apostrophe by the plain one, which the stemmers know.
  private func straightened(_ word: UnsafeMutableRawBufferPointer) -> UnsafeRawBufferPointer {
    var end = 0
    var index = 0
    while index < word.count {
      if word[index] == 0xE2, index + 2 < word.count, word[index + 1] == 0x80, word[index + 2] == 0x99 {
        word[end] = UInt8(ascii: "'")
        index += 3
      } else {
        word[end] = word[index]
        index += 1
      }
      end += 1
    }
    return UnsafeRawBufferPointer(rebasing: word[..<end])
  }

  // MARK: Tags

  /// Copies a text with tags to ``cleaned``, with spaces in place of the tags. Returns `false` if it has none. Cost: one
  /// pass.
  private func removeTags(_ text: UnsafeRawBufferPointer) -> Bool {
    var isCopied = false
    var place = 0
    while let start = text[place...].firstIndex(of: UInt8(ascii: "<")) {
      guard start + 1 < text.count else { break }
      guard Self.beginsTag(text[start + 1]) else {
        place = start + 1
        continue
      }
      // Without an end, neither this nor a later one is a tag.
      guard let end = text[start...].firstIndex(of: UInt8(ascii: ">")) else { break }
      if !isCopied {
        cleaned.removeAll(keepingCapacity: true)
        cleaned.append(contentsOf: text)
        isCopied = true
      }
      for index in start...end { cleaned[index] = UInt8(ascii: " ") }
      place = end + 1
    }
    return isCopied
  }

  private static func beginsTag(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "/") || byte == UInt8(ascii: "!") || (byte | 0x20) &- UInt8(ascii: "a") < 26
  }

  /// The bytes of a folded word. Folding makes a word at most 18 times as long, and much longer ones are not folded.
  private static let foldedBytesMax = 2048
  /// The bytes of ``cleaned`` that stay allocated between texts.
  private static let keptBytesMax = 64 << 10
}
