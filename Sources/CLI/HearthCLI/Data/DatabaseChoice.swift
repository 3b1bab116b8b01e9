import DocumentModel
import Glibc

/// The options that choose a server, a project and a database, and their defaults.
enum DatabaseChoice {
  static let projectOption = Command.Option.value(
    "project", "ID", "the project (default: $HEARTH_PROJECT, $GOOGLE_CLOUD_PROJECT or demo)")
  static let databaseOption = Command.Option.value("database", "ID", "the database of the project (default: (default))")
  static let serverOption = Command.Option.value(
    "server", "URL", "the server (default: $HEARTH_SERVER or http://127.0.0.1:8080)")
  static let tokenOption = Command.Option.value("token", "TOKEN", "the bearer token to send (default: owner)")
  static let authoritiesOption = Command.Option.value(
    "cacert", "FILE", "also trust the servers whose certificates an authority in this PEM file issued")
  /// The options of the verbs that call a server.
  static let serverOptions = [serverOption, projectOption, databaseOption, tokenOption, authoritiesOption]

  /// The project if neither an option nor the environment names one.
  static let defaultProject = "demo"

  /// Returns the project that the options or the environment name.
  static func project(_ arguments: Arguments) -> String? {
    arguments.value("project") ?? environment("HEARTH_PROJECT") ?? environment("GOOGLE_CLOUD_PROJECT")
  }

  /// Returns the database that the options and the environment name, or the default.
  /// - Throws: ``CommandFailure`` if a name is invalid.
  static func database(_ arguments: Arguments) throws -> DatabaseID {
    let project = project(arguments) ?? defaultProject
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
