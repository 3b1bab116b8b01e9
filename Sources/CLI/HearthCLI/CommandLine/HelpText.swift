/// What `hearth help` prints.
enum HelpText {
  /// The list of verbs.
  static var overview: String {
    var text = """
      hearth \(Version.current): a document database that speaks Firestore's API.

      Usage: hearth VERB [OPTIONS] …


      """
    let shown = Command.all.filter { !$0.isHidden }
    let width = (shown.map(\.name.count).max() ?? 0) + 2
    for command in shown { text += "  \(padded(command.name, to: width))\(command.summary)\n" }
    text += """

      `hearth help VERB` says more about one, with examples. `hearth --version` prints the version.

      Start with:  hearth serve --emulator
                   hearth set users/ann '{"name": "Ann"}'
                   hearth get users/ann

      """
    return text
  }

  /// What one verb takes, with examples.
  static func text(of command: Command) -> String {
    var words = [command.operands, command.options.isEmpty ? "" : "[OPTIONS]"]
    // Behind `--` everything is the command's.
    if command.operands.hasPrefix("-- ") { words.reverse() }
    let usage = (["hearth \(command.name)"] + words.filter { !$0.isEmpty }).joined(separator: " ")
    var text = "\(command.summary)\n\nUsage: \(usage)\n"
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

  /// `hearth help [VERB]`.
  static func run(_ words: [String]) throws -> Int32 {
    if let first = words.first, let group = Command.group(first) {
      let shown = words.count == 1 ? group : [try Command.find(words).command]
      Terminal.output.write(shown.map(text).joined(separator: "\n"))
      return 0
    }
    guard words.count <= 1 else { throw CommandFailure.usage("help takes one verb at a time") }
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
