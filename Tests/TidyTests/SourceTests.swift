import Testing

/// Habits of the sources that no compiler checks.
@Suite struct SourceTests {
  /// What programs and test support may do and libraries may not: write to standard output.
  static let programs: Set<String> = ["Benchmarks", "Fuzzers", "TestSupport", "hearth"]

  /// The most places that promise the compiler a safety it cannot see. Raise it only with a reason in the commit.
  static let uncheckedMax = 22

  /// The longest a source file may be, in lines.
  static let linesMax = 600

  @Test func librariesDoNotPrint() {
    let places = Repository.sources.filter { !Self.programs.contains($0.target) }.flatMap { file in
      file.places { $0.contains(/\b(print|debugPrint|dump)\(/) }
    }
    #expect(places.isEmpty, "a library wrote to standard output: \(places.joined(separator: "\n"))")
  }

  @Test func sourcesDoNotTrapOnWhatComesFromOutside() {
    // `precondition` is for broken invariants of our own code and stays allowed.
    let places = Repository.sources.flatMap { file in
      file.places { $0.contains(/\bfatalError\b|\btry!|\bas!/) }
    }
    #expect(places.isEmpty, "these trap: \(places.joined(separator: "\n"))")
  }

  @Test func nothingIsLeftForLater() {
    let marks = ["TO" + "DO", "FIX" + "ME", "XX" + "X:", "HA" + "CK"]
    let places = (Repository.sources + Repository.tests).flatMap { file in
      file.lines.indices.filter { line in marks.contains { file.lines[line].contains($0) } }
        .map { "\(file.path):\($0 + 1): \(file.lines[$0])" }
    }
    #expect(places.isEmpty, "write an issue instead: \(places.joined(separator: "\n"))")
  }

  @Test func unsafePromisesGiveTheirReason() {
    var count = 0
    for file in Repository.sources {
      for line in file.code.indices
      where file.code[line].contains("@unchecked Sendable") || file.code[line].contains("nonisolated(unsafe)") {
        count += 1
        #expect(
          Self.hasComment(around: line, in: file),
          "\(file.path):\(line + 1) promises safety to the compiler; say in a comment before or behind it why it holds")
      }
    }
    #expect(count <= Self.uncheckedMax, "\(count) promises of safety; at most \(Self.uncheckedMax) are agreed")
  }

  private static func hasComment(around line: Int, in file: SwiftFile) -> Bool {
    let near = max(0, line - 1)...min(file.lines.count - 1, line + 2)
    return near.contains { file.lines[$0].contains("//") }
  }

  @Test func filesAreOfOneIdea() {
    for file in Repository.sources {
      #expect(file.lines.count <= Self.linesMax, "\(file.path) has \(file.lines.count) lines; is it still one idea?")
    }
    for file in Repository.sources + Repository.tests {
      let name = file.path.split(separator: "/").last ?? ""
      let isVague = name.contains(/(Utils?|Utilities|Helpers?|Manager|Misc)(\+\w+)?\.swift$/)
      #expect(!isVague, "\(file.path): name the file after what it holds")
    }
  }

  @Test func declarationsThatOthersSeeAreDocumented() {
    let places = Repository.sources.filter { $0.target != "TestSupport" }.flatMap(Self.undocumented)
    #expect(places.isEmpty, "without a doc comment: \(places.joined(separator: "\n"))")
  }

  /// Declarations that other modules see and that no `///` line stands before.
  ///
  /// What satisfies a protocol is documented there: members that the standard library's protocols name are let pass.
  static func undocumented(in file: SwiftFile) -> [String] {
    let declaration = /^\s*(@\w+(\([^)]*\))?\s+)*(package|public)\s+(?!import\b|extension\b)/
    return file.code.indices.filter { line in
      guard file.code[line].contains(declaration), !file.code[line].contains(conformance) else { return false }
      var before = line - 1
      // Attributes may stand on lines of their own between the comment and the declaration.
      while before >= 0, file.code[before].contains(/^\s*@\w+(\([^)]*\))?\s*$/) { before -= 1 }
      return before < 0 || !file.lines[before].contains(/^\s*\/\/\//)
    }.map { "\(file.path):\($0 + 1): \(file.lines[$0].drop { $0 == " " })" }
  }

  private nonisolated(unsafe) static let conformance =
    // A regular expression never changes; the compiler does not know.
    /\b(static func (==|<)|func (hash|encode|next|makeIterator|index|formIndex)\(|var (description|debugDescription|hashValue|startIndex|endIndex|errorDescription)\b|subscript\(|deinit\b|typealias (Element|Index|Iterator)\b)/

  @Test func linesOfMachinesStayOut() {
    // Absolute paths of somebody's machine; system folders are named on purpose.
    let path = /(^|[^\w.\/)}])\/(work|root|Users|home\/\w+|mnt)\//
    for name in Repository.paths where !name.hasPrefix("fixtures/") {
      for (line, text) in Repository.text(of: name).split(separator: "\n", omittingEmptySubsequences: false)
        .enumerated()
      {
        #expect(!text.contains(path), "\(name):\(line + 1) names a path of one machine: \(text)")
      }
    }
  }
}
