/// The address of PostgreSQL as a URL, such as `postgres://hearth@pg1,pg2/hearth`. It may have several hosts, and a
/// password.
package enum PostgresURL {
  /// Returns whether a text has the form of such a URL. An @ may only end the user's name and password; elsewhere it
  /// must be written as %40. So it is certain where a password ends.
  package static func isOne(_ text: String) -> Bool { parts(of: text) != nil }

  /// Returns a URL without its passwords, for messages. A text that is not such a URL is not repeated.
  package static func withoutPassword(_ url: String) -> String {
    guard let (scheme, user, place) = parts(of: url) else { return "postgres://…" }
    let name = user.map { $0.prefix { $0 != ":" } + "@" } ?? ""
    guard let question = place.firstIndex(of: "?") else { return "\(scheme)\(name)\(place)" }
    let parameters = place[place.index(after: question)...].split(separator: "&").filter { !isSecret($0) }
    let rest = parameters.isEmpty ? "" : "?" + parameters.joined(separator: "&")
    return "\(scheme)\(name)\(place[..<question])\(rest)"
  }

  /// Returns whether a URL contains a password.
  package static func hasPassword(_ url: String) -> Bool { withoutPassword(url) != url }

  /// Returns the scheme with its slashes, the user with the password if there is one, and the rest.
  private static func parts(of url: String) -> (scheme: Substring, user: Substring?, place: Substring)? {
    guard let scheme = ["postgres://", "postgresql://"].first(where: url.hasPrefix) else { return nil }
    let rest = url.dropFirst(scheme.count)
    guard let at = rest.firstIndex(of: "@") else { return (url.prefix(scheme.count), nil, rest) }
    let place = rest[rest.index(after: at)...]
    guard !rest[..<at].contains(where: { $0 == "/" || $0 == "?" }), !place.contains("@") else { return nil }
    return (url.prefix(scheme.count), rest[..<at], place)
  }

  /// Whether a parameter may be a password, also if letters of its name are percent-encoded.
  private static func isSecret(_ parameter: Substring) -> Bool {
    let name = parameter.prefix { $0 != "=" }
    return name.contains("%") || name.lowercased().hasSuffix("password")
  }
}
