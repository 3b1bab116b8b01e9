import DocumentModel
import Foundation
import RulesEngine
import Testing
import TestSupport
import WireFormat

/// An expression and the emulator's result.
struct ExpressionCase: CustomStringConvertible, Sendable {
  let expression: String
  let functions: String
  /// `value`, `error`, `compile_error`, or `unknown` if the emulator crashed.
  let result: String
  let value: JSONNode?
  let message: String?

  var description: String { expression }

  static let all: [ExpressionCase] = {
    let file = "\(RulesFixture.root)/fixtures/rules/expressions.jsonl"
    let text = String(decoding: FileManager.default.contents(atPath: file) ?? Data(), as: UTF8.self)
    return text.split(separator: "\n").compactMap { line in
      guard let node = try? JSONNode(parsing: Array(line.utf8)), let expression = node["expr"]?.stringValue,
        let result = node["result"]?.stringValue
      else { return nil }
      return ExpressionCase(
        expression: expression, functions: node["functions"]?.stringValue ?? "", result: result,
        value: node["value"], message: node["message"]?.stringValue)
    }
  }()
}

/// The result of an expression in Hearth's engine.
enum ExpressionResult: Equatable {
  case value(String)
  case error(String)
  case refused(String)

  init(_ expression: String, functions: String = "") {
    let documents = Documents(["t/x": (try? RulesFixture.document.decoded()) ?? MapValue()])
    do throws(RulesetError) {
      let rules = try Ruleset(compiling: RulesFixture.rules("debug(\(expression)\n)", functions: functions))
      let decision = rules.decide(
        RulesFixture.request, lookups: DocumentLookups(documents), explaining: .trace)
      let last = decision.trace.last?.value ?? "nothing"
      let node = try? JSONNode(parsing: Array(last.utf8))
      if let failure = node?["undefined"]?["causeMessage"]?.stringValue {
        self = .error(failure)
      } else {
        self = .value(last)
      }
    } catch {
      self = .refused(error.summary)
    }
  }
}

@Suite struct ExpressionTests {
  @Test func theFileHasAllExpressions() {
    #expect(ExpressionCase.all.count == 447)
  }

  @Test(arguments: ExpressionCase.all)
  func expressionsEvaluateAsInTheEmulator(_ test: ExpressionCase) throws {
    let result = ExpressionResult(test.expression, functions: test.functions)
    switch (test.result, result) {
    case ("value", .value(let text)):
      let ours = try JSONNode(parsing: Array(text.utf8))
      let theirs = try #require(test.value)
      #expect(ours.isSameValue(as: theirs), "\(test.expression): \(text)")
    case ("error", .error(let message)):
      // Hearth and the emulator write paths in these messages differently.
      guard let expected = test.message, !expected.hasPrefix("Service call error"),
        !expected.hasPrefix("Unable to decode")
      else { return }
      #expect(message == expected, "\(test.expression)")
    case ("compile_error", .refused), ("unknown", .error): break
    default: Issue.record("\(test.expression): \(result), not \(test.result) \(test.message ?? "")")
    }
  }
}

extension JSONNode {
  /// Whether typed values are equal. Numbers are compared as doubles.
  func isSameValue(as other: JSONNode) -> Bool {
    switch (self, other) {
    case (.number(let a), .number(let b)): return Double(a) == Double(b)
    case (.array(let a), .array(let b)):
      return a.count == b.count && zip(a, b).allSatisfy { $0.isSameValue(as: $1) }
    case (.object(let a), .object(let b)):
      return a.count == b.count
        && a.allSatisfy { member in other[member.name].map { member.value.isSameValue(as: $0) } ?? false }
    case (.null, .null): return true
    case (.bool(let a), .bool(let b)): return a == b
    case (.string(let a), .string(let b)): return a.utf8.elementsEqual(b.utf8)
    default: return false
    }
  }
}
