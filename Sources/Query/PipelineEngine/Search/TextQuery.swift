import WireFormat

/// The text of `document_matches`: words and phrases that a document must have, and others that it must not have
/// (pipelines.md, section 3.17).
struct TextQuery {
  /// One or more stems in this order.
  private struct Phrase {
    var stems: [String]
    var isExcluded: Bool
  }

  private var phrases: [Phrase] = []
  private let stemmer: Stemmer

  /// Parses a text: words, `-word`, `"a phrase"` and `-"a phrase"`.
  /// - Throws: ``PipelineError`` if it contains no word to find, or too many, or the language is unknown.
  init(_ text: String, language: String) throws(PipelineError) {
    stemmer = try Stemmer(language)
    var rest = Substring(text)
    while let first = rest.first {
      if first.isWhitespace {
        rest.removeFirst()
        continue
      }
      let isExcluded = first == "-"
      if isExcluded { rest.removeFirst() }
      let part: Substring
      if rest.first == "\"" {
        rest.removeFirst()
        part = rest.prefix { $0 != "\"" }
        rest = rest.dropFirst(part.count + 1)
      } else {
        part = rest.prefix { !$0.isWhitespace }
        rest = rest.dropFirst(part.count)
      }
      let stems = WordReader.words(in: part.utf8).map(stemmer.stem)
      guard !stems.isEmpty else { continue }
      guard phrases.count < PipelineLimits.searchPhrasesMax else {
        throw PipelineError(
          "query: the text of document_matches has more than \(PipelineLimits.searchPhrasesMax) words and phrases.")
      }
      phrases.append(Phrase(stems: stems, isExcluded: isExcluded))
    }
    guard phrases.contains(where: { !$0.isExcluded }) else {
      throw PipelineError("query: the text of document_matches has no word to find.")
    }
  }

  /// Returns the score of a document with all words and phrases, from 0 to 1.9, or `nil` if it does not match. More
  /// occurrences score higher.
  /// - Throws: ``WireError`` if the fields are damaged.
  func score(_ fields: EncodedMap) throws(WireError) -> Double? {
    var stems: [String] = []
    try collect(fields, &stems)
    var score = 0.0
    var wanted = 0.0
    for phrase in phrases {
      let count = Self.occurrences(of: phrase.stems, in: stems)
      if phrase.isExcluded {
        if count > 0 { return nil }
        continue
      }
      guard count > 0 else { return nil }
      wanted += 1
      // The saturation of Okapi BM25, without the frequency in other documents.
      score += Double(count) / (Double(count) + Self.saturation)
    }
    return Self.scoreMax * score / wanted
  }

  private static let saturation = 1.2
  private static let scoreMax = 1.9

  private static func occurrences(of phrase: [String], in stems: [String]) -> Int {
    guard stems.count >= phrase.count else { return 0 }
    return (0...(stems.count - phrase.count)).count { start in
      phrase.indices.allSatisfy { stems[start + $0] == phrase[$0] }
    }
  }

  /// Appends the stems of all strings in a map, and an empty one after each string, so that no phrase spans two.
  private func collect(_ map: EncodedMap, _ stems: inout [String]) throws(WireError) {
    var entries = map.makeIterator()
    while let entry = try entries.next() { try collect(entry.value, &stems) }
  }

  private func collect(_ value: EncodedValue, _ stems: inout [String]) throws(WireError) {
    switch try value.content {
    case .string(let text):
      for word in WordReader.words(in: text) { stems.append(stemmer.stem(word)) }
      stems.append("")
    case .map(let map): try collect(map, &stems)
    case .array(let array):
      var elements = array.makeIterator()
      while let element = try elements.next() { try collect(element, &stems) }
    default: break
    }
  }
}

/// Divides text into lowercase words: runs of letters, digits and marks. An ideograph is a word of its own. HTML tags
/// are not part of the text.
enum WordReader {
  static func words(in text: some Sequence<UInt8>) -> [String] {
    var words: [String] = []
    var word = String.UnicodeScalarView()
    var isInTag = false
    func end() {
      if !word.isEmpty { words.append(String(word)) }
      word = String.UnicodeScalarView()
    }
    let scalars = Array(String(decoding: Array(text), as: UTF8.self).unicodeScalars)
    for (index, scalar) in scalars.enumerated() {
      if isInTag {
        isInTag = scalar != ">"
        continue
      }
      if scalar == "<", index + 1 < scalars.count, isTagStart(scalars[index + 1]) {
        isInTag = true
        end()
        continue
      }
      let properties = scalar.properties
      if properties.isIdeographic {
        end()
        words.append(String(scalar))
      } else if properties.isAlphabetic || properties.numericType != nil
        || properties.generalCategory == .nonspacingMark
      {
        word.append(contentsOf: properties.lowercaseMapping.unicodeScalars)
      } else if isApostrophe(scalar), !word.isEmpty, index + 1 < scalars.count,
        scalars[index + 1].properties.isAlphabetic
      {
        word.append("'")
      } else {
        end()
      }
    }
    end()
    return words
  }

  private static func isTagStart(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "/" || scalar == "!" || (scalar.isASCII && scalar.properties.isAlphabetic)
  }

  private static func isApostrophe(_ scalar: Unicode.Scalar) -> Bool { scalar == "'" || scalar == "\u{2019}" }
}
