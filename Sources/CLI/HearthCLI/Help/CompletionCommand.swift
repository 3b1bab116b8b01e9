extension Command {
  /// Prints the completions for a shell.
  static let completion = Command(
    name: "completion", summary: "Prints the completions of verbs, options and values for a shell.",
    operands: Shell.allCases.map(\.rawValue).joined(separator: " | "), operandCount: 1...1,
    details: """
      The Debian package installs the completions. Without it, let your shell read them at each start, as the examples
      show. They complete verbs, options, names of files, words such as the formats of `hearth export`, and the projects
      of a data directory.
      """,
    examples: [
      ("source <(hearth completion bash)", "in ~/.bashrc"),
      ("hearth completion zsh > ~/.zfunc/_hearth", "in a folder of $fpath, before compinit runs"),
      ("hearth completion fish > ~/.config/fish/completions/hearth.fish", ""),
    ],
    run: { arguments in
      let name = arguments.operands[0]
      guard let shell = Shell(rawValue: name) else {
        let hint = NearestMatch.find(name, in: Shell.allCases.map(\.rawValue)).map { "; did you mean '\($0)'?" } ?? ""
        throw CommandFailure.usage("'\(name)' must be bash, zsh or fish\(hint)")
      }
      Terminal.output.write(shell.completions)
      return 0
    })
}

/// A shell with programmable completion.
enum Shell: String, CaseIterable {
  case bash, zsh, fish

  /// The script that completes the command lines of `hearth`, generated from the verbs and their options.
  var completions: String {
    switch self {
    case .bash: BashCompletions.script
    case .zsh: ZshCompletions.script
    case .fish: FishCompletions.script
    }
  }

  /// Returns a text in single quotes, as all three shells read it. `escape` is the form of a single quote.
  static func quoted(_ text: String, quote: String = #"'\''"#) -> String { "'\(text.replacing("'", with: quote))'" }
}

/// The values that fit one place of a command line.
enum CompletionValue: Equatable {
  case files
  case folders
  /// A program and its arguments.
  case commands
  /// The projects of a data directory.
  case projects
  /// A few words.
  case words([String])
  /// Anything.
  case anything

  /// The values of an option, or `nil` if it has no value.
  init?(of option: Command.Option) {
    guard let placeholder = option.value else { return nil }
    if !option.choices.isEmpty {
      self = .words(option.choices)
    } else if option.name == "project" || option.name == "from-project" {
      self = .projects
    } else if placeholder == "FILE" || option.name == "import" {
      self = .files
    } else {
      self = placeholder == "DIR" ? .folders : .anything
    }
  }

  /// The operands of a verb.
  init(operandsOf command: Command) {
    let alternatives = command.operands.split(separator: " | ").map(String.init)
    if alternatives.count > 1, alternatives.allSatisfy({ $0.utf8.allSatisfy { (0x61...0x7A).contains($0) } }) {
      self = .words(alternatives)
    } else if command.operands.hasPrefix("-- ") {
      self = .commands
    } else if ["FILE", "SOURCE", "DEST", "| DIR"].contains(where: command.operands.contains) {
      self = .files
    } else {
      self = command.operands.contains("DIR") ? .folders : .anything
    }
  }
}

/// The verbs that completions offer.
enum CompletionVerbs {
  /// The verbs without their groups, in the order of the help.
  static var commands: [Command] { Command.all.filter { !$0.isHidden } }

  /// The option that every verb takes.
  static var colorOption: Command.Option {
    .choice("color", ColorChoice.allCases.map(\.rawValue), ColorChoice.help)
  }

  /// The options of a verb, with those that every verb takes.
  static func options(of command: Command) -> [Command.Option] {
    command.options + [colorOption, .flag("help", "show the help of the verb")]
  }

  /// The words that can follow `hearth`, each with a description.
  static var first: [(word: String, help: String)] {
    var words: [(word: String, help: String)] = []
    for command in commands {
      let word = command.name.split(separator: " ").first.map(String.init) ?? ""
      guard words.last?.word != word else { continue }
      let group = Command.group(word).map {
        "verbs: \($0.map { $0.name.dropFirst(word.count + 1) }.joined(separator: ", "))"
      }
      words.append((word, group ?? command.summary))
      words += command.aliases.map { ($0, command.summary) }
    }
    return words + [("help", "Describes a verb."), ("version", "Prints the version.")]
  }

  /// The groups, and the words that can follow them.
  static var groups: [(word: String, seconds: [(word: String, help: String)])] {
    first.compactMap { word, _ in
      Command.group(word).map { group in (word, group.map { (String($0.name.dropFirst(word.count + 1)), $0.summary) }) }
    }
  }

  /// The names under which a verb can be called.
  static func names(of command: Command) -> [String] { [command.name] + command.aliases }
}
