import Foundation
import TestSupport

/// The text of `docs/reference/known-differences.md`: generated from the entries, the numbers in
/// `.ci/clients/passed`, and the results of the last `make conformance`, which the page keeps until the next run.
struct DifferencePage {
  static let file = Difference.repository.appending(path: "docs/reference/known-differences.md")
  private static let factsStart = "<!-- The last run: -->\n"
  private static let factsEnd = "<!-- end of the last run -->\n"

  /// Lines of Markdown. Numbers that change in every run are only here.
  var facts: String

  /// The page as stored in the repository.
  static var stored: String { (try? String(contentsOf: file, encoding: .utf8)) ?? "" }

  /// The results of the last run in a page.
  static func facts(of page: String) -> String {
    guard let start = page.range(of: factsStart), let end = page.range(of: factsEnd) else { return "" }
    return String(page[start.upperBound..<end.lowerBound])
  }

  var text: String {
    """
    # Known differences

    This page lists the differences between Hearth's responses and those of Firestore in production or its official
    emulator. It is generated from `fixtures/known-differences.json`, where most entries have requests that show the
    difference. `make conformance` sends these requests to the emulator and to Hearth, and fails if a response no longer
    matches its entry. `make test` does this with Hearth alone, and compares this page with the entries. The behavior of
    production is taken from its documentation. No request was sent to production.

    ## The last comparison

    \(Self.factsStart)\(facts)\(Self.factsEnd)
    The numbers of client tests that must pass, from `.ci/clients/passed`:

    \(Self.clients)

    ## Differences from Firestore in production

    \(table(.production))

    ## Differences from the official emulator

    If the emulator differs from production, or fails, Hearth follows the documentation of production.

    \(table(.emulator))

    ## Differences without a request that shows them

    \(reasons)

    Random requests meet these differences too. `Tests/ConformanceTests/KnownDifference.swift` states which responses
    may differ then, and how.

    """
  }

  private static var clients: String {
    let file = Difference.repository.appending(path: ".ci/clients/passed")
    let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    let rows = text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
      let words = line.split(separator: " ")
      return "| \(words.first ?? "") | \(words.last ?? "") |"
    }
    return (["| suite | tests |", "| --- | ---: |"] + rows).joined(separator: "\n")
  }

  private func table(_ origin: Difference.Origin) -> String {
    let rows = Difference.all.filter { $0.origin == origin }.map { entry in
      let shown = entry.probe.map { probe in
        "\(Self.request(probe.requests.last)) \(Self.answer(probe.emulator)), \(Self.answer(probe.hearth))"
      }
      let cells = [entry.topic, entry.firestore, entry.emulator, entry.hearth, shown ?? "see below"]
      return "| \(cells.map { $0.replacing("|", with: "\\|") }.joined(separator: " | ")) |"
    }
    let head = [
      "| topic | Firestore | emulator | Hearth | request: emulator, Hearth |", "| --- | --- | --- | --- | --- |",
    ]
    return (head + rows).joined(separator: "\n")
  }

  private var reasons: String {
    Difference.all.compactMap { entry in entry.noProbe.map { "- \(entry.topic): \($0)" } }.joined(separator: "\n")
  }

  private static func request(_ request: JSONNode?) -> String {
    let target = request?["target"]?.stringValue ?? ""
    return "`\(request?["method"]?.stringValue ?? "") \(target)`"
  }

  private static func answer(_ shown: Difference.Shown) -> String {
    let code = shown.code.map { " \($0)" } ?? ""
    let text = shown.matches.map { " with `\($0)`" } ?? shown.lacks.map { " without `\($0)`" } ?? ""
    return "\(shown.status)\(code)\(text)"
  }
}
