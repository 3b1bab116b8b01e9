import Accounts
import Glibc

/// The password that a verb sets for an operator.
enum OperatorPassword {
  /// Returns a random password with `--generate`. Otherwise asks for one on the terminal, without showing it, or reads
  /// the first line of standard input. It is not an option, because other users of the machine can see those.
  /// - Throws: ``CommandFailure`` if there is no password, or the two that were typed differ.
  static func choose(_ arguments: Arguments) throws -> (password: String, isMade: Bool) {
    if arguments.has("generate") { return (RandomBytes.text(18), true) }
    guard isatty(STDIN_FILENO) == 1 else {
      guard let line = readLine(strippingNewline: true), !line.isEmpty else {
        throw CommandFailure.usage("write the password to standard input, or add --generate")
      }
      return (line, false)
    }
    let first = try ask("password: ")
    guard try ask("password again: ") == first else { throw CommandFailure.failed("the passwords differ") }
    return (first, false)
  }

  private static func ask(_ question: String) throws -> String {
    Terminal.error.write(question)
    var shown = termios()
    guard tcgetattr(STDIN_FILENO, &shown) == 0 else { throw CommandFailure.failed("the terminal cannot be read") }
    var hidden = shown
    hidden.c_lflag &= ~tcflag_t(ECHO)
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
    defer {
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown)
      Terminal.error.write("\n")
    }
    guard let line = readLine(strippingNewline: true) else { throw CommandFailure.failed("no password was typed") }
    return line
  }
}
