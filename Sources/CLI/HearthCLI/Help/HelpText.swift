/// The texts that `hearth help` prints.
enum HelpText {
  /// The list of verbs.
  static var overview: String {
    var text = """
      hearth \(Version.current): a self-hosted backend that speaks Cloud Firestore's API.

      Usage: hearth VERB [OPTIONS] …


      """
    let shown = Command.all.filter { !$0.isHidden }
    let width = (shown.map(\.name.count).max() ?? 0) + 2
    for command in shown { text += "  \(padded(command.name, to: width))\(command.summary)\n" }
    text += """

      `hearth help VERB` describes a verb with its options and examples. `hearth version` prints the version.
      Every verb takes --color \(ColorChoice.placeholder): \(ColorChoice.help).

      Start with:  hearth serve --emulator
                   hearth set users/ann '{"name": "Ann"}'
                   hearth get users/ann

      """
    return text
  }

  /// Returns the help of one verb, with its options and examples.
  static func text(of command: Command) -> String {
    var text = "\(command.summary)\n\nUsage: \(usage(of: command))\n"
    if !command.aliases.isEmpty { text += "\(aliases(of: command))\n" }
    if !command.details.isEmpty { text += "\n\(command.details)\n" }
    if !command.options.isEmpty {
      text += "\nOptions:\n"
      let heads = command.options.map { option in
        (option.letter.map { "-\($0), " } ?? "") + "--\(option.name)" + (option.value.map { " \($0)" } ?? "")
          + (option.isRepeated ? " …" : "")
      }
      let width = (heads.map(\.count).max() ?? 0) + 2
      for (head, option) in zip(heads, command.options) { text += "  \(padded(head, to: width))\(option.help)\n" }
    }
    if !command.examples.isEmpty {
      text += "\nExamples:\n"
      for example in command.examples {
        text += "  \(example.line)\n"
        if !example.remark.isEmpty { text += "      \(example.remark)\n" }
      }
    }
    return text
  }

  /// Returns the line of the other names of a verb.
  static func aliases(of command: Command) -> String {
    "Also: \(command.aliases.map { "hearth \($0)" }.joined(separator: ", "))"
  }

  /// Returns the usage line of a verb, such as `hearth get [PATH] [OPTIONS]`.
  static func usage(of command: Command) -> String {
    var words = [command.operands, command.options.isEmpty ? "" : "[OPTIONS]"]
    // Words after `--` belong to the command that the verb runs, so the options precede it.
    if command.operands.hasPrefix("-- ") { words.reverse() }
    return (["hearth \(command.name)"] + words.filter { !$0.isEmpty }).joined(separator: " ")
  }

  /// Runs `hearth help [VERB]`, `hearth help --markdown [configuration]`, which prints a page of docs/reference, or
  /// `hearth help --man DIR`, which writes the manual pages.
  /// - Throws: ``CommandFailure`` if no verb has that name, or a page cannot be written.
  static func run(_ words: [String]) throws -> Int32 {
    if words.count == 2, words[0] == "--man" {
      for page in HelpManual.pages { try TextFile.write(page.text, to: "\(words[1])/\(page.name)") }
      return 0
    }
    if words.first == "--man" {
      throw CommandFailure.usage("'help --man' writes the manual pages to a directory; name it: hearth help --man DIR")
    }
    if words == ["--markdown"] || words == ["--markdown", "configuration"] {
      Terminal.output.write(words.count == 1 ? HelpMarkdown.commandLinePage : HelpMarkdown.configurationPage)
      return 0
    }
    if let first = words.first, let group = Command.group(first) {
      let shown = words.count == 1 ? group : [try Command.find(words).command]
      Terminal.output.write(shown.map(text).joined(separator: "\n"))
      return 0
    }
    guard words.count <= 1 else { throw CommandFailure.usage("'help' takes one verb at a time") }
    guard let name = words.first, name != "help", name != "--help", name != "-h" else {
      Terminal.output.write(overview)
      return 0
    }
    Terminal.output.write(text(of: try Command.named(name)))
    return 0
  }

  private static func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(1, width - text.count))
  }
}
