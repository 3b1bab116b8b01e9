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
  private static let shared: Set = [
    "databases", "enterprise-database", "rules", "storage-rules", "indexes", "require-indexes", "no-anonymous",
    "no-password-sign-in", "no-sign-up", "mail-command", "mail-from", "action-url", "authorized-domain",
    "identity-provider", "providers", "trust-issuer", "hosting",
  ]

  /// The options of a project's own `hearth.json`.
  static let options: [Command.Option] =
    [
      .repeated("hosts", "NAME", "the host names that only this project has; their requests need no other name of it"),
      .repeated("api-keys", "KEY", "the API keys of the project's apps (default: the project ID)"),
    ] + Command.serve.options.filter { shared.contains($0.name) }

  /// Returns the folders of a directory, sorted by name. Hidden folders are ignored. The result is empty if the
  /// directory cannot be read.
  static func all(in directory: String) -> [ProjectFolder] {
    ContentDirectory.names(in: directory).sorted().compactMap { name in
      let path = "\(directory)/\(name)"
      return name.hasPrefix(".") || !isFolder(path) ? nil : ProjectFolder(path: path, id: name)
    }
  }

  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Reads the configuration of the project. The result contains the error of a configuration that is not valid.
  func source() -> ProjectSource {
    do {
      let arguments = try arguments()
      var configuration = try Command.configuration(arguments, isEmulator: false)
      configuration.project = id
      resolvePaths(&configuration)
      return ProjectSource(
        id: id, hosts: arguments.values("hosts"),
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
    for option in Self.options where !["hosts", "api-keys"].contains(option.name) {
      text += "\(option.name)=\(arguments.values(option.name))\n"
    }
    let files = configuration.indexes.map(\.path) + configuration.accounts.identityProviders.map(\.keysPath)
    for file in files {
      var status = stat()
      _ = stat(file, &status)
      text += "\(file) \(status.st_ino) \(status.st_size) \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)\n"
    }
    return text
  }
}
