import Accounts
import GatewayCore

/// The requests that the console of a production server serves, and the role that each needs. Requests that are not
/// listed do not exist there, so a new route of an API is closed to operators until somebody lists it.
enum ConsoleRoutes {
  /// A row: the methods and the first path of a route, as the route table spells them, and the least role.
  struct Row: Sendable {
    let methods: String
    let path: String
    let role: OperatorRole

    init(_ methods: String, _ path: String, _ role: OperatorRole) {
      self.methods = methods
      self.path = path
      self.role = role
    }
  }

  private static let documents = "/v1/projects/{project}/databases/{database}/documents"
  private static let database = "/hearth/v1/projects/{project}/databases/{database}"
  private static let accounts = "/v1/projects/{project}/accounts"

  /// The rows for reading, in which no part of a request can change anything.
  ///
  /// `:executePipeline` is not among them: a pipeline can end with a stage that updates or deletes documents.
  private static let reading: [Row] = [
    Row("GET, HEAD", "\(documents)/{document...}", .viewer),
    Row("GET, HEAD", "\(documents)/{collection...}", .viewer),
    Row("POST", "\(documents)/{path...}:batchGet", .viewer),
    Row("POST", "\(documents)/{path...}:runQuery", .viewer),
    Row("POST", "\(documents)/{path...}:runAggregationQuery", .viewer),
    Row("POST", "\(documents)/{path...}:listCollectionIds", .viewer),
    Row("GET, POST", "\(documents)/{path...}:listen", .viewer),
    Row("GET", "\(documents):changes", .viewer),
    Row("GET", "/hearth/v1/stats", .viewer),
    Row("GET", "/hearth/v1/listeners", .viewer),
    Row("GET", "\(database)/history", .viewer),
    Row("GET", "\(database)/indexes", .viewer),
    Row("POST", "\(database)/indexes:suggest", .viewer),
    Row("GET, POST", "\(accounts):batchGet", .viewer),
    Row("POST", "\(accounts):query", .viewer),
    Row("GET", "/hearth/v1/keys", .viewer),
    Row("GET", "/hearth/v1/operators", .viewer),
    Row("GET", "/hearth/v1/server", .viewer),
    Row("GET", "/hearth/v1/session", .viewer),
    Row("DELETE", "/hearth/v1/session", .viewer),
    Row("GET", "/hearth/v1/configuration", .viewer),
    Row("GET", "/hearth/v1/backups", .viewer),
    Row("GET", "/hearth/v1/cluster", .viewer),
    Row("GET", "\(database)/rules", .viewer),
    Row("POST", "/hearth/v1/rules:check", .viewer),
    Row("GET", "/hearth/v1/recording", .viewer),
    // The log contains documents, and this role may read all of them.
    Row("GET", "/hearth/v1/requests", .viewer),
    Row("GET", "/hearth/v1/requests/{number}", .viewer),
    Row("GET, HEAD", "/readyz", .viewer),
    Row("GET, HEAD", "/metrics", .viewer),
    Row("GET", "/storage/v1/b", .viewer),
    Row("GET", "/storage/v1/b/{bucket}/o", .viewer),
    Row("GET, HEAD", "/storage/v1/b/{bucket}/o/{object...}", .viewer),
  ]

  /// The rows for changes of data.
  private static let editing: [Row] = [
    Row("POST", "\(documents)/{path...}:commit", .editor),
    Row("POST", "\(documents)/{path...}:batchWrite", .editor),
    Row("POST", "\(documents)/{path...}:executePipeline", .editor),
    Row("POST", "\(documents)/{path...}", .editor),
    Row("PATCH", "\(documents)/{path...}", .editor),
    Row("DELETE", "\(documents)/{path...}", .editor),
    Row("DELETE", "\(database)/documents/{path...}", .editor),
    Row("POST", "\(accounts):update", .editor),
    Row("POST", "\(accounts):delete", .editor),
    Row("POST", accounts, .editor),
    Row("POST", "/hearth/v1/tokens", .editor),
    Row("DELETE", "/storage/v1/b/{bucket}/o/{object...}", .editor),
    Row("POST", "/upload/storage/v1/b/{bucket}/o", .editor),
  ]

  /// The rows for the server itself.
  private static let owning: [Row] = [
    Row("POST", "/hearth/v1/keys", .owner),
    Row("DELETE", "/hearth/v1/keys/{name...}", .owner),
    Row("POST", "/hearth/v1/operators", .owner),
    Row("PATCH", "/hearth/v1/operators/{name}", .owner),
    Row("DELETE", "/hearth/v1/operators/{name}", .owner),
    Row("POST", "/hearth/v1/backups", .owner),
    Row("POST", "/hearth/v1/recording", .owner),
    Row("DELETE", "/hearth/v1/recording", .owner),
    Row("DELETE", "/hearth/v1/requests", .owner),
  ]

  /// All rows.
  static let rows = reading + editing + owning

  /// Returns the endpoints that the rows name, in the order of `all`, each behind a check of the operator's role. Sign-in
  /// needs none.
  static func endpoints(
    _ all: [any Endpoint], _ sessions: OperatorSessions, _ audit: @escaping @Sendable (AccountEvent) -> Void
  ) -> [any Endpoint] {
    var roles: [String: OperatorRole] = [:]
    for row in rows { roles["\(row.methods) \(row.path)"] = row.role }
    return all.compactMap { endpoint -> (any Endpoint)? in
      guard let path = endpoint.paths.first?.text else { return nil }
      let name = "\(endpoint.methods.text) \(path)"
      if name == signIn { return endpoint }
      return roles[name].map { ConsoleEndpoint(inner: endpoint, role: $0, sessions: sessions, audit: audit) }
    }
  }

  /// The request that signs an operator in.
  private static let signIn = "POST /hearth/v1/session"
}
