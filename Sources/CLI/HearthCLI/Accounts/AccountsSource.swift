import Accounts
import WireFormat

/// The accounts of a running project: of Google's Identity Toolkit, or of another Hearth server.
struct AccountsSource {
  /// The options that name the project.
  static let options: [Command.Option] =
    [
      .value("from", "URL", "copy from this server instead of a file, such as https://identitytoolkit.googleapis.com"),
      .value("from-project", "ID", "the project to copy from (default: the same ID)"),
    ] + DatabaseChoice.sourceCredentialOptions

  private let server: ServerClient
  private let project: String
  private let root: String
  private let retries = Retries()

  /// The text in place of a hash that the caller may not read, in base64 and base64url.
  private static let redacted = ["UkVEQUNURUQ=", "UkVEQUNURUQ"]

  /// Creates a client of the server that `--from` names.
  /// - Throws: ``CommandFailure`` if the URL or the credential is invalid.
  init(_ arguments: Arguments, project: String) throws {
    server = try ServerClient(from: arguments)
    self.project = arguments.value("from-project") ?? project
    root = WebHost.isGoogles(server.address) ? "" : "/identitytoolkit.googleapis.com"
  }

  /// The parameters of the project's password hashes, as members of an import request. Empty if the server names none:
  /// a Hearth server includes them in each hash.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if the request fails for a temporary reason.
  func hashParameters() throws -> [JSONTree.Member] {
    let target = "\(root)/admin/v2/projects/\(ServerClient.encode(project))/config"
    let body: [UInt8]?
    do { body = try retries.run { _ in try server.find("GET", target) } } catch let failure as CommandFailure
      where failure.httpStatus != nil && !failure.isTemporary
    {
      Terminal.error.write(
        "hearth: the parameters of the password hashes cannot be read; name them with --hash-algo and the other options\n"
      )
      return []
    }
    guard let body, let hash = try JSONTree(parsing: body)["signIn"]?["hashConfig"] else { return [] }
    let names: [(StaticString, String)] = [
      ("algorithm", "hashAlgorithm"), ("signerKey", "signerKey"), ("saltSeparator", "saltSeparator"),
      ("rounds", "rounds"), ("memoryCost", "memoryCost"),
    ]
    return names.compactMap { name, own in hash[name].map { JSONTree.Member(name: own, value: $0) } }
  }

  /// The number of tenants, whose accounts are not copied; 0 if the server does not tell.
  func tenants() -> Int {
    let target = "\(root)/v2/projects/\(ServerClient.encode(project))/tenants?pageSize=1000"
    guard let body = try? server.find("GET", target) else { return 0 }
    return (try? JSONTree(parsing: body)["tenants"]?.elements.count) ?? 0
  }

  /// Passes all accounts to `take`, a page of at most 1,000 at a time.
  /// - Throws: ``CommandFailure`` if a request fails or the server hides password hashes, or the error of `take`.
  func forEachPage(_ take: ([JSONTree]) throws -> Void) throws {
    var token: String?
    repeat {
      let next = token.map { "&nextPageToken=\(ServerClient.encode($0.utf8))" } ?? ""
      let target = "\(root)/v1/projects/\(ServerClient.encode(project))/accounts:batchGet?maxResults=1000\(next)"
      let body = try retries.run { _ in try server.call("GET", target) } ?? []
      let page = try JSONTree(parsing: body)
      let users = page["users"]?.elements ?? []
      if users.contains(where: { Self.redacted.contains($0["passwordHash"]?.text ?? "") }) {
        throw CommandFailure.failed(
          "\(server.address) hides the password hashes; the account needs the permission "
            + "firebaseauth.configs.getHashConfig, which the role Firebase Authentication Admin contains")
      }
      if !users.isEmpty { try take(users) }
      token = page["nextPageToken"]?.text
    } while token?.isEmpty == false
  }
}
