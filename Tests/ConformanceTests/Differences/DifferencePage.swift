import Foundation
import TestSupport

/// `docs/reference/known-differences.md`: written from the entries, the numbers kept in `.ci/clients/passed`, and the facts of the
/// last run of `make conformance`, which stay as they are until the next one.
struct DifferencePage {
  static let file = Difference.repository.appending(path: "docs/reference/known-differences.md")
  private static let factsStart = "<!-- The last run: -->\n"
  private static let factsEnd = "<!-- end of the last run -->\n"

  /// Lines of Markdown, without a number that changes from one run to the next elsewhere.
  var facts: String

  /// The page as it is in the repository.
  static var stored: String { (try? String(contentsOf: file, encoding: .utf8)) ?? "" }

  /// The facts of a page.
  static func facts(of page: String) -> String {
    guard let start = page.range(of: factsStart), let end = page.range(of: factsEnd) else { return "" }
    return String(page[start.upperBound..<end.lowerBound])
  }

  var text: String {
    """
    # Known differences

    How Hearth's answers differ from those of Firestore in production, and from those of its official emulator. This
    page is written by the tests: the entries are in `fixtures/known-differences.json`, most with requests that show
    them. `make conformance` sends those to the emulator and to Hearth and fails where one of them no longer answers as
    it says here; `make test` does so with Hearth alone, and compares this page with the entries. What production does
    is what is documented of it: nothing here was asked of production.

    ## The last comparison

    \(Self.factsStart)\(facts)\(Self.factsEnd)
    Tests of clients that must pass, by `.ci/clients/passed`:

    \(Self.clients)

    ## From Firestore in production

    \(table(.production))

    ## From the official emulator

    Where the emulator differs from production, or fails, Hearth follows what is documented of production.

    \(table(.emulator))

    ## Without a request that shows them

    \(reasons)

    Random requests meet these differences too: `Tests/ConformanceTests/KnownDifference.swift` says which answers may
    then differ, and how.

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
    let head = ["| topic | Firestore | emulator | Hearth | shown by: emulator, Hearth |", "| --- | --- | --- | --- | --- |"]
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
