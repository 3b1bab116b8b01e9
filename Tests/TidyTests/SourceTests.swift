import Testing

/// Rules for the sources that the compiler does not check.
@Suite struct SourceTests {
  /// The targets that may write to standard output. Libraries must not.
  static let programs: Set<String> = ["Benchmarks", "Fuzzers", "TestSupport", "HearthCLI", "hearth"]

  /// The maximum number of `@unchecked Sendable` and `nonisolated(unsafe)` declarations. Raise it only with a reason
  /// in the commit.
  static let uncheckedMax = 30

  /// The maximum length of a source file, in lines.
  static let linesMax = 600

  @Test func librariesDoNotPrint() {
    let places = Repository.sources.filter { !Self.programs.contains($0.target) }.flatMap { file in
      file.places { $0.contains(/\b(print|debugPrint|dump)\(/) }
    }
    #expect(places.isEmpty, "libraries must not write to standard output: \(places.joined(separator: "\n"))")
  }

  @Test func sourcesDoNotTrapOnInput() {
    // `precondition` is allowed: it checks invariants of our own code.
    let places = Repository.sources.flatMap { file in
      file.places { $0.contains(/\bfatalError\b|\btry!|\bas!/) }
    }
    #expect(places.isEmpty, "these lines can trap: \(places.joined(separator: "\n"))")
  }

  @Test func sourcesHaveNoNotesForLater() {
    let marks = ["TO" + "DO", "FIX" + "ME", "XX" + "X:", "HA" + "CK"]
    let places = (Repository.sources + Repository.tests).flatMap { file in
      file.lines.indices.filter { line in marks.contains { file.lines[line].contains($0) } }
        .map { "\(file.path):\($0 + 1): \(file.lines[$0])" }
    }
    #expect(places.isEmpty, "write an issue instead of a note in the source: \(places.joined(separator: "\n"))")
  }

  @Test func uncheckedDeclarationsGiveTheirReason() {
    var count = 0
    for file in Repository.sources {
      for line in file.code.indices
      where file.code[line].contains("@unchecked Sendable") || file.code[line].contains("nonisolated(unsafe)") {
        count += 1
        #expect(
          Self.hasComment(around: line, in: file),
          "\(file.path):\(line + 1) turns off a check of the compiler; add a comment that says why it is safe")
      }
    }
    #expect(count <= Self.uncheckedMax, "\(count) declarations turn off checks; the maximum is \(Self.uncheckedMax)")
  }

  private static func hasComment(around line: Int, in file: SwiftFile) -> Bool {
    let near = max(0, line - 1)...min(file.lines.count - 1, line + 2)
    return near.contains { file.lines[$0].contains("//") }
  }

  @Test func filesAreShortAndNamedAfterTheirContent() {
    for file in Repository.sources {
      #expect(file.lines.count <= Self.linesMax, "\(file.path) has \(file.lines.count) lines; split it")
    }
    for file in Repository.sources + Repository.tests {
      let name = file.path.split(separator: "/").last ?? ""
      let isVague = name.contains(/(Utils?|Utilities|Helpers?|Manager|Misc)(\+\w+)?\.swift$/)
      #expect(!isVague, "\(file.path): name the file after its content")
    }
  }

  @Test func declarationsOfOtherModulesAreDocumented() {
    let places = Repository.sources.filter { $0.target != "TestSupport" }.flatMap(Self.undocumented)
    #expect(places.isEmpty, "these declarations have no doc comment: \(places.joined(separator: "\n"))")
  }

  @Test func throwingFunctionsSayWhatTheyThrow() {
    let places = Repository.sources.filter { $0.target != "TestSupport" }.flatMap(Self.undocumentedThrows)
    #expect(places.count <= Self.undocumentedThrowsMax, "without `- Throws:`: \(places.joined(separator: "\n"))")
  }

  /// The number of declarations visible to other modules that throw without a `- Throws:`. It may only fall.
  static let undocumentedThrowsMax = 0

  /// The declarations with package or public access that have no doc comment.
  ///
  /// Exempt are stored properties, memberwise initializers, and members that satisfy a protocol of the standard
  /// library or one of ``messageRequirements``.
  static func undocumented(in file: SwiftFile) -> [String] {
    file.code.indices.filter { line in
      file.code[line].contains(visible) && !isConformance(line, in: file) && !isStoredProperty(line, in: file)
        && !isMemberwiseInitializer(line, in: file)
        && documentation(of: line, in: file).isEmpty
    }.map { "\(file.path):\($0 + 1): \(file.lines[$0].drop { $0 == " " })" }
  }

  /// The functions and initializers with package or public access that throw and whose doc comment does not say what.
  static func undocumentedThrows(in file: SwiftFile) -> [String] {
    file.code.indices.filter { line in
      guard file.code[line].contains(visible), file.code[line].contains(/\b(func|init)\b/) else { return false }
      guard !isConformance(line, in: file), throwsErrors(line, in: file) else { return false }
      let comment = documentation(of: line, in: file)
      // An undocumented memberwise initializer cannot throw. A comment may also name the error in its prose.
      return !comment.contains { $0.contains(/[Tt]hrows?\b|[Rr]ethrows\b/) }
    }.map { "\(file.path):\($0 + 1): \(file.lines[$0].drop { $0 == " " })" }
  }

  private static func isStoredProperty(_ line: Int, in file: SwiftFile) -> Bool {
    guard file.code[line].contains(/\b(let|var) \w+/), !file.code[line].contains(/\b(func|subscript|init)\b/) else {
      return false
    }
    // A computed property opens a brace. A stored one may open it after `=`, for an observer or a closure.
    guard let brace = file.code[line].firstIndex(of: "{") else { return true }
    return file.code[line][..<brace].contains("=")
  }

