import DocumentModel
import Foundation
import RulesEngine
import TestSupport
import Testing

/// The list of all syntax errors of a ruleset.
@Suite struct SyntaxErrorsTests {
  private static let seeds = TestSeeds.of("RULES_ERRORS_SEED", otherwise: [1, 2])
  private static let now = Timestamp(rfc3339: "2026-01-01T00:00:00Z".utf8).unsafelyUnwrapped

  /// Returns the errors of a text, as `line:column message`.
  private static func errors(_ text: String) -> [String] {
    Ruleset.diagnostics(of: text, at: now).filter { $0.severity == .error }
      .map { "\($0.line):\($0.column) \($0.message)" }
  }

  /// Returns the first syntax error, at which the compiler stops, or `nil` if the text can be parsed.
  private static func first(_ text: String) -> Diagnostic? {
    guard Ruleset.services(in: text).isEmpty else { return nil }
    do throws(RulesetError) { _ = try Ruleset(compiling: text) } catch { return error.diagnostics.first }
    return nil
  }

  private static func rules(_ lines: String...) -> String {
    (["rules_version = '2'; service cloud.firestore { match /databases/{d}/documents {"] + lines + ["} }"])
      .joined(separator: "\n")
  }

  @Test(
    arguments: [
      // Statements.
      (
        rules("match /a/{b} {", "allow get: if a &&;", "allow list: if (b;", "allow write: if true;", "}"),
        ["3:19 Unexpected ';'.", "4:18 Unexpected ';'."]
      ),
      // A statement without its end does not hide the next one.
      (
        rules("match /a/{b} {", "allow get: if a ==", "allow list: if b c;", "}"),
        ["4:7 Unexpected 'list'.", "4:18 Unexpected 'c'."]
      ),
      // Functions.
      (
        rules("function f( { return 1; }", "function g() { let x 1; return x; }", "match /a/{b} { allow get: if; }"),
        ["2:13 Unexpected '{'.", "3:22 Unexpected '1'.", "4:29 Unexpected ';'."]
      ),
      // Heads of blocks.
      (
        rules("match a/{b} {", "allow get: if 1 +;", "}", "match /c/{d} {", "allow get if true;", "}"),
        ["2:7 Unexpected 'a'.", "3:18 Unexpected ';'.", "6:11 Unexpected 'if'."]
      ),
      (
        rules("match /a/{b}", "allow get: if 1 +;", "}", "match /c/{d} { allow get: iff true; }"),
        ["3:1 Unexpected 'allow'.", "3:18 Unexpected ';'.", "5:27 Unexpected 'iff'."]
      ),
      // Misspelled words.
      (
        rules("match /a/{b} {", "alow get: if true;", "allow list: if 1 +;", "alllow write: if false;", "}"),
        ["3:1 Unexpected 'alow'.", "4:19 Unexpected ';'.", "5:1 Unexpected 'alllow'."]
      ),
      (
        "rules_version = 2;\nsrevice cloud.firestore {\nmatch /a/{b} { allow get: if x y; } }",
        ["1:17 Unexpected '2'.", "2:1 Unexpected 'srevice'.", "3:32 Unexpected 'y'."]
      ),
      // Braces too many or too few are reported only if nothing else is wrong.
      (rules("match /a/{b} {", "allow get: if true;"), ["4:4 Unexpected '<EOF>'."]),
      (rules("match /a/{b} {", "allow get: if x y;"), ["3:17 Unexpected 'y'."]),
      (
        rules(
          "match /a/{b} {", "allow get: if true; } }", "allow get: if x y; }", "match /c/{d} { allow get: if z w; }"),
        ["4:1 Unexpected 'allow'.", "5:32 Unexpected 'w'."]
      ),
      ("service", ["1:8 Unexpected '<EOF>'."]), ("", ["1:1 Unexpected '<EOF>'."]),
      // Malformed tokens hide errors of the syntax.
      (
        rules("match /a/{b} { allow get: if 'a;", "allow list: if #; } allow }"),
        ["2:30 A string must end on the line on which it starts.", "3:16 Unexpected character '#'."]
      ),
    ] as [(String, [String])])
  func everyErrorIsReportedOnce(text: String, expected: [String]) {
    #expect(Self.errors(text) == expected, "\(text)")
  }

