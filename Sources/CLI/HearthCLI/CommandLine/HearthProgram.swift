import Glibc
import HearthServer

/// The `hearth` program: finds the verb, parses its arguments, runs it, and reports errors with an exit code.
public enum HearthProgram {
  /// Runs the command line of this process and exits with its status.
  public static func main() -> Never {
    let code = run(Array(CommandLine.arguments.dropFirst()))
    fflush(nil)
    // Exit without running atexit handlers: they would free library state that background work of a server still uses,
    // such as the generation of the next signing keys.
    _exit(code)
  }

  /// Runs one command line and returns the exit code.
  static func run(_ words: [String]) -> Int32 {
    var verb: String?
    do {
      var words = words
      if let choice = try ColorChoice.extract(from: &words) { ColorChoice.current = choice }
      guard let first = words.first else {
        Terminal.error.write(HelpText.overview)
        return ExitCode.usage
      }
      switch first {
      case "--help", "-h":
        Terminal.output.write(HelpText.overview)
        return 0
      case "--version", "-v", "-V", "version":
        Terminal.output.write("hearth \(Version.current)\n")
        return 0
      case "help":
        return try HelpText.run(Array(words.dropFirst()))
      default: break
      }
      if let group = Command.group(first), let second = words.dropFirst().first, second == "--help" || second == "-h" {
        Terminal.output.write(group.map(HelpText.text).joined(separator: "\n"))
        return 0
      }
      // The message of an unknown second word points to the help of the group.
      if Command.group(first) != nil { verb = first }
      let (command, rest) = try Command.find(words)
      verb = command.name
      if rest.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" }) {
        Terminal.output.write(HelpText.text(of: command))
        return 0
      }
      var arguments = try Arguments(rest, for: command)
      arguments.adopt(try ConfigurationFile.settings(for: command, arguments))
      return try command.run(arguments)
    } catch {
      return report(error, verb: verb)
    }
  }

  private static func report(_ error: any Error, verb: String?) -> Int32 {
    let failure = CommandFailure(error)
    let name = verb.map { "hearth \($0)" } ?? "hearth"
    // The message may contain names that other users chose.
    var text = "\(name): \(Terminal.error.red("error:")) \(TerminalText.lines(failure.message))\n"
    if failure.exitCode == ExitCode.usage { text += "See `hearth help\(verb.map { " \($0)" } ?? "")`.\n" }
    Terminal.error.write(text)
    return failure.exitCode
  }
}

/// The version of the program.
enum Version {
  static let current = Server.version
}
