import Accounts
import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

/// Where a verb finds accounts: in a data directory, or at the server that uses it.
enum AccountsChoice {
  /// In a data directory that no server uses, and none can while the second value lives.
  case directory(AccountStore, DataDirectory)
  /// At a running server.
  case server(ServerClient)

  /// What verbs take that work on accounts.
  static let options: [Command.Option] = [
    .value("data", "DIR", "the data directory, also while a server uses it (default: ./hearth-data)"),
    .value("server", "URL", "a running server elsewhere, in place of a directory"),
    .value("token", "TOKEN", "with --server: an admin's bearer token (default: owner)"),
    DatabaseChoice.projectOption,
  ]

  /// Opens a data directory, or asks the server that has it open. Who can read the directory is admin of that server.
  /// - Throws: ``CommandFailure`` and `StorageError`.
  static func find(_ arguments: Arguments) throws -> AccountsChoice {
    try arguments.exclude("data", "server")
    if arguments.value("server") != nil { return .server(try ServerClient(arguments)) }
    let path = arguments.value("data") ?? "./hearth-data"
    let project = DatabaseChoice.project(arguments) ?? DatabaseChoice.defaultProject
    guard let id = DatabaseID(project: project) else {
      throw CommandFailure.usage("'\(project)' cannot name a project")
    }
    let directory: DataDirectory
    do throws(StorageError) { directory = try DataDirectory(path) } catch {
      guard case .locked = error, let url = DataDirectoryLock.announcedURL(directory: path) else { throw error }
      let file = DataDirectory.accountsFile(of: id.project, in: path)
      guard access(file, F_OK) == 0 else {
        throw CommandFailure.failed("the server of \(path) has no project \(id.project); name its own with --project")
      }
      let accounts = try open(LMDBOptions(path: file, readOnly: true), id.project)
      return .server(try ServerClient(url: url, token: accounts.serviceKeys.localAccessToken()))
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
