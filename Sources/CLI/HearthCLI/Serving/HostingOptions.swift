import Glibc
import HearthServer
import Hosting

/// The values of `--hosting`: `PATH`, `HOST=PATH`, and `FILE#TARGET` for an entry of a `firebase.json`.
enum HostingOptions {
  /// Returns the web apps that the options name.
  ///
  /// A folder that `firebase.json` in the working directory names as well gets the rules of that file, unless
  /// `--config` replaces it, or the options are those of a project's own file.
  /// - Throws: ``CommandFailure`` if a value names no path.
  static func sites(_ arguments: Arguments) throws -> [HearthConfiguration.HostedSite] {
    let texts = arguments.values("hosting")
    guard !texts.isEmpty else { return [] }
    let entries = arguments.has("config") || !arguments.accepts("config") ? [] : FirebaseFile.hostingEntries()
    return try texts.map { text in
      var site = site(text)
      guard !site.path.isEmpty else {
        throw arguments.refusal(of: "hosting", text, "must have the form PATH, HOST=PATH or FILE#TARGET")
      }
      if site.target == nil, let number = entries.firstIndex(where: { isSame($0.folder, site.path) }),
        number == 0 || !entries[number].names.isEmpty
      {
        site.path = FirebaseFile.name
        site.target = number == 0 ? nil : entries[number].names[0]
      }
      return site
    }
  }

  /// Reads the files of the configuration again and returns the web apps that they, or the command line, name.
  /// - Throws: ``HearthError/configuration(_:)`` if a file is not valid, or a value names no path.
  static func reloadedSites(_ arguments: Arguments) throws(HearthError) -> [HearthConfiguration.HostedSite] {
    do {
      var arguments = arguments
      arguments.readopt("hosting", from: try ConfigurationFile.settings(for: .serve, arguments))
      return try sites(arguments)
    } catch { throw .configuration(CommandFailure(error).message) }
  }

  /// Parses one value.
  private static func site(_ text: String) -> HearthConfiguration.HostedSite {
    var site = HearthConfiguration.HostedSite(text)
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    if parts.count == 2, !parts[0].isEmpty, !parts[0].contains("/") {
      site.host = String(parts[0])
      site.path = String(parts[1])
    }
    if let mark = site.path.lastIndex(of: "#"), site.path[..<mark].hasSuffix(".json") {
      site.target = String(site.path[site.path.index(after: mark)...])
      site.path = String(site.path[..<mark])
    }
    return site
  }

  /// Whether two paths are spellings of the same one.
  private static func isSame(_ a: String, _ b: String) -> Bool {
    func parts(_ path: String) -> [Substring] { path.split(separator: "/").filter { $0 != "." } }
    return a.hasPrefix("/") == b.hasPrefix("/") && parts(a) == parts(b)
  }
}
