import Accounts
import DocumentModel
import HearthServer
import WireFormat

/// The options of `serve` about the console of a production server.
enum ConsoleOptions {
  static let options: [Command.Option] = [
    .value(
      "console-address", "HOST:PORT", "in production: serve the console there, to operators who sign in (default: none)"
    ),
    .value("console-host", "NAME", "the host name under which browsers open the console, such as console.example.com"),
  ]

  /// Sets the address and the facts of the console.
  /// - Throws: ``CommandFailure`` if an option has an invalid value.
  static func apply(_ arguments: Arguments, to configuration: inout HearthConfiguration) throws {
    configuration.consoleHost = arguments.value("console-host")
    if let host = configuration.consoleHost, host.contains(where: { ":/@ ".contains($0) }) || host.isEmpty {
      throw arguments.refusal(
        of: "console-host", host, "must be a host name without a port, such as console.example.com")
    }
    guard let address = try Command.address(arguments, "console-address", example: "127.0.0.1:8081") else { return }
    configuration.consoleAddress = address
  }

  /// The options whose values operators do not see. They can contain passwords, or commands and URLs with such.
  private static let secretOptions: Set<String> = [
    "providers", "mail-command", "identity-provider", "trust-issuer", "tls-key", "backup-key", "cluster-key",
    "shared-files-key",
  ]

  /// Returns a configuration in force as the console shows it. A secret is the text `hidden`, and an option without a
  /// value is missing.
  static func shown(_ effective: [UInt8]) -> [UInt8] {
    guard let map = MapValue(json: effective) else { return Array("{}".utf8) }
    var shown = MapValue()
    for (name, value) in map.entries {
      switch value {
      case .null: continue
      case .array(let values) where values.isEmpty: continue
      default: shown[name] = secretOptions.contains(name) ? .string("hidden") : withoutPasswords(value)
      }
    }
    return shown.json
  }

  /// Hides the user and the password in a URL, and the query of one.
  private static func withoutPasswords(_ value: Value) -> Value {
    switch value {
    case .array(let values): return .array(values.map(withoutPasswords))
    case .string(let text):
      let parts = text.split(separator: "://", maxSplits: 1, omittingEmptySubsequences: false)
      guard parts.count == 2 else { return value }
      var rest = String(parts[1])
      let authority = rest.prefix { $0 != "/" && $0 != "?" }
      if let at = authority.lastIndex(of: "@") { rest = "hidden" + String(rest[at...]) }
      if let query = rest.firstIndex(of: "?") { rest = String(rest[..<query]) + "?hidden" }
      return .string(String(parts[0]) + "://" + rest)
    default: return value
    }
  }
}
