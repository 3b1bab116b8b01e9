import Accounts
import DocumentModel
import DocumentStore
import HearthServer

/// The server that an administrative verb calls: at a URL, or by the data directory that it uses. If no server uses the
/// directory, the verb starts its own.
struct AdminServer {
  /// The options of administrative verbs.
  static let options: [Command.Option] =
    [
      DatabaseChoice.dataOption, DatabaseChoice.serverOption, DatabaseChoice.projectOption,
    ] + DatabaseChoice.credentialOptions + [DatabaseChoice.authoritiesOption]

  /// A client of the server, with the rights of an administrator.
  let client: ServerClient
  /// The project that the options and the environment name.
  let project: String
  /// The server that was started for this command.
  private let own: Server?

  /// Uses a server that this process runs, or that a client is connected to.
  init(_ client: ServerClient, project: String) { (self.client, self.project, own) = (client, project, nil) }

  /// Connects to the server, or opens the data directory, that options and environment name. Verbs that import data
  /// create a missing directory.
  /// - Throws: ``CommandFailure`` or `StorageError` if that fails.
  init(_ arguments: Arguments, createsDirectory: Bool = false) throws {
    guard let path = arguments.value("data") else {
      let project = DatabaseChoice.project(arguments) ?? DatabaseChoice.defaultProject
      self.init(try ServerClient(arguments), project: project)
      return
    }
    let database = try DatabaseChoice.database(arguments, in: path)
    if case .server(let client) = try AccountsChoice.find(arguments, createsDirectory: createsDirectory) {
      self.init(client, project: database.project)
      return
    }
    try self.init(directory: path, database, arguments)
  }

  /// Starts a server on a directory that no server uses.
  /// - Throws: `HearthError` or ``CommandFailure`` if that fails.
  init(directory: String, _ database: DatabaseID, _ arguments: Arguments) throws {
    project = database.project
    var configuration = HearthConfiguration(storage: .directory(directory))
    configuration.port = 0
    configuration.project = project
    if try DataDirectory.hasFiles(of: project, in: directory) { configuration.filesOwner = project }
    // The server that usually uses the directory may keep more history than the default. This one must not remove it.
    configuration.retention = Retention(historySeconds: Retention.historySecondsRange.upperBound)
    let started = try Server(configuration)
    let url = try started.start()
    let token = arguments.value("token") ?? started.accounts.serviceKeys.localAccessToken()
    // The user has not chosen the URL.
    client = try ServerClient(
      url: url, token: token, arguments, database: database, name: "the data directory \(directory)")
    own = started
  }

  /// Stops the server that was started for this command, if any.
  func finish() { own?.stop() }
}
