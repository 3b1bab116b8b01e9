import Glibc
import Synchronization

/// Whether the output has colors, as the option `--color` chooses for all verbs.
enum ColorChoice: String, CaseIterable {
  /// Never.
  case never
  /// On terminals, unless `NO_COLOR` is set (https://no-color.org).
  case auto
  /// Also in files and pipes.
  case always

  /// The help of the option.
  static let help = "colors: on a terminal, never, or also in files and pipes (default: auto)"
  /// The placeholder of the option.
  static let placeholder = allCases.map(\.rawValue).joined(separator: "|")

  private static let chosen = Mutex(ColorChoice.auto)

  /// The choice of this process. It is set before the verb runs.
  static var current: ColorChoice {
    get { chosen.withLock { $0 } }
    set { chosen.withLock { $0 = newValue } }
  }

  /// Removes `--color WHEN` or `--color=WHEN` from a command line, and returns its value. Words after `--` remain.
  /// - Throws: ``CommandFailure`` if the value is missing or unknown.
  static func extract(from words: inout [String]) throws -> ColorChoice? {
    let own = words.prefix { $0 != "--" }
    guard let place = own.firstIndex(where: { $0 == "--color" || $0.hasPrefix("--color=") }) else { return nil }
    let word = words.remove(at: place)
    let text: String
    if word == "--color" {
      guard place < own.count - 1 else {
        throw CommandFailure.usage("option '--color' needs a value: --color \(placeholder)")
      }
      text = words.remove(at: place)
    } else {
      text = String(word.dropFirst("--color=".count))
    }
    guard let choice = ColorChoice(rawValue: text) else {
      throw CommandFailure.usage("'--color \(text)' must be never, auto or always")
    }
    return choice
  }

  /// Whether a terminal or file gets colors.
  func isOn(isTerminal: Bool) -> Bool {
    switch self {
    case .never: return false
    case .always: return true
    case .auto:
      // An empty NO_COLOR counts as unset.
      if let text = getenv("NO_COLOR"), text.pointee != 0 { return false }
      guard isTerminal else { return false }
      return getenv("TERM").map { String(cString: $0) != "dumb" } ?? false
    }
  }
}
