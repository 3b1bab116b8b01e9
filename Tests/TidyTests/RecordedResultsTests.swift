import Testing

@testable import Benchmarks

/// Recording one benchmark keeps the tables of the others unchanged.
@Suite struct RecordedResultsTests {
  private static let before =
    "# Words\n\n## by hand\n\n" + Results.marker + """

      ## b: two

      | x |
      | 1 |

      words

      ## d: four

      | y |

      """

  private static func merge(_ sections: (name: String, text: String)...) -> String? {
    Results.merge(sections, into: before, order: ["a", "b", "c", "d"])
  }

  @Test func textWithoutResultsIsUnchanged() { #expect(Self.merge() == Self.before) }

  @Test func onlyBenchmarksThatRanAreReplaced() {
    let head = "# Words\n\n## by hand\n\n" + Results.marker
    let (b, d) = ("\n## b: two\n\n| x |\n| 1 |\n\nwords\n", "\n## d: four\n\n| y |\n")
    #expect(Self.merge(("b", "## b: new\n")) == head + "\n## b: new\n" + d)
    #expect(Self.merge(("d", "## d: new\n")) == head + b + "\n## d: new\n")
    // New tables follow the given order. Tables of unknown benchmarks come last.
    #expect(Self.merge(("c", "## c: new\n"), ("a", "## a: new\n")) == head + "\n## a: new\n" + b + "\n## c: new\n" + d)
    #expect(
      Results.merge([("a", "## a: new\n")], into: Self.before, order: ["a", "d"]) == head + "\n## a: new\n" + d + b)
    #expect(Results.merge([], into: "no marker", order: []) == nil)
  }
}
