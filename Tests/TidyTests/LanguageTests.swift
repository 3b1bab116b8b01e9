import Foundation
import Testing

/// The prose of the project uses plain English: phrases that make a reader read a sentence twice stay out.
@Suite struct LanguageTests {
  /// The banned phrases, and what to write instead.
  static let banned: [(phrase: String, pattern: String, instead: String)] = [
    ("where there is", #"(?i)\bwhere (there|nobody|none|nothing|it is|that is|they are|one is)\b"#, "if"),
    (
      "a sentence that begins with who or what", #"(^|[.;:(] )(Who|Whom|Whose|What|Whatever) [a-z]+ [^?]*\.$"#,
      "name the actor"
    ),
    ("whoever, whom", #"(?i)\b(whoever|whom)\b"#, "name the actor"),
    (
      "for who, of who", #"(?i)\b(of|for|to|by|from|with) who\b|\bwho (asks|knows|may|reads|writes|listens)\b"#,
      "the caller, the client"
    ),
    (
      "is none", #"(?i)\b(is|are|was|were) none\b|\bnone of (ours|theirs)\b"#,
      "is not, is invalid"
    ),
    ("is no JSON", #"\b(is|that is) no [A-Z][A-Za-z]+\b"#, "is not valid JSON, is not a JSON object"),
    ("is told", #"(?i)\b(is|are|was|were|be) told\b|\btells? of\b"#, "is sent, is notified, reports"),
    ("goes on", #"(?i)\b(goes?|going|went) on\b"#, "continues, resumes"),
    ("stands in", #"(?i)\bstands? (in|behind|above|below|for|beside)\b"#, "is in, follows, overrides"),
    ("counts for nothing", #"(?i)\bcounts? (for nothing|no more|as none)\b"#, "is ignored, is no longer valid"),
    ("in hand", #"(?i)\b(in|into) hand\b"#, "in use"),
    ("be it", #"(?i)\bbe (it|they)\b"#, "whether or not"),
    ("no more", #"(?i)\b(is|are|has|have|does|do|holds?) no more\b"#, "no longer"),
    ("as people write it", #"(?i)\bas (people|one) (writes?|says?|reads?)\b"#, "as text"),
    ("what is of", #"(?i)\bwhat [a-z]+ (is|are) (of|for)\b"#, "name the thing"),
    ("lets who", #"(?i)\blets? (in|past|go) (who|what|whom)\b"#, "admits the caller, releases the thing"),
    ("the one who", #"(?i)\bthe ones? (who|whom)\b"#, "the caller, the client"),
    ("looked at", #"(?i)\b(is|are|was|be|been) looked at\b"#, "is read, is checked"),
  ]

  /// Findings allowed in all comments together. The number may only fall.
  static let commentsMax = 0

  @Test func pagesAndTextsUseNoBannedPhrase() {
    for path in Repository.paths where path.hasSuffix(".md") && !path.hasSuffix("known-differences.md") {
      for (line, text) in Self.prose(of: path) { Self.check(text, at: "\(path):\(line)") }
    }
    for file in Repository.sources {
      for (line, text) in Self.strings(of: file) { Self.check(text, at: "\(file.path):\(line)") }
    }
  }

  @Test func commentsUseFewBannedPhrases() {
    var findings: [String] = []
    for file in Repository.sources + Repository.tests where !file.path.hasSuffix("LanguageTests.swift") {
      for (index, line) in file.lines.enumerated() {
        guard let comment = line.firstMatch(of: /(?:^|\s)\/\/\/? (.*)$/)?.output.1, !line.contains("://") else {
          continue
        }
        for phrase in Self.banned where Self.matches(phrase.pattern, comment) {
          findings.append("\(file.path):\(index + 1): \(phrase.phrase): \(comment)")
        }
      }
    }
    #expect(findings.count <= Self.commentsMax, "\(findings.count) findings:\n\(findings.joined(separator: "\n"))")
  }

  /// Names that the glossary replaced (docs/internals/glossary.md). They do not come back in declarations.
  @Test func declarationsUseTheGlossary() {
    let retired =
      #"\b(struct|class|enum|protocol|func|var|let|case)\s+\w*([jJ]udge|[dD]ialect|[nN]udge|Tour\b|Walk\b|(?<!nder|[oO]ut)[sS]tanding|[tT]old\b)"#
    for file in Repository.sources + Repository.tests {
      for line in file.code.indices where Self.matches(retired, file.code[line]) {
        Issue.record("\(file.path):\(line + 1): a retired name: \(file.lines[line].drop { $0 == " " })")
      }
    }
  }

  private static func check(_ text: some StringProtocol, at place: String) {
    for phrase in banned where matches(phrase.pattern, text) {
      Issue.record("\(place): \"\(phrase.phrase)\"; write: \(phrase.instead): \(text)")
    }
  }

  private static func matches(_ pattern: String, _ text: some StringProtocol) -> Bool {
    text.range(of: pattern, options: [.regularExpression]) != nil
  }

  /// The numbered lines of a Markdown page outside its code blocks.
  private static func prose(of path: String) -> [(line: Int, text: Substring)] {
    var isCode = false
    return Repository.text(of: path).split(separator: "\n", omittingEmptySubsequences: false).enumerated()
      .filter { _, line in
        if line.drop(while: { $0 == " " }).hasPrefix("```") { isCode.toggle() }
        return !isCode && !line.hasPrefix("    ")
      }.map { ($0.offset + 1, $0.element) }
  }

  /// The numbered string literals of five words or more, which are texts for people rather than keys, and all lines of
  /// multi-line literals.
  private static func strings(of file: SwiftFile) -> [(line: Int, text: Substring)] {
    file.lines.enumerated().flatMap { index, line -> [(line: Int, text: Substring)] in
      let start = line.drop { $0 == " " }
      if start.isEmpty || start.hasPrefix("//") { return [] }
      // Within a multi-line literal nothing is left of a line without its strings.
      if file.code[index].allSatisfy({ $0 == " " }) { return [(index + 1, start)] }
      return line.matches(of: /"((?:[^"\\]|\\.)*)"/).map(\.output.1)
        .filter { $0.split(separator: " ").count >= 5 }.map { (index + 1, $0) }
    }
  }
}