  /// Whether an initializer only stores its parameters.
  private static func isMemberwiseInitializer(_ line: Int, in file: SwiftFile) -> Bool {
    guard file.code[line].contains(/\binit\(/), !throwsErrors(line, in: file) else { return false }
    let head = head(of: line, in: file)
    let indentation = file.code[line].prefix { $0 == " " }
    let close = file.code[head.lastLine...].firstIndex { $0.hasPrefix(indentation + "}") } ?? head.lastLine
    let body =
      head.rest.hasSuffix("{")
      ? Array(file.code[(head.lastLine + 1)..<max(head.lastLine + 1, close)])
      : [head.rest.drop { $0 != "{" }.dropFirst().dropLast()]
    return body.allSatisfy { $0.contains(/^\s*((self\.)?\w+ = \w+|\((self\.\w+(, )?)+\) = \([\w, ]+\))?\s*$/) }
  }

  private static func throwsErrors(_ line: Int, in file: SwiftFile) -> Bool {
    head(of: line, in: file).rest.contains(/^\s*(async )?(re)?throws\b/)
  }

  /// The last line of the parameter list of the declaration that begins on a line, and the text after the list.
  private static func head(of line: Int, in file: SwiftFile) -> (lastLine: Int, rest: Substring) {
    var depth = 0
    for index in line..<min(line + 30, file.code.count) {
      for position in file.code[index].indices {
        let character = file.code[index][position]
        if character == "(" { depth += 1 }
        guard character == ")" else { continue }
        depth -= 1
        if depth == 0 { return (index, file.code[index][position...].dropFirst()) }
      }
    }
    return (line, "")
  }

  /// The lines of the doc comment of a declaration.
  private static func documentation(of line: Int, in file: SwiftFile) -> [Substring] {
    var before = line - 1
    // Attributes may have lines of their own between the comment and the declaration.
    while before >= 0, file.code[before].contains(/^\s*@\w+(\([^)]*\))?\s*$/) { before -= 1 }
    var first = before
    while first >= 0, file.lines[first].contains(/^\s*\/\/\//) { first -= 1 }
    return before < 0 ? [] : Array(file.lines[(first + 1)..<(before + 1)])
  }

  private nonisolated(unsafe) static let visible =
    // A regular expression is immutable, but its type is not Sendable.
    /^\s*(@\w+(\([^)]*\))?\s+)*(package|public)\s+(?!import\b|extension\b)/

  /// Whether a declaration satisfies a requirement that is documented at its protocol.
  private static func isConformance(_ line: Int, in file: SwiftFile) -> Bool {
    if file.code[line].contains(conformance) { return true }
    guard file.path.hasPrefix(messages), let name = name(of: file.code[line]) else { return false }
    return messageRequirements.contains(name)
  }

  private static let messages = "Sources/Wire/WireFormat/Messages/"

  /// The requirements of the protocols of messages and of their two encodings.
  private static let messageRequirements: Set<String> = {
    var names: Set<String> = []
    for file in Repository.sources where file.path.hasPrefix(messages) {
      var isInside = false
      for line in file.code {
        if line.hasPrefix("package protocol ") { isInside = true }
        if line.hasPrefix("}") { isInside = false }
        if isInside, let name = name(of: line) { names.insert(name) }
      }
    }
    return names
  }()

  /// The name of the function, property or type alias that a line declares.
  private static func name(of line: some StringProtocol) -> String? {
    String(line).firstMatch(of: /\b(?:func|var|let|typealias) (\w+)/).map { String($0.output.1) }
  }

  private nonisolated(unsafe) static let conformance =
    // A regular expression is immutable, but its type is not Sendable.
    /\b(static func (==|<)|func (hash|encode|next|makeIterator|index|formIndex)\(|var (description|debugDescription|hashValue|startIndex|endIndex|errorDescription)\b|subscript\(|deinit\b|typealias (Element|Index|Iterator)\b)/

  @Test func typesOfTheServerHaveDistinctNames() {
    var homes: [Substring: Set<String>] = [:]
    for file in Repository.sources where file.target != "HearthClient" && file.target != "TestSupport" {
      for line in file.code {
        let declaration =
          /^(?:@\w+(?:\([^)]*\))? +)*(?:(?:public|package|final|indirect) +)*(?:struct|class|enum|protocol|actor|typealias) +(\w+)/
        // `typealias X = Module.X` is another name for one type.
        if line.contains(/typealias (\w+) = \w+\.\1$/) { continue }
        if let match = line.firstMatch(of: declaration) { homes[match.output.1, default: []].insert(file.target) }
      }
    }
    let shared = homes.filter { $0.value.count > 1 }.map { "\($0.key): \($0.value.sorted().joined(separator: ", "))" }
    #expect(shared.isEmpty, "these names have two types: \(shared.sorted().joined(separator: "\n"))")
    // A module that has the name of a type hides the type's siblings from qualified names.
    let targets = Set(Repository.sources.map(\.target))
    for (name, _) in homes { #expect(!targets.contains(String(name)), "the type \(name) has the name of a module") }
  }

  @Test func filesNameNoPathsOfOneMachine() {
    // Absolute paths below the folders of one machine. Paths of system folders are allowed.
    let path = /(^|[^\w.\/)}])\/(work|root|Users|home\/\w+|mnt)\//
    for name in Repository.paths where !name.hasPrefix("fixtures/") {
      for (line, text) in Repository.text(of: name).split(separator: "\n", omittingEmptySubsequences: false)
        .enumerated()
      {
        #expect(!text.contains(path), "\(name):\(line + 1) contains a path of one machine: \(text)")
      }
    }
  }
}
