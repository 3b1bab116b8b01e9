import DocumentModel
import TextAnalysis
import WireFormat

/// A fuzzing entry point for searches. It accepts any bytes, must not trap, and checks invariants.
package enum SearchFuzz {
  /// Searches a document. The first byte chooses the language, and a zero byte separates the query from the document.
  package static func search(_ bytes: UnsafeRawBufferPointer) {
    guard let first = bytes.first, TextAnalyzer.version != nil else { return }
    let tags = ["en", "de", "ar", "ja", "th", "pl"]
    guard let language = TextLanguage(tag: tags[Int(first) % tags.count]) else { return }
    let split = bytes.firstIndex(of: 0) ?? bytes.count
    let text = String(decoding: bytes[min(1, split)..<split], as: UTF8.self)
    let document = String(decoding: bytes[split...], as: UTF8.self)
    guard let query = try? TextQuery(text, language) else { return }
    precondition(!query.terms.isEmpty, "a query has a term to find")
    precondition(Set(query.terms).count == query.terms.count, "no term occurs twice")
    let fields = EncodedFields(MapValue([("a", .string(document)), ("b", .array([.string(document)]))]))
    do {
      try fields.withMap { (map) throws(WireError) in try check(query, map, language) }
    } catch { preconditionFailure("the fields are valid: \(error)") }
  }

  /// The terms of a match must be those that an index contains, or searches with an index would miss documents.
  private static func check(_ query: TextQuery, _ map: EncodedMap, _ language: TextLanguage) throws(WireError) {
    guard let score = try query.score(map, TextFields(nil)) else { return }
    precondition(score > 0 && score < 1.9, "a score is between 0 and 1.9")
    let again = try query.score(map, TextFields(nil))
    precondition(again == score, "the score of a document is always the same")
    guard let analyzer = try? TextAnalyzers.take(language) else { return }
    defer { TextAnalyzers.give(analyzer) }
    var terms: Set<[UInt8]> = []
    try TextFields([FieldPath(field: "a")]).forEachString(in: map) { text in
      analyzer.forEachTerm(in: text) { terms.insert(Array($0)) }
    }
    precondition(terms.isSuperset(of: query.terms), "a match contains every term")
  }
}
