import Foundation

/// The results kept in the repository: words by hand, and below a marker a table of each benchmark, as it was recorded
/// last.
enum Results {
  private static let path = "docs/performance.md"
  static let marker = "<!-- Below this line: written by `Benchmarks run --record`. -->\n"

  /// Replaces the tables of the benchmarks that ran, and leaves those of all others; `false`, with a word on standard
  /// error, where the file is not to be found.
  static func record(_ sections: [(name: String, text: String)]) -> Bool {
    let text = try? String(contentsOfFile: path, encoding: .utf8)
    guard let merged = text.flatMap({ merge(sections, into: $0, order: Benchmark.all.map(\.name)) }) else {
      Run.progress("not recorded: run from the top of the repository, where \(path) is")
      return false
    }
    return (try? merged.write(toFile: path, atomically: true, encoding: .utf8)) != nil
  }

  /// The file's text with those sections in place of the ones of their names, in an order; `nil` where it lacks the
  /// marker. Sections of names that the order lacks come last.
  static func merge(_ sections: [(name: String, text: String)], into text: String, order: [String]) -> String? {
    guard let place = text.range(of: marker) else { return nil }
    var kept = recorded(String(text[place.upperBound...]))
    for section in sections {
      if let index = kept.firstIndex(where: { $0.name == section.name }) {
        kept[index] = section
      } else {
        kept.append(section)
      }
    }
    func rank(_ name: String) -> Int { order.firstIndex(of: name) ?? order.count }
    let sorted = kept.enumerated().sorted { a, b in
      (rank(a.element.name), a.offset) < (rank(b.element.name), b.offset)
    }
    return String(text[..<place.upperBound]) + sorted.map { "\n" + $0.element.text }.joined()
  }

  /// The sections of a text, each from its heading `## NAME: …` to the next one.
  private static func recorded(_ text: String) -> [(name: String, text: String)] {
    var sections: [(name: String, text: String)] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("## ") {
        sections.append((String(line.dropFirst(3).prefix { $0 != ":" }), ""))
      }
      if !sections.isEmpty { sections[sections.count - 1].text += line + "\n" }
    }
    // One empty line parts them, which stands before each.
    return sections.map { section in
      var text = section.text
      while text.hasSuffix("\n\n") { text.removeLast() }
      return (section.name, text)
    }
  }
}
