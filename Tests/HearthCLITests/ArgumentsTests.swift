import Testing

@testable import HearthCLI

/// The parsing of command lines.
@Suite struct ArgumentsTests {
  private static let command = Command(
    name: "try", summary: "For tests.", operands: "PATH [MORE]", operandCount: 1...2,
    options: [
      .flag("quiet", ""), .flag("json", ""), .value("port", "PORT", ""), .repeated("import", "FILE", ""),
      .value("map-size", "BYTES", ""), .flag("recursive", "", letter: "r"),
    ],
    run: { _ in 0 })

  @Test(arguments: [
    (["a"], ["a"], [:]),
    (["a", "--port", "1"], ["a"], ["port": ["1"]]),
    (["--port=1", "a"], ["a"], ["port": ["1"]]),
    (["--port=", "a"], ["a"], ["port": [""]]),
    (["--port=a=b", "x"], ["x"], ["port": ["a=b"]]),
    (["--quiet", "a", "--json"], ["a"], ["quiet": [""], "json": [""]]),
    (["--import", "x", "a", "--import=y"], ["a"], ["import": ["x", "y"]]),
    (["a", "-"], ["a", "-"], [:]),
    (["--port", "-", "a"], ["a"], ["port": ["-"]]),
    (["--", "--port", "x"], ["--port", "x"], [:]),
    (["--quiet", "--", "-x"], ["-x"], ["quiet": [""]]),
    (["-r", "a"], ["a"], ["recursive": [""]]),
    (["a", "--recursive"], ["a"], ["recursive": [""]]),
  ])
  func readsWords(words: [String], operands: [String], values: [String: [String]]) throws {
    let arguments = try Arguments(words, for: Self.command)
    #expect(arguments.operands == operands)
    for option in Self.command.options {
      #expect(arguments.values(option.name) == values[option.name] ?? [])
      #expect(arguments.has(option.name) == (values[option.name] != nil))
    }
  }

  @Test(arguments: [
    (["a", "--prot", "1"], "unknown option '--prot'; did you mean '--port'?"),
    (["a", "-q"], "unknown option '-q'"),
    (["a", "--zzzzzzzz"], "unknown option '--zzzzzzzz'"),
    (["a", "--port"], "option '--port' needs a value: --port PORT"),
    (["a", "--port", "--json"], "option '--port' needs a value: --port PORT"),
    (["a", "--port=1", "--port=2"], "option '--port' is given twice; it accepts one value"),
    (["a", "--quiet=yes"], "option '--quiet' takes no value"),
    (["a", "--quiet", "--quiet"], "option '--quiet' is given twice; it accepts one value"),
    ([], "an operand is missing: PATH [MORE]"),
    (["a", "b", "c"], "unexpected 'c'; the verb takes PATH [MORE]"),
  ])
  func refusesWords(words: [String], message: String) {
    let failure = #expect(throws: CommandFailure.self) { try Arguments(words, for: Self.command) }
    #expect(failure?.exitCode == 64)
    #expect(failure?.message == message)
  }

  @Test func settingsFillInMissingOptions() throws {
    var arguments = try Arguments(["a", "--port", "1"], for: Self.command)
    arguments.adopt([
      "port": Arguments.Setting(values: ["9"], origin: "a.json"),
      "map-size": Arguments.Setting(values: ["big"], origin: "a.json"),
      "import": Arguments.Setting(values: ["x"], origin: "b.json"),
    ])
    #expect(arguments.value("port") == "1")
    #expect(arguments.values("import") == ["x"])
    #expect(arguments.origins == ["map-size": "a.json", "import": "b.json"])
    // The message of an invalid value names its file.
    let failure = #expect(throws: CommandFailure.self) { try arguments.bytes("map-size", in: 0...9) }
    #expect(failure?.exitCode == 65)
    #expect(failure?.message == #"a.json: "map-size": 'big' must be a size from 0 to 9 bytes, such as 64G"#)
  }

  @Test(
    arguments: [
      ("64G", 64 << 30), ("1048576", 1 << 20), ("10m", 10 << 20), ("2T", 2 << 40), ("64X", nil), ("", nil),
      ("-1G", nil),
      ("99999999999999T", nil), ("1K", nil), ("G", nil),
    ] as [(String, Int?)])
  func readsSizes(text: String, bytes: Int?) throws {
    let arguments = try Arguments(["a", "--map-size=\(text)"], for: Self.command)
    if let bytes {
      #expect(try arguments.bytes("map-size", in: 1 << 20...1 << 46) == bytes)
    } else {
      #expect(throws: CommandFailure.self) { try arguments.bytes("map-size", in: 1 << 20...1 << 46) }
    }
  }

  @Test(
    arguments: [
      ("sevre", "serve"), ("gte", "get"), ("exprot", "export"), ("imp", "import"), ("xyzzy", nil), ("", nil),
    ] as [(String, String?)])
  func findsTheNearestVerb(word: String, verb: String?) {
    #expect(NearestMatch.find(word, in: Command.all.filter { !$0.isHidden }.map(\.name)) == verb)
  }

  @Test func everyVerbExplainsItself() {
    for command in Command.all {
      #expect(command.isHidden || !command.examples.isEmpty, "\(command.name) has no example")
      #expect(Set(command.options.map(\.name)).count == command.options.count, "\(command.name) has an option twice")
      #expect(command.isHidden || HelpText.overview.contains("  \(command.name) "))
      for line in HelpText.text(of: command).split(separator: "\n") {
        #expect(line.count <= 120, "\(command.name): \(line)")
      }
    }
  }
}
