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

  /// Opens a data directory, or connects to the server that uses it. Access to the directory
  /// makes the user an administrator of that server. Verbs that import data create a missing directory.
  /// - Throws: ``CommandFailure`` or `StorageError` if that fails.
  static func find(_ arguments: Arguments, createsDirectory: Bool = false) throws -> AccountsChoice {
    try arguments.exclude("data", "server")
    if arguments.has("server") || arguments.has("key") && !arguments.has("data") {
      return .server(try ServerClient(arguments))
    }
    let path = arguments.value("data") ?? "./hearth-data"
    if !createsDirectory { try DirectoryReader.require(path) }
    let id = try DatabaseChoice.database(arguments, in: path)
    let directory: DataDirectory
    do throws(StorageError) { directory = try DataDirectory(path) } catch {
      switch error {
      case .locked: return .server(try RunningServer(of: path, id, arguments, locked: error).client)
      case .system(_, _, EACCES), .system(_, _, EPERM): throw strange(path) ?? error
      default: throw error
      }
    }
    let options = LMDBOptions(path: try directory.makeAccountsFile(of: id.project))
    return .directory(try open(options, id.project), directory)
  }

  /// Returns the error for a directory of another user.
  private static func strange(_ path: String) -> CommandFailure? {
    var status = stat()
    guard stat(path, &status) == 0, status.st_uid != geteuid() else { return nil }
    let owner = AdminSocketFolder.userName(status.st_uid)
    return CommandFailure.failed(
      "\(path) belongs to \(owner), and only its owner administers it; run the command as that user: sudo -u \(owner) "
        + "hearth …")
  }

  private static func open(_ options: LMDBOptions, _ project: String) throws -> AccountStore {
    try AccountStore(
      store: try LMDBStore.open(options), project: AccountsProject(project), mode: .production,
      now: { Clock.system.now() })
  }
}
