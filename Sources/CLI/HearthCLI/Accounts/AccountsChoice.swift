import Accounts
import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

/// The location of accounts: a data directory, or the server that uses it.
enum AccountsChoice {
  /// A data directory that no server uses. The second value locks it while it is alive.
  case directory(AccountStore, DataDirectory)
  /// A running server.
  case server(ServerClient)

  /// The options of verbs that read accounts from a data directory.
  static let options: [Command.Option] =
    [
      .value("data", "DIR", "the data directory, even while a server uses it (default: ./hearth-data)"),
      .value("server", "URL", "use a running server instead of a data directory"),
      DatabaseChoice.projectOption,
    ] + DatabaseChoice.credentialOptions + [DatabaseChoice.authoritiesOption]

  /// Opens a data directory, or connects to the server that uses it. A user who can read the directory is an
  /// administrator of that server. If the server uses TLS, its certificate must be valid for the address that it
  /// announced.
  /// - Throws: ``CommandFailure`` or `StorageError` if that fails.
  static func find(_ arguments: Arguments) throws -> AccountsChoice {
    try arguments.exclude("data", "server")
    if arguments.has("server") || arguments.has("key") && !arguments.has("data") {
      return .server(try ServerClient(arguments))
    }
    let path = arguments.value("data") ?? "./hearth-data"
    let project = DatabaseChoice.project(arguments) ?? DatabaseChoice.defaultProject
    guard let id = DatabaseID(project: project) else {
      throw CommandFailure.usage("'\(project)' is not a valid project ID")
    }
    let directory: DataDirectory
    do throws(StorageError) { directory = try DataDirectory(path) } catch {
      guard case .locked = error, let url = DataDirectoryLock.announcedURL(directory: path) else { throw error }
      let file = DataDirectory.accountsFile(of: id.project, in: path)
      guard access(file, F_OK) == 0 else {
        throw CommandFailure.failed(
          "the server that uses \(path) does not serve project \(id.project); name its own with --project")
      }
      let accounts = try open(LMDBOptions(path: file, readOnly: true), id.project)
      return .server(try ServerClient(url: url, token: accounts.serviceKeys.localAccessToken(), arguments))
    }
    let options = LMDBOptions(path: try directory.makeAccountsFile(of: id.project))
    return .directory(try open(options, id.project), directory)
  }

  private static func open(_ options: LMDBOptions, _ project: String) throws -> AccountStore {
    try AccountStore(
      store: try LMDBStore.open(options), project: AccountsProject(project), mode: .production,
      now: { Clock.system.now() })
  }
}
