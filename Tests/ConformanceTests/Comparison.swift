import Foundation
import TestSupport

/// Runs sequences on both servers and finds the first difference.
final class Comparison {
  struct Disagreement: Sendable {
    /// The requests before the one with different responses.
    var before: String
    /// That request and both responses.
    var last: String

    var transcript: String { before + last }
  }

  private let database: TestDatabase
  private let oracle: Replica
  private let subject: Replica
  /// The number of requests compared, and of responses that a known difference explained.
  private(set) var stepsCompared = 0
  private(set) var differencesMet: [KnownDifference: Int] = [:]
  private(set) var statusesMet: [Int: Int] = [:]

  init(database: TestDatabase, oracle: Replica, subject: Replica) {
    self.database = database
    self.oracle = oracle
    self.subject = subject
  }

  /// Runs `groups` on an empty database. Returns `nil` if both servers gave the same responses.
  func run(_ groups: [StepGroup]) -> Disagreement? {
    oracle.reset()
    subject.reset()
    var transcript = ""
    let steps: [Step] = [database.clear] + groups.flatMap { $0 }
    for (number, step) in steps.enumerated() {
      let expected = oracle.run(step)
      let actual = subject.run(step)
      stepsCompared += 1
      statusesMet[expected.status, default: 0] += 1
      let isSame = expected.status == actual.status && expected.normalized.isSame(as: actual.normalized)
      let request = "\(number). \(describe(step))\n"
      if isSame {
        transcript += request + "   both \(expected.status)\n"
        continue
      }
      if let row = step.expectedDifference, row.explains(oracle: expected, subject: actual) {
        differencesMet[row, default: 0] += 1
        if row.changesDocuments { return nil }
        transcript += request + "   oracle \(expected.status), subject \(actual.status), as \(row)\n"
        continue
      }
      return Disagreement(
        before: transcript,
        last: request
          + """
             oracle  \(expected.status) \(abridged(expected.raw))
             subject \(actual.status) \(abridged(actual.raw))
          \(difference(expected.normalized.sorted, actual.normalized.sorted, at: "answer"))

          """)
    }
    return nil
  }

  /// Shortens `groups`, on which the servers disagree: leaves out groups that the disagreement does not need.
  ///
  /// Tries each group once, from the end, for at most `seconds`. The result need not be minimal.
  func shrink(_ groups: [StepGroup], from found: Disagreement, seconds: Double) -> Disagreement {
    let deadline = Date(timeIntervalSinceNow: seconds)
    var groups = groups
    var best = found
    for size in [8, 1] {
      var end = groups.count
      while end > 0, Date() < deadline {
        let start = max(0, end - size)
        var fewer = groups
        fewer.removeSubrange(start..<end)
        if let disagreement = run(fewer) {
          groups = fewer
          best = disagreement
        }
        end = start
      }
    }
    return best
  }

  /// The first difference between two sorted values, with its path.
  private func difference(_ expected: JSONNode, _ actual: JSONNode, at path: String) -> String {
    switch (expected, actual) {
    case (.array(let left), .array(let right)):
      for (index, pair) in zip(left, right).enumerated() where !pair.0.isSame(as: pair.1) {
        return difference(pair.0, pair.1, at: "\(path)[\(index)]")
      }
      if left.count != right.count {
        return "   \(path) has \(left.count) elements from the oracle and \(right.count) from the subject"
      }
    case (.object(let left), .object(let right)):
      if left.count == right.count {
        for (member, other) in zip(left, right) where member.name.utf8.elementsEqual(other.name.utf8) {
          if !member.value.isSame(as: other.value) {
            return difference(member.value, other.value, at: "\(path).\(member.name)")
          }
        }
      }
    default: break
    }
    return """
         at \(path):
         oracle  \(abridged(abridged(expected).text))
         subject \(abridged(abridged(actual).text))
      """
  }

  private func describe(_ step: Step) -> String {
    var text = "\(step.method) \(abridged(step.target))"
    switch step.body {
    case .none: break
    case .json(let node): text += " " + abridged(abridged(node).text)
    case .text(let body): text += " " + abridged(body)
    }
    if case .pages(let member, let size) = step.reading { text += " (all \(member), \(size) per page)" }
    return text
  }

  /// A copy of `node` with long strings truncated.
  private func abridged(_ node: JSONNode) -> JSONNode {
    switch node {
    case .string(let string) where string.utf8.count > 200 && !string.contains("/"):
      .string("\(string.prefix(8))…(\(string.utf8.count) bytes)")
    case .array(let elements): .array(elements.map(abridged))
    case .object(let members): .object(members.map { .init($0.name, abridged($0.value)) })
    default: node
    }
  }

  private func abridged(_ text: String) -> String {
    let line = text.split(whereSeparator: \.isNewline).map { $0.drop { $0 == " " } }.joined()
    return line.count > 2000 ? "\(line.prefix(1200))…(\(line.count) characters)…\(line.suffix(400))" : line
  }
}