  /// Changes one word of a ruleset at a time. No such mistake causes a second error.
  @Test(arguments: RepositoryRulesTests.files, seeds)
  func oneMistakeIsOneError(file: String, seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let words = try Self.words(file)
    var found = 0
    for _ in 0..<600 {
      let (text, change) = Self.mutated(words, [Int.random(in: 0..<words.count, using: &random)], &random)
      guard let first = Self.first(text) else { continue }
      found += 1
      let all = Ruleset.diagnostics(of: text, at: Self.now)
      #expect(all.first == first, "\(file): \(change)")
      #expect(all.count == 1, "\(file): \(change)\n\(all.map { $0.rendered(file: file) }.joined(separator: "\n"))")
    }
    #expect(found > 150)
  }

  /// Changes words in several statements. Each error belongs to a change.
  @Test(arguments: RepositoryRulesTests.files, seeds)
  func errorsBelongToMistakes(file: String, seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let words = try Self.words(file)
    var several = 0
    for _ in 0..<400 {
      let places = (0..<3).map { _ in Int.random(in: 0..<words.count, using: &random) }
      let (text, change) = Self.mutated(words, places, &random)
      guard let first = Self.first(text) else { continue }
      let all = Ruleset.diagnostics(of: text, at: Self.now)
      let shown = all.map { $0.rendered(file: file) }.joined(separator: "\n")
      #expect(all.first == first, "\(file): \(change)\n\(shown)")
      #expect(all.count <= Set(places).count, "\(file): \(change)\n\(shown)")
      #expect(all.map(\.range.lowerBound) == all.map(\.range.lowerBound).sorted(), "\(file): \(change)\n\(shown)")
      if all.count > 1 { several += 1 }
    }
    #expect(several > 20)
  }

  /// Returns the words and symbols of a ruleset, each with the white space before it; comments are left out.
  private static func words(_ file: String) throws -> [String] {
    let contents = try #require(FileManager.default.contents(atPath: "\(RulesFixture.root)/rules/\(file)"))
    let text = String(decoding: contents, as: UTF8.self).replacing(#/(?m)^\s*\/\/.*$/#, with: "")
    return text.matches(of: #/\s*('[^'\n]*'|[A-Za-z_][A-Za-z_0-9]*|\d+|&&|\|\||[=!<>]=|\S)/#).map {
      String($0.output.0)
    }
  }

  /// Returns the text with words removed, doubled or replaced at some places, and a description.
  private static func mutated(_ words: [String], _ places: [Int], _ random: inout SplitMix) -> (String, String) {
    var words = words
    var changes: [String] = []
    for place in places {
      let word = words[place]
      switch Int.random(in: 0..<4, using: &random) {
      case 0: words[place] = ""
      case 1: words[place] = word + word
      case 2: words[place] = " " + ["(", ")", ";", "==", "if", "x", "1", ","][Int.random(in: 0..<8, using: &random)]
      default:
        words[place] = word + " " + ["(", ")", ";", "&&", "let", "y", "2", ":"][Int.random(in: 0..<8, using: &random)]
      }
      changes.append("\(word.debugDescription) became \(words[place].debugDescription)")
    }
    return (words.joined(), changes.joined(separator: ", "))
  }

  // MARK: Expired conditions

  @Test(
    arguments: [
      ("request.time < timestamp.date(2021, 5, 16)", "2021-05-16"),
      ("request.auth != null && timestamp.date(2025, 12, 31) >= request.time", "2025-12-31"),
      ("request.time < timestamp.value(1640995200000)", "2022-01-01"),
      ("request.time < timestamp.date(2026, 1, 2)", nil), ("!(request.time < timestamp.date(2021, 5, 16))", nil),
      ("request.time > timestamp.date(2021, 5, 16)", nil), ("request.time < resource.data.end", nil),
      ("request.time < timestamp.date(2021, 13, 1)", nil), ("request.time < timestamp.value(9223372036854775807)", nil),
    ] as [(String, String?)])
  func expiredConditionsAreWarnings(condition: String, date: String?) {
    for text in [
      Self.rules("match /a/{b} { allow get: if \(condition); }"),
      Self.rules("function f() { return \(condition); }", "match /a/{b} { allow get: if f(); }"),
    ] {
      let found = Ruleset.diagnostics(of: text, at: Self.now).filter { $0.message.contains("expired") }
      #expect(found.count == (date == nil ? 0 : 1), "\(condition)")
      if let date { #expect(found.first?.message == "This condition has expired: it is false since \(date).") }
      #expect(found.allSatisfy { $0.severity == .warning })
    }
  }
}
