import Accounts
import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValue
import LMDBEngine
import WireFormat

/// The server that uses a data directory, for its owner, who is an administrator.
struct RunningServer {
  /// A client with the rights of an administrator, unless the options name another credential.
  let client: ServerClient

  /// Connects to the server by the admin socket of the directory. If the server has none, because it is older or the file
  /// system has no sockets, connects to the address that it announced.
  ///
  /// - Parameter locked: the error that the lock of the directory reported.
  /// - Throws: ``CommandFailure`` or `HearthError` if the server cannot be used.
  init(of directory: String, _ database: DatabaseID, _ arguments: Arguments, locked: StorageError) throws {
    if let client = try Self.overSocket(directory, database, arguments) {
      self.client = client
      return
    }
    guard let url = DataDirectoryLock.announcedURL(directory: directory) else { throw locked }
    let file = DataDirectory.accountsFile(of: database.project, in: directory)
    guard access(file, F_OK) == 0 else { throw Self.otherProject(database.project, directory) }
    let accounts = try AccountStore(
      store: try LMDBStore.open(LMDBOptions(path: file, readOnly: true)), project: AccountsProject(database.project),
      mode: .production, now: { Clock.system.now() })
    client = try ServerClient(
      url: url, token: accounts.serviceKeys.localAccessToken(), arguments, database: database)
  }

  private static func overSocket(
    _ directory: String, _ database: DatabaseID, _ arguments: Arguments
  ) throws -> ServerClient? {
    guard let folder = try AdminSocketFolder(of: directory), try folder.hasSocket() else { return nil }
    let client = ServerClient(folder, database, try Credential(overAdminSocket: arguments))
    let administrator = ServerClient(folder, database, Credential(token: ""))
    let facts: ServerFacts
    do { facts = try administrator.facts() ?? ServerFacts() } catch let failure as CommandFailure
      where failure.isTemporary && failure.httpStatus == nil
    {
      // A killed server left the socket, and the running server has none.
      return nil
    }
    if !facts.isEmulator, let project = facts.project, project != database.project {
      throw otherProject(database.project, directory, served: project)
    }
    return client
  }

  private static func otherProject(_ project: String, _ directory: String, served: String? = nil) -> CommandFailure {
    CommandFailure.failed(
      "the server that uses \(directory) does not serve project \(project); name its own with --project"
        + (served.map { " \($0)" } ?? ""))
  }
}

/// The properties of a running server that its administrators may know.
struct ServerFacts {
  var project: String?
  var isEmulator = false
  /// The URL for clients on other machines, as the operator configured it.
  var publicURL: String?
  /// The URL for programs that do not name one.
  var keyURL: String?
}

extension ServerClient {
  /// Returns the properties of the server, or `nil` if it is too old to report them.
  /// - Throws: ``CommandFailure`` if the request fails.
  func facts() throws -> ServerFacts? {
    guard let body = try find("GET", "/hearth/v1/server") else { return nil }
    return try JSONText.read(body) { root in
      ServerFacts(
        project: root.member("project")?.text, isEmulator: root.member("mode")?.text == "emulator",
        publicURL: root.member("publicUrl")?.text, keyURL: root.member("keyUrl")?.text)
    }
  }
}
