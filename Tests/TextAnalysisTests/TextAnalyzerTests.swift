import DocumentModel
import TestSupport
import Testing
import TextAnalysis
import WireFormat

/// The terms of texts.
@Suite struct TextAnalyzerTests {
  struct Case: CustomTestStringConvertible, Sendable {
    let language: String
    let text: String
    let terms: [String]

    var testDescription: String { "\(language): \(text)" }

    init(_ language: String, _ text: String, _ terms: String) {
      self.language = language
      self.text = text
      self.terms = terms.split(separator: " ").map(String.init)
    }
  }

  @Test(arguments: [
    // Words, case, stems.
    Case("en", "Tacos, TACO & a taco!", "taco taco a taco"), Case("en", "running runs ran", "run run ran"),
    Case("en", "Sam's and Sam’s", "sam and sam"), Case("en", "3.14 or 42", "3.14 or 42"), Case("en", "", ""),
    Case("en", " . , -- 😀 ", ""), Case("de", "Die Häuser der STRASSE", "die haus der strass"),
    Case("fr", "les chevaux mangeaient", "le cheval mang"), Case("es", "corriendo corren", "corr corr"),
    // A language without stems.
    Case("pl", "Tacos tacos", "tacos tacos"),
    // Compatible and composed forms are one word.
    Case("pl", "ﬁn fin Ｆｉｎ", "fin fin fin"), Case("pl", "e\u{301} é É", "é é é"), Case("pl", "ẞ ß SS", "ss ss ss"),
    // Languages without spaces.
    Case("ja", "東京に行く", "東京 に 行く"), Case("th", "ภาษาไทย", "ภาษา ไทย"),
    // Tags of HTML.
    Case("en", "<b>Tacos</b> and<br/>beans", "taco and bean"), Case("en", "<!-- no --> yes", "yes"),
    Case("en", "1 < 2 > 1 <3", "1 2 1 3"), Case("en", "an open <b without end", "an open b without end"),
  ]) func textsHaveTheirTerms(_ test: Case) throws {
    #expect(try Self.terms(of: Array(test.text.utf8), test.language) == test.terms)
  }

  /// Of a long word, only the start counts.
  @Test func longWordsAreCut() throws {
    let word = String(repeating: "ab", count: 5000)
    #expect(try Self.terms(of: Array(word.utf8), "pl") == [String(repeating: "ab", count: 64)])
    let wide = String(repeating: "é", count: 1000)
    #expect(try Self.terms(of: Array(("x" + wide).utf8), "pl") == ["x" + String(repeating: "é", count: 63)])
  }

  /// Bytes that are not UTF-8, characters that fold to many others, and long runs end without a failure.
  @Test func hostileTextsHaveTerms() throws {
    #expect(try Self.terms(of: [0xFF, 0xFE, 0x20, 0x61, 0xE2, 0x82], "en") == ["a"])
    #expect(try !Self.terms(of: Array(String(repeating: "\u{FDFA}", count: 60).utf8), "en").isEmpty)
    for piece in ["<a", "<", "\"", "\u{301}", "👨‍👩‍👧", "ก", "漢", "a\u{200D}", "\u{0}"] {
      _ = try Self.terms(of: Array(String(repeating: piece, count: 20_000).utf8), "en")
    }
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SplitMix(seed: seed)
    for language in ["en", "ar", "ja", "yi"] {
      for _ in 0..<200 {
        let bytes = (0..<Int.random(in: 0...200, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
        for term in try Self.terms(of: bytes, language) { #expect(!term.isEmpty, "seed \(seed)") }
      }
    }
  }

  /// Every language that the index file accepts can be analyzed.
  @Test func everyLanguageHasAnAnalyzer() throws {
    for code in TextLanguage.stemmed.union(TextLanguage.plain) {
      let language = try #require(TextLanguage(tag: code + "-XX"))
      #expect(try Self.terms(of: Array("123".utf8), language.code) == ["123"])
    }
    for tag in ["", "e", "eng", "xx", "porter", "e€", "-en"] { #expect(TextLanguage(tag: tag) == nil, "\(tag)") }
    #expect(TextLanguage(tag: "DE-at")?.code == "de")
  }

  /// The strings of fields, of arrays and maps inside them, and of whole documents.
  @Test func fieldsSelectStrings() throws {
    let document = EncodedFields(
      MapValue([
        ("a", "one"), ("b", .map(MapValue([("x", "two"), ("y", .array([.integer(1), "three"]))]))), ("c", .null),
        ("d", .bytes([65])), ("v", .vector([1])),
      ]))
    func strings(_ paths: [String]?) throws -> [String] {
      var all: [String] = []
      let fields = TextFields(try paths.map { try $0.map { try FieldPath($0) } })
      try document.withMap { (map) throws(WireError) in
        try fields.forEachString(in: map) { all.append(String(decoding: $0, as: UTF8.self)) }
      }
      return all
    }
    #expect(try strings(nil) == ["one", "two", "three"])
    #expect(try strings(["b.y", "a", "missing", "c"]) == ["three", "one"])
    #expect(try strings([]) == [])
  }

  private static func terms(of text: [UInt8], _ language: String) throws -> [String] {
    var terms: [String] = []
    let language = try #require(TextLanguage(tag: language))
    try TextAnalyzers.with(language) { analyzer in
      text.withUnsafeBytes { text in
        analyzer.forEachTerm(in: text) { terms.append(String(decoding: $0, as: UTF8.self)) }
      }
    }
    return terms
  }
}
