import DatabaseService
import DocumentModel
import Files
import Glibc
import HearthServer

/// The folder of one project of a server that serves several. Its name is the project ID.
///
///     projects/my-app/hearth.json              options of the project, all optional
///     projects/my-app/firestore.rules          security rules
///     projects/my-app/storage.rules            security rules of files
///     projects/my-app/firestore.indexes.json   indexes of the (default) database
///     projects/my-app/firebase.json            other names of these three files
///
/// Paths in the files are relative to the folder.
struct ProjectFolder: Sendable {
  /// The path of the folder.
  let path: String
  /// The project ID.
  let id: String

  /// The most bytes of an error that a fingerprint contains.
  private static let fingerprintErrorBytesMax = 4096

  /// The options of `hearth serve` that belong to a project.
  private static let shared = Set([
    "databases", "enterprise-database", "rules", "storage-rules", "indexes", "require-indexes", "no-anonymous",
    "no-password-sign-in", "no-sign-up", "mail-command", "mail-from", "action-url", "authorized-domain",
    "identity-provider", "providers", "trust-issuer", "hosting", "public-url",
  ]).union(LimitOptions.quotas.map(\.name))

  /// The options of a project's own `hearth.json`.
  static let options: [Command.Option] =
    [
      .repeated("hosts", "NAME", "the host names that only this project has; their requests need no other name of it"),
      .repeated("api-keys", "KEY", "the API keys of the project's apps (default: the project ID)"),
    ] + Command.serve.options.filter { shared.contains($0.name) }

  /// Returns the folders of a directory, sorted by name, and the links to folders. Hidden folders and other files are
  /// ignored. A link that leads nowhere is a project that is not valid.
  /// - Throws: ``HearthError/configuration(_:)`` if the directory cannot be read.
  static func all(in directory: String) throws(HearthError) -> [ProjectFolder] {
    guard let problem = Self.problem(with: directory) else {
      return ContentDirectory.names(in: directory).sorted().compactMap { name in
        let path = "\(directory)/\(name)"
        return isProject(path) ? ProjectFolder(path: path, id: name) : nil
      }
    }
    throw .configuration("cannot read the directory of projects \(problem)")
  }

  private static func isProject(_ path: String) -> Bool {
    var status = stat()
    guard stat(path, &status) == 0 else { return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK }
    return status.st_mode & S_IFMT == S_IFDIR
  }

  /// Returns the path and the reason if a folder cannot be read.
  private static func problem(with folder: String) -> String? {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { return "\(folder): \(String(cString: strerror(errno)))" }
    close(descriptor)
    return nil
  }

  /// Reads the configuration of the project. The result contains the error of a configuration that is not valid.
  func source() -> ProjectSource {
    do {
      if let problem = Self.problem(with: path) { throw CommandFailure.data("cannot read \(problem)") }
      let arguments = try arguments()
      var configuration = try Command.configuration(arguments, isEmulator: false)
      configuration.project = id
      configuration.folder = path
      configuration.log = nil
      resolvePaths(&configuration)
      // The host name of a web app names its project too.
      return ProjectSource(
        id: id, hosts: arguments.values("hosts") + configuration.hosting.compactMap(\.host),
        apiKeys: arguments.has("api-keys") ? arguments.values("api-keys") : nil,
        configuration: .success(configuration), fingerprint: fingerprint(arguments, configuration))
    } catch {
      let message = CommandFailure(error).message
      return ProjectSource(
        id: id, configuration: .failure(.data(message)),
        fingerprint: String(message.prefix(Self.fingerprintErrorBytesMax)))
    }
  }

  /// Returns the options of the project's files.
  private func arguments() throws -> Arguments {
    let command = Command(
      name: "project", summary: "", options: Self.options, run: { _ in ExitCode.failure })
    var arguments = try Arguments([], for: command)
    let file = "\(path)/\(ConfigurationFile.name)"
    var settings: [String: Arguments.Setting] = [:]
    if let bytes = try ConfigurationFile.bytes(of: file) {
      settings = try ConfigurationFile.parse(bytes, name: file, options: Self.options)
        .mapValues { Arguments.Setting(values: $0, origin: file) }
    }
    settings.merge(try FirebaseFile.settings(isEmulator: false, in: path)) { own, _ in own }
    if let file = settings["providers"]?.values.last, !file.hasPrefix("{"), !file.hasPrefix("/") {
      settings["providers"]?.values = ["\(path)/\(file)"]
    }
    for (option, name) in [
      ("rules", "firestore.rules"), ("storage-rules", "storage.rules"), ("indexes", "firestore.indexes.json"),
    ] where settings[option] == nil && access("\(path)/\(name)", F_OK) == 0 {
      settings[option] = Arguments.Setting(values: [name], origin: path)
    }
    arguments.adopt(settings)
    return arguments
  }

  private func resolvePaths(_ configuration: inout HearthConfiguration) {
    func resolve(_ file: inout String) { if !file.hasPrefix("/") { file = "\(path)/\(file)" } }
    for index in configuration.rules.indices { resolve(&configuration.rules[index].path) }
    for index in configuration.indexes.indices { resolve(&configuration.indexes[index].path) }
    for index in configuration.trustedIssuers.indices { resolve(&configuration.trustedIssuers[index].path) }
    for index in configuration.hosting.indices { resolve(&configuration.hosting[index].path) }
    configuration.accounts.providersFolder = path
    for index in configuration.accounts.identityProviders.indices {
      resolve(&configuration.accounts.identityProviders[index].keysPath)
    }
    if var file = configuration.storageRules {
      resolve(&file)
      configuration.storageRules = file
    }
  }

  /// Returns a text that changes with the options, and with the files that a server reads only when it opens a project.
  private func fingerprint(_ arguments: Arguments, _ configuration: HearthConfiguration) -> String {
    var text = ""
    // The server takes up a change of these without opening the project again.
    let live = ["hosts", "api-keys"] + LimitOptions.quotas.map(\.name)
    for option in Self.options where !live.contains(option.name) {
      text += "\(option.name)=\(arguments.values(option.name))\n"
    }
    text += "\(configuration.accounts.signInProviders ?? "")\n"
    let files =
      configuration.indexes.map(\.path) + configuration.accounts.identityProviders.map(\.keysPath)
      + configuration.accounts.secretFiles
    for file in files {
      var status = stat()
      _ = stat(file, &status)
      text += "\(file) \(status.st_ino) \(status.st_size) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)\n"
    }
    return text
  }
}
