import Foundation

/// The results page in the repository: text written by hand, then a marker, then the last recorded table of each
/// benchmark.
enum Results {
  private static let path = "docs/performance.md"
  static let marker = "<!-- Below this line: written by `Benchmarks run --record`. -->\n"

  /// Replaces the tables of the given benchmarks and keeps the others. Returns `false`, with a message on standard
  /// error, if the file does not exist.
  static func record(_ sections: [(name: String, text: String)]) -> Bool {
    let text = try? String(contentsOfFile: path, encoding: .utf8)
    guard let merged = text.flatMap({ merge(sections, into: $0, order: Benchmark.all.map(\.name)) }) else {
      Run.progress("not recorded: \(path) not found; run this in the root folder of the repository")
      return false
    }
    return (try? merged.write(toFile: path, atomically: true, encoding: .utf8)) != nil
  }

  /// Returns the file's text with the given sections in place of those with the same names, in the given order, or
  /// `nil` if the text lacks the marker. Sections whose names are not in the order come last.
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

  /// Returns the sections of a text, each from its heading `## NAME: …` to the next one.
  private static func recorded(_ text: String) -> [(name: String, text: String)] {
    var sections: [(name: String, text: String)] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("## ") {
        sections.append((String(line.dropFirst(3).prefix { $0 != ":" }), ""))
      }
      if !sections.isEmpty { sections[sections.count - 1].text += line + "\n" }
    }
    // Each section is preceded by one empty line.
    return sections.map { section in
      var text = section.text
      while text.hasSuffix("\n\n") { text.removeLast() }
      return (section.name, text)
    }
  }
}
