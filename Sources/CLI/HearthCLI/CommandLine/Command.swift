/// A verb of the command line: its operands, its options, its help and its action. Each verb has its own file, such as
/// `ServeCommand.swift`.
struct Command: Sendable {
  /// An option, written `--name` or `--name VALUE`.
  struct Option: Sendable {
    /// The name without the dashes.
    var name: String
    /// The placeholder of the value in help texts; `nil` for a flag.
    var value: String?
    /// Whether it can be given several times.
    var isRepeated = false
    /// One line of help.
    var help: String
    /// The possible values, or an empty array if there are many. ``value`` is their list if it is empty.
    var choices: [String] = []
    /// Whether a configuration file can set it.
    var isAllowedInFile = true
    /// A short form of the name, such as `r` for `-r`.
    var letter: Character?

    /// Returns an option without a value.
    static func flag(_ name: String, _ help: String, letter: Character? = nil) -> Option {
      Option(name: name, help: help, letter: letter)
    }

    /// Returns an option with a value.
    static func value(_ name: String, _ value: String, _ help: String) -> Option {
      Option(name: name, value: value, help: help)
    }

    /// Returns an option whose value is one of a few words.
    static func choice(_ name: String, _ choices: [String], _ help: String) -> Option {
      Option(name: name, value: choices.joined(separator: "|"), help: help, choices: choices)
    }

    /// Returns the same option, whose value is usually one of these words.
    func with(choices: [String]) -> Option {
      var option = self
      option.choices = choices
      return option
    }

    /// Returns the same option with another help text, for a verb that uses it differently.
    func withHelp(_ help: String) -> Option {
      var option = self
      option.help = help
      return option
    }

    /// The same option, which configuration files cannot set.
    var onCommandLineOnly: Option {
      var option = self
      option.isAllowedInFile = false
      return option
    }

    /// Returns an option with a value that can be given several times.
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
  /// The number of operands that the verb accepts.
  var operandCount: ClosedRange<Int> = 0...0
  /// The options, in the order in which the help lists them.
  var options: [Option] = []
  /// Paragraphs that follow the summary. They are also Markdown: see ``HelpMarkdown``.
  var details = ""
  /// Command lines, each with a remark that may be empty.
  var examples: [(line: String, remark: String)] = []
  /// Other names of the verb.
  var aliases: [String] = []
  /// Whether lists of verbs omit it. The program itself runs such verbs.
  var isHidden = false
  /// Runs the verb and returns the exit code.
  var run: @Sendable (Arguments) throws -> Int32

  /// All verbs, in the order of the help.
  static var all: [Command] {
    [
      .serve, .exec, .get, .query, .watch, .add, .set, .update, .delete, .import, .export, .restore, .backup,
      .backupsCreate,
      .backupsFollow, .backupsList, .backupsRestore, .backupsDelete, .compact, .check, .checkFile, .checkFiles, .doctor,
      .health,
      .indexes, .stats, .listeners, .accountsList, .accountsCreate, .accountsDelete,
      .accountsSetClaims, .accountsDisable, .accountsEnable, .accountsExport, .accountsImport, .keysCreate,
      .keysList, .keysRevoke, .keysRotate, .operatorsAdd, .operatorsList, .operatorsSet, .operatorsRemove, .token,
      .rulesCheck, .rulesTest, .rulesExplain, .filesList,
      .filesCopy, .filesRemove, .projectsList, .projectsCheck, .clusterInit, .clusterStatus, .clusterCheck,
      .clusterCopy, .clusterDeploy, .clusterDrain, .clusterRemove, .clusterUpgrade, .completion,
    ]
  }

  /// Returns the verb that a command line begins with, and the words that follow it. A verb has one word, or two if it
  /// belongs to a group.
  /// - Throws: ``CommandFailure`` if no verb has that name; the message suggests the nearest.
  static func find(_ words: [String]) throws -> (command: Command, rest: [String]) {
    guard let first = words.first, let group = group(first) else {
      return (try named(words.first ?? ""), Array(words.dropFirst()))
    }
    let seconds = group.map { String($0.name.dropFirst(first.count + 1)) }
    let choice = seconds.joined(separator: ", ")
    guard words.count > 1 else { throw CommandFailure.usage("'\(first)' must be followed by one of \(choice)") }
    guard let command = group.first(where: { $0.name == "\(first) \(words[1])" }) else {
      let hint = NearestMatch.find(words[1], in: seconds).map { "did you mean '\(first) \($0)'?" }
      throw CommandFailure.usage(
        "unknown verb '\(first) \(words[1])'; \(hint ?? "'\(first)' must be followed by one of \(choice)")")
    }
    return (command, Array(words.dropFirst(2)))
  }

  /// Returns the verbs of two words that begin with this one, or `nil` if none exist.
  static func group(_ name: String) -> [Command]? {
    let group = all.filter { $0.name.hasPrefix(name + " ") }
    return group.isEmpty ? nil : group
  }

  /// Returns the verb of that name.
  /// - Throws: ``CommandFailure`` if no verb has that name; the message suggests the nearest.
  static func named(_ name: String) throws -> Command {
    if let command = all.first(where: { $0.name == name || $0.aliases.contains(name) }) { return command }
    let verbs = all.filter { !$0.isHidden }.flatMap { [$0.name] + $0.aliases } + ["help", "version"]
    let what = name.hasPrefix("-") ? "option" : "verb"
    let near = name.hasPrefix("-") ? nil : synonyms[name] ?? NearestMatch.find(name, in: verbs)
    let hint = near.map { "; did you mean '\($0)'?" } ?? ""
    throw CommandFailure.usage("unknown \(what) '\(name)'\(hint)")
  }

  /// Verbs of similar programs, and the verbs that do the same here.
  private static let synonyms = [
    "rm": "delete", "remove": "delete", "cat": "get", "show": "get", "find": "query", "select": "query",
    "count": "query", "put": "set", "create": "add", "insert": "add", "patch": "update", "start": "serve",
    "run": "serve", "emulator": "serve", "test": "rules test", "dump": "export", "load": "import",
    "users": "accounts list",
    "auth": "accounts list", "upload": "files cp", "download": "files cp", "cp": "files cp", "fsck": "check",
    "verify": "check", "status": "stats", "completions": "completion",
  ]
}
