import DocumentModel
import Glibc
import TextAnalysis
import WireFormat

/// The text of `document_matches`: words and phrases that a document must have, and others that it must not have
/// (pipelines.md, section 3.17).
///
/// Use it on one thread at a time.
final class TextQuery {
  /// One or more terms in this order, by their numbers.
  private struct Phrase {
    var terms: [Int]
    var isExcluded: Bool
  }

  private var phrases: [Phrase] = []
  private let analyzer: TextAnalyzer
  /// The terms of all phrases, without duplicates.
  private var known: [[UInt8]] = []
  /// The numbers of the known terms in a document, in its order. ``gap`` represents other terms between them.
  private var found: [Int] = []
  private static let gap = -1

  /// Parses a text: words, `-word`, `"a phrase"` and `-"a phrase"`. Words that are joined, as in `well-known`, are a
  /// phrase.
  /// - Throws: ``PipelineError`` if it contains no word to find, or too many, or a library is not installed.
  init(_ text: String, _ language: TextLanguage) throws(PipelineError) {
    guard text.utf8.count <= PipelineLimits.searchTextBytesMax else {
      throw PipelineError(
        "query: the text of document_matches is longer than \(PipelineLimits.searchTextBytesMax) bytes.")
    }
    do throws(TextAnalysisError) { analyzer = try TextAnalyzers.take(language) } catch {
      throw PipelineError("The stage search cannot divide texts into words: \(error.description).", .unimplemented)
    }
    var rest = text.unicodeScalars[...]
    while let first = rest.first {
      if first.properties.isWhitespace {
        rest.removeFirst()
        continue
      }
      let isExcluded = first == "-"
      if isExcluded { rest.removeFirst() }
      let isQuoted = rest.first == "\""
      if isQuoted { rest.removeFirst() }
      let end = rest.firstIndex { isQuoted ? $0 == "\"" : $0.properties.isWhitespace } ?? rest.endIndex
      try add(String(rest[..<end]), isExcluded: isExcluded)
      rest = rest[end...].dropFirst(isQuoted ? 1 : 0)
    }
    guard phrases.contains(where: { !$0.isExcluded }) else {
      throw PipelineError("query: the text of document_matches has no word to find.")
    }
  }

  deinit { TextAnalyzers.give(analyzer) }

  private func add(_ part: String, isExcluded: Bool) throws(PipelineError) {
    var terms: [[UInt8]] = []
    var part = part
    part.withUTF8 { utf8 in
      analyzer.forEachTerm(in: UnsafeRawBufferPointer(utf8)) { term in
        if terms.count <= PipelineLimits.searchWordsMax { terms.append(Array(term)) }
      }
    }
    guard !terms.isEmpty else { return }
    var phrase = Phrase(terms: [], isExcluded: isExcluded)
    for term in terms {
      let number = known.firstIndex(of: term) ?? known.count
      if number == known.count { known.append(term) }
      phrase.terms.append(number)
    }
    phrases.append(phrase)
    guard phrases.count <= PipelineLimits.searchPhrasesMax else {
      throw PipelineError(
        "query: the text of document_matches has more than \(PipelineLimits.searchPhrasesMax) words and phrases.")
    }
    guard phrases.reduce(0, { $0 + $1.terms.count }) <= PipelineLimits.searchWordsMax else {
      throw PipelineError(
        "query: the text of document_matches has more than \(PipelineLimits.searchWordsMax) words.")
    }
  }

  /// The terms that every match contains, without duplicates. There is at least one.
  var terms: [[UInt8]] {
    var numbers: Set<Int> = []
    for phrase in phrases where !phrase.isExcluded { numbers.formUnion(phrase.terms) }
    return numbers.sorted().map { known[$0] }
  }

  /// Returns the score of a document with all words and phrases, above 0 and below 1.9, or `nil` if it does not match.
  /// More occurrences score higher. Cost: linear in the strings of the fields.
  /// - Throws: ``WireError`` if the fields are damaged.
  func score(_ document: EncodedMap, _ fields: TextFields) throws(WireError) -> Double? {
    found.removeAll(keepingCapacity: true)
    try fields.forEachString(in: document) { text in
      analyzer.forEachTerm(in: text) { add(number(of: $0)) }
      // No phrase spans two strings.
      add(Self.gap)
    }
    var score = 0.0
    var wanted = 0.0
    for phrase in phrases {
      let count = occurrences(of: phrase.terms)
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

  private func add(_ number: Int) {
    if number != Self.gap || found.last ?? Self.gap != Self.gap { found.append(number) }
  }

  /// Returns the number of a term, or ``gap`` if the query does not contain it.
  private func number(of term: UnsafeRawBufferPointer) -> Int {
    for number in known.indices where known[number].count == term.count {
      let isSame = known[number].withUnsafeBytes { known in
        guard let a = known.baseAddress, let b = term.baseAddress else { return true }
        return memcmp(a, b, term.count) == 0
      }
      if isSame { return number }
    }
    return Self.gap
  }

  private func occurrences(of phrase: [Int]) -> Int {
    guard found.count >= phrase.count else { return 0 }
    var count = 0
    for start in 0...(found.count - phrase.count) where found[start] == phrase[0] {
      if phrase.indices.allSatisfy({ found[start + $0] == phrase[$0] }) { count += 1 }
    }
    return count
  }
}
