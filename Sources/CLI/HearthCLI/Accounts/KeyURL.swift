import Glibc
import HearthServer

/// The URL that the key of a program contains. The program requests its access tokens there.
enum KeyURL {
  /// Returns the URL that `--url` names, or the known one. If neither exists, asks for it on a terminal.
  /// - Throws: ``CommandFailure`` if no URL is known, or it is not the URL of a server.
  static func choose(_ arguments: Arguments, known: String?) throws -> String {
    if let url = try arguments.value("url") ?? known ?? ask() { return try checked(url) }
    throw CommandFailure.usage(
      "the URL of the server is not known; give the URL at which the program reaches the server, such as --url "
        + "https://db.example.com, or set \"public-url\" in hearth.json (for a server on this machine without TLS: --url "
        + "http://127.0.0.1:8080)")
  }

  private static func ask() throws -> String? {
    guard Terminal.error.isTerminal, isatty(STDIN_FILENO) == 1 else { return nil }
    Terminal.error.write("The URL at which the program reaches the server, such as https://db.example.com: ")
    let line = readLine(strippingNewline: true) ?? ""
    return line.isEmpty ? nil : line
  }

  /// Returns a URL without a trailing slash. Warns if tokens would be sent unencrypted.
  /// - Throws: ``CommandFailure`` if it is not the URL of a server.
  static func checked(_ text: String) throws -> String {
    let url = ServerClient.normalized(text)
    _ = try ServerClient.address(url)
    if url.hasPrefix("http://"), !WebHost.isLoopback(url) {
      Terminal.error.write("hearth: \(url) does not use TLS: the program will send its tokens unencrypted\n")
    }
    return url
  }
}
