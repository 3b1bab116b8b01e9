import DocumentModel
import Glibc

/// Which database a verb means, and which server.
enum DatabaseChoice {
  static let projectOption = Command.Option.value(
    "project", "ID", "the project (default: $HEARTH_PROJECT, $GOOGLE_CLOUD_PROJECT or demo)")
  static let databaseOption = Command.Option.value("database", "ID", "the database of the project (default: (default))")
  static let serverOption = Command.Option.value(
    "server", "URL", "the server (default: $HEARTH_SERVER or http://127.0.0.1:8080)")
  static let tokenOption = Command.Option.value("token", "TOKEN", "sent as bearer token (default: owner)")
  /// What verbs take that talk to a server.
  static let serverOptions = [serverOption, projectOption, databaseOption, tokenOption]

  /// The project of who names none.
  static let defaultProject = "demo"

  /// The project that the options or the environment name.
  static func project(_ arguments: Arguments) -> String? {
    arguments.value("project") ?? environment("HEARTH_PROJECT") ?? environment("GOOGLE_CLOUD_PROJECT")
  }

  /// The database that the options and the environment name.
  /// - Throws: ``CommandFailure`` for an unusable name.
  static func database(_ arguments: Arguments) throws -> DatabaseID {
    let project = project(arguments) ?? defaultProject
    let database = arguments.value("database") ?? DatabaseID.defaultDatabase
    guard let id = DatabaseID(project: project, database: database) else {
      throw CommandFailure.usage("'\(project)' and '\(database)' cannot name a project and a database")
    }
    return id
  }

  /// A value of the environment that is not empty.
  static func environment(_ name: String) -> String? {
    guard let value = getenv(name).map({ String(cString: $0) }), !value.isEmpty else { return nil }
    return value
  }

  /// A path that a person wrote: `users/ann`, also with slashes around it.
  /// - Throws: ``CommandFailure`` when an id of it is not legal.
  static func path(_ text: String) throws -> ResourcePath {
    // By bytes: a slash is one, also where a mark that belongs to the character before stands behind it.
    let slash = UInt8(ascii: "/")
    var trimmed = text.utf8[...]
    while trimmed.first == slash { trimmed.removeFirst() }
    while trimmed.last == slash { trimmed.removeLast() }
    do { return try ResourcePath(String(Substring(trimmed))) } catch {
      throw CommandFailure.usage("'\(text)' is no path: \(error)")
    }
  }

  /// The path of a document that a person wrote.
  /// - Throws: ``CommandFailure`` when it is none.
  static func document(_ text: String) throws -> DocumentKey {
    let path = try path(text)
    guard let key = DocumentKey(path) else {
      throw CommandFailure.usage(
        path.isRoot
          ? "the path of a document is needed, such as users/ann"
          : "'\(path)' is a collection; add the id of a document, such as \(path)/ann")
    }
    return key
  }
}
