/// A verb of the command line: what it takes and what it does. One file each, `ServeCommand.swift` and so on.
struct Command: Sendable {
  /// An option, written `--name` or `--name VALUE`.
  struct Option: Sendable {
    /// The name without the dashes.
    var name: String
    /// What stands for the value in help texts; `nil` for a flag.
    var value: String?
    /// Whether it may come several times.
    var isRepeated = false
    /// One line of help.
    var help: String
    /// Whether it may stand in the configuration file too.
    var standsInFile = true
    /// A letter that stands for the name, written `-r`.
    var letter: Character?

    /// An option without a value.
    static func flag(_ name: String, _ help: String, letter: Character? = nil) -> Option {
      Option(name: name, help: help, letter: letter)
    }

    /// An option with a value.
    static func value(_ name: String, _ value: String, _ help: String) -> Option {
      Option(name: name, value: value, help: help)
    }

    /// The same option, where it means something else to a verb.
    func saying(_ help: String) -> Option {
      var option = self
      option.help = help
      return option
    }

    /// The same option, which may not stand in the configuration file.
    var onCommandLineOnly: Option {
      var option = self
      option.standsInFile = false
      return option
    }

    /// An option with a value that may come several times.
    static func repeated(_ name: String, _ value: String, _ help: String) -> Option {
      Option(name: name, value: value, isRepeated: true, help: help)
    }
  }

  /// The verb.
  var name: String
  /// One line of help.
  var summary: String
  /// The operands as help shows them, such as `PATH JSON`.
  var operands = ""
  /// How many operands there may be.
  var operandCount: ClosedRange<Int> = 0...0
  /// The options in the order of the help.
  var options: [Option] = []
  /// Paragraphs behind the summary.
  var details = ""
  /// Command lines with a remark each.
  var examples: [(line: String, remark: String)] = []
  /// Whether lists of verbs leave it out: verbs for the program itself.
  var isHidden = false
  /// Does it; returns the exit code.
  var run: @Sendable (Arguments) throws -> Int32

  /// All verbs, in the order of the help.
  static var all: [Command] {
    [
      .serve, .exec, .get, .query, .watch, .set, .update, .delete, .import, .export, .backup, .check, .checkFile,
      .checkFiles, .doctor, .indexes, .stats, .listeners, .accountsList, .accountsCreate, .accountsDelete,
      .accountsSetClaims, .accountsDisable, .accountsEnable, .accountsExport, .accountsImport, .keysCreate,
      .keysList, .keysRevoke, .keysRotate, .token, .rulesCheck, .rulesTest, .rulesExplain, .filesList,
      .filesCopy, .filesRemove,
    ]
  }

  /// The verb that a command line names by its first word, or its first two where the first leads a group of verbs, and
  /// the words behind it.
  /// - Throws: ``CommandFailure`` with the nearest verb.
  static func find(_ words: [String]) throws -> (command: Command, rest: [String]) {
    guard let first = words.first, let group = group(first) else {
      return (try named(words.first ?? ""), Array(words.dropFirst()))
    }
    let seconds = group.map { String($0.name.dropFirst(first.count + 1)) }
    let choice = seconds.joined(separator: ", ")
    guard words.count > 1 else { throw CommandFailure.usage("'\(first)' is followed by one of \(choice)") }
    guard let command = group.first(where: { $0.name == "\(first) \(words[1])" }) else {
      let hint = NearestMatch.find(words[1], in: seconds).map { "did you mean '\(first) \($0)'?" }
      throw CommandFailure.usage(
        "unknown verb '\(first) \(words[1])'; \(hint ?? "'\(first)' is followed by one of \(choice)")")
    }
    return (command, Array(words.dropFirst(2)))
  }

  /// The verbs of two words that begin with this one; `nil` where there are none.
  static func group(_ name: String) -> [Command]? {
    let group = all.filter { $0.name.hasPrefix(name + " ") }
    return group.isEmpty ? nil : group
  }

  /// The verb of that name.
  /// - Throws: ``CommandFailure`` with the nearest verb.
  static func named(_ name: String) throws -> Command {
    if let command = all.first(where: { $0.name == name }) { return command }
    let verbs = all.filter { !$0.isHidden }.map(\.name) + ["help"]
    let what = name.hasPrefix("-") ? "option" : "verb"
    let near = name.hasPrefix("-") ? nil : NearestMatch.find(name, in: verbs)
    let hint = near.map { "did you mean '\($0)'?" } ?? "the verbs are \(verbs.joined(separator: ", "))"
    throw CommandFailure.usage("unknown \(what) '\(name)'; \(hint)")
  }
}
