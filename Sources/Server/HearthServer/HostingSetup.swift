import Glibc
import Hosting

/// The web apps of a configuration. They are read at the start, and again on request.
final class HostingSetup: Sendable {
  /// The sites, for the API that serves them, or `nil` if the configuration has none.
  let sites: HostedSites?
  /// The site of the web SDK's files, or `nil` if the configuration names no folder.
  let sdk: HostedSites?
  private let configuration: HearthConfiguration
  private let cache = FileContentCache.process

  /// Reads the configuration of each site.
  /// - Throws: ``HearthError/configuration(_:)`` if a folder does not exist, or two sites have the same host;
  ///   ``HearthError/data(_:)`` if a file has no usable configuration.
  init(_ configuration: HearthConfiguration) throws(HearthError) {
    self.configuration = configuration
    sites = configuration.hosting.isEmpty ? nil : HostedSites()
    sdk = configuration.webSDK == nil ? nil : HostedSites()
    sites?.replace(with: try read(configuration.hosting))
    guard let folder = configuration.webSDK else { return }
    try requirePublic(folder, "--web-sdk \(folder)")
    sdk?.replace(with: [(nil, Site(folder: folder, rules: .immutable, cache: cache))])
  }

  /// Reads the configuration again. If it is not usable, the previous one stays in force, and the error is logged.
  func reload() {
    do throws(HearthError) {
      let hosting = try configuration.loadHosting?() ?? configuration.hosting
      guard let sites else {
        guard !hosting.isEmpty else { return }
        return configuration.log(
          .warn, "hosting.ignored", "the server had no web app at its start; restart it to serve the first one")
      }
      sites.replace(with: try read(hosting))
      configuration.log(.info, "hosting.reloaded", "the configuration of the web apps was reloaded")
    } catch {
      configuration.log(
        .error, "hosting.refused", "\(error.description); the current configuration of the web apps stays in use")
    }
  }

  private func read(
    _ hosting: [HearthConfiguration.HostedSite]
  ) throws(HearthError) -> [(host: String?, site: Site)] {
    var sites: [(host: String?, site: Site)] = []
    for hosted in hosting {
      let host = hosted.host?.lowercased()
      guard !sites.contains(where: { $0.host == host }) else {
        throw .configuration("--hosting: \(host ?? "the other hosts") must have only one app")
      }
      sites.append((host, try site(hosted)))
    }
    return sites
  }

  private func site(_ hosted: HearthConfiguration.HostedSite) throws(HearthError) -> Site {
    let found = try folder(hosted)
    for problem in found.problems {
      configuration.log(
        .warn, "hosting.rule", "\(hosted.path): \(problem.key) \(problem.text)",
        [("file", .text(hosted.path)), ("key", .text(problem.key))])
    }
    return Site(folder: found.path, rules: found.rules, cache: cache)
  }

  /// Returns the folder of a web app, without serving it.
  /// - Throws: ``HearthError`` if the server would refuse the app.
  static func folder(
    of hosted: HearthConfiguration.HostedSite, _ configuration: HearthConfiguration
  ) throws(HearthError) -> HostedFolder {
    var configuration = configuration
    (configuration.hosting, configuration.webSDK) = ([], nil)
    return try HostingSetup(configuration).folder(hosted)
  }

  private func folder(_ hosted: HearthConfiguration.HostedSite) throws(HearthError) -> HostedFolder {
    var status = stat()
    guard stat(hosted.path, &status) == 0 else {
      throw .configuration(
        "--hosting \(hosted.path): cannot be opened: \(String(cString: strerror(errno))); build the app first, or name "
          + "the folder that contains its index.html")
    }
    if status.st_mode & S_IFMT == S_IFDIR {
      try requirePublic(hosted.path, "--hosting \(hosted.path)")
      return HostedFolder(host: hosted.host, file: nil, path: hosted.path, rules: SiteRules(), problems: [])
    }
    let entry = try entry(hosted)
    let base = hosted.path.lastIndex(of: "/").map { String(hosted.path[...$0]) } ?? ""
    let folder = entry.folder.hasPrefix("/") ? entry.folder : base + entry.folder
    try requirePublic(folder, "\(hosted.path): hosting.public")
    return HostedFolder(
      host: hosted.host, file: hosted.path, path: folder, rules: entry.rules,
      problems: entry.problems.map { (key: $0.key, text: $0.text) })
  }

  /// Returns the entry of a `firebase.json`.
  private func entry(_ hosted: HearthConfiguration.HostedSite) throws(HearthError) -> HostingEntry {
    let entries: [HostingEntry]
    do throws(HostingFile.Failure) { entries = try HostingFile.read(try Self.read(hosted.path)) } catch {
      throw .data("\(hosted.path): \(error.text)")
    }
    guard let target = hosted.target else {
      guard let entry = entries.first else { throw .data("\(hosted.path): has no \"hosting\"") }
      return entry
    }
    guard let entry = entries.first(where: { $0.names.contains(target) }) else {
      let names = entries.flatMap(\.names).joined(separator: ", ")
      throw .data(
        "\(hosted.path): \"hosting\" has no entry with the target or site \"\(target)\""
          + (names.isEmpty ? "" : "; it has \(names)"))
    }
    return entry
  }

  private static func read(_ path: String) throws(HostingFile.Failure) -> [UInt8] {
    guard let file = fopen(path, "re") else { throw HostingFile.Failure(text: String(cString: strerror(errno))) }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: HostingLimits.configurationBytesMax + 1)
    let count = fread(&bytes, 1, bytes.count, file)
    guard ferror(file) == 0 else { throw HostingFile.Failure(text: "cannot be read") }
    guard count < bytes.count else {
      throw HostingFile.Failure(text: "must not be longer than \(HostingLimits.configurationBytesMax) bytes")
    }
    return Array(bytes[..<count])
  }

  /// Requires a folder that every client may read.
  private func requirePublic(_ folder: String, _ place: String) throws(HearthError) {
    try Self.requireFolder(folder, place)
    try PrivatePaths(configuration).requireApart(from: folder, place)
  }

  private static func requireFolder(_ path: String, _ place: String) throws(HearthError) {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw .configuration("\(place): cannot open the folder \(path): \(String(cString: strerror(errno)))")
    }
    close(descriptor)
  }
}

/// The folder of a web app, as a configuration names it.
package struct HostedFolder {
  /// The host of its requests, or `nil` for all hosts without an app of their own.
  package let host: String?
  /// The `firebase.json` with its rules, or `nil` if it has none.
  package let file: String?
  /// The path of the folder.
  package let path: String
  let rules: SiteRules
  /// The parts of the rules that are not in force, with their places and the reasons.
  package let problems: [(key: String, text: String)]
}

extension HearthConfiguration {
  /// Returns the folder of one of the web apps, without serving it.
  /// - Throws: ``HearthError`` if a server would refuse the app.
  package func folder(of hosted: HostedSite) throws(HearthError) -> HostedFolder {
    try HostingSetup.folder(of: hosted, self)
  }
}
