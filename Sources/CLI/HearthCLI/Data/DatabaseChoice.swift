import DocumentModel
import Glibc
import HearthServer

/// The options that choose a server, a project and a database, and their defaults.
enum DatabaseChoice {
  static let projectOption = Command.Option.value(
    "project", "ID", "the project (default: $HEARTH_PROJECT, $GOOGLE_CLOUD_PROJECT, that of the key, or demo)")
  static let databaseOption = Command.Option.value("database", "ID", "the database of the project (default: (default))")
  static let serverOption = Command.Option.value(
    "server", "URL", "the server (default: $HEARTH_SERVER or http://127.0.0.1:8080)")
  /// The options that sign in to a server.
  static let credentialOptions: [Command.Option] = [
    .value(
      "key", "FILE",
      "sign in with this service key (default: $HEARTH_KEY or $GOOGLE_APPLICATION_CREDENTIALS)"),
    .value("token", "TOKEN", "the bearer token to send (default: $HEARTH_TOKEN or owner)"),
    .value("token-file", "FILE", "read the bearer token from this file, again whenever it expires"),
    .value("token-command", "LINE", "run this command line to get a bearer token, again whenever it expires"),
  ]
  /// The options that sign in to the server of `--from`.
  static let sourceCredentialOptions: [Command.Option] = [
    .value("from-key", "FILE", "sign in there with this key of Google Cloud or of `hearth keys create`"),
    .value("from-token", "TOKEN", "the bearer token to send there (default: owner)"),
    .value("from-token-file", "FILE", "read that bearer token from this file, again whenever it expires"),
    .value("from-token-command", "LINE", "run this command line to get that bearer token, again whenever it expires"),
  ]
  static let authoritiesOption = Command.Option.value(
    "cacert", "FILE", "also trust the servers whose certificates an authority in this PEM file issued")
  /// The options of the verbs that call a server.
  static let serverOptions =
    [serverOption, projectOption, databaseOption] + credentialOptions + [authoritiesOption]

  /// The option for the server that uses a data directory.
  static let dataOption = Command.Option.value(
    "data", "DIR", "use this data directory as its administrator, even while a server uses it")
  /// The options of the verbs that call a server, or use a data directory.
  static let placeOptions = [dataOption] + serverOptions

  /// The project if neither an option nor the environment names one.
  static let defaultProject = "demo"

  /// Returns the project that the options or the environment name, also by a key.
  static func project(_ arguments: Arguments) -> String? {
    arguments.value("project") ?? environment("HEARTH_PROJECT") ?? environment("GOOGLE_CLOUD_PROJECT")
      ?? (try? key(arguments))?.project ?? applicationProject(arguments)
  }

  /// Returns the project of the key that `GOOGLE_APPLICATION_CREDENTIALS` names, if a verb signs in with it.
  private static func applicationProject(_ arguments: Arguments) -> String? {
    let usesOther = ["data", "key", "token", "token-file", "token-command"].contains(where: arguments.has)
    guard arguments.accepts("key"), !usesOther, environment("HEARTH_KEY") == nil, environment("HEARTH_TOKEN") == nil,
      case .own(let key) = Credential.applicationKey(for: server(arguments))
    else { return nil }
    return key.project
  }

  /// Returns the URL of the server that the options or the environment name, also by a key, or the default.
  static func server(_ arguments: Arguments) -> String {
    arguments.value("server") ?? environment("HEARTH_SERVER") ?? (try? key(arguments))?.serverURL
      ?? "http://127.0.0.1:8080"
  }

  /// Returns the key that `--key` or `HEARTH_KEY` names, or `nil` if a verb uses none.
  /// - Throws: ``CommandFailure`` if the file cannot be used.
  static func key(_ arguments: Arguments) throws -> AccountKey? {
    if let path = arguments.value("key") { return try AccountKey(path) }
    let usesOther = ["data", "token", "token-file", "token-command"].contains(where: arguments.has)
    guard arguments.accepts("key"), !usesOther else { return nil }
    return try environment("HEARTH_KEY").map { try AccountKey($0) }
  }

  /// Returns the file of trusted certificates that the options or the environment name.
  static func authorities(_ arguments: Arguments) -> String? {
    arguments.value("cacert") ?? environment("HEARTH_CACERT")
  }

  /// Returns the database that the options and the environment name, or the default. If they name no project, it is the
  /// only one of the data directory, if one is given. `known` overrides both.
  /// - Throws: ``CommandFailure`` if a name is invalid.
  static func database(
    _ arguments: Arguments, in directory: String? = nil, project known: String? = nil
  ) throws -> DatabaseID {
    let project = known ?? Self.project(arguments) ?? directory.flatMap(DataDirectory.onlyProject) ?? defaultProject
    let database = arguments.value("database") ?? DatabaseID.defaultDatabase
    guard let id = DatabaseID(project: project, database: database) else {
      throw CommandFailure.usage("'\(project)' and '\(database)' are not valid names of a project and a database")
    }
    return id
  }

  /// Returns the value of an environment variable, or `nil` if it is not set or empty.
  static func environment(_ name: String) -> String? {
    guard let value = getenv(name).map({ String(cString: $0) }), !value.isEmpty else { return nil }
    return value
  }

  /// Parses a path such as `users/ann`, also with slashes around it.
  /// - Throws: ``CommandFailure`` if the text is not a legal path.
  static func path(_ text: String) throws -> ResourcePath {
    // Compare bytes: a slash that is followed by a combining mark is not a `Character` of its own.
    let slash = UInt8(ascii: "/")
    var trimmed = text.utf8[...]
    while trimmed.first == slash { trimmed.removeFirst() }
    while trimmed.last == slash { trimmed.removeLast() }
    do { return try ResourcePath(String(Substring(trimmed))) } catch {
      throw CommandFailure.usage("'\(text)' is not a valid path: \(error)")
    }
  }

  /// Parses the path of a document.
  /// - Throws: ``CommandFailure`` if the text is not the path of a document.
  static func document(_ text: String) throws -> DocumentKey {
    let path = try path(text)
    guard let key = DocumentKey(path) else {
      throw CommandFailure.usage(
        path.isRoot
          ? "give the path of a document, such as users/ann"
          : "'\(path)' is a collection; add the ID of a document, such as \(path)/ann")
    }
    return key
  }
}
