import Accounts
import HearthServer

/// The server that a verb of administrators talks to: a running one, the one that uses a data directory, or one of the
/// command's own where none does.
struct AdminServer {
  /// What such verbs take.
  static let options: [Command.Option] = [
    .value("data", "DIR", "a data directory, also while a server uses it; who can read it is admin"),
    DatabaseChoice.serverOption, DatabaseChoice.projectOption, DatabaseChoice.tokenOption,
  ]

  /// Talks to it.
  let client: ServerClient
  /// The project that the options and the environment name.
  let project: String
  /// The server that runs for this command alone.
  private let own: Server?

  /// Takes the server, or the directory, and the project from options and environment.
  init(_ arguments: Arguments) throws {
    project = DatabaseChoice.project(arguments) ?? DatabaseChoice.defaultProject
    guard let path = arguments.value("data") else {
      (client, own) = (try ServerClient(arguments), nil)
      return
    }
    if case .server(let client) = try AccountsChoice.find(arguments) {
      (self.client, own) = (client, nil)
      return
    }
    var configuration = HearthConfiguration(storage: .directory(path))
    configuration.port = 0
    configuration.project = project
    let started = try Server(configuration)
    let url = try started.start()
    client = try ServerClient(url: url, token: started.accounts.serviceKeys.localAccessToken())
    own = started
  }

  /// Ends the server that was started for this command, if one was.
  func finish() { own?.stop() }
}
