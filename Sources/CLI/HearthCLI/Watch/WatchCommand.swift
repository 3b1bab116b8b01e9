import DocumentModel
import Glibc
import WireFormat

extension Command {
  /// Shows documents of a running server, and their changes as they happen.
  static let watch = Command(
    name: "watch", summary: "Shows a document, a collection or a query, and its changes as they happen.",
    operands: "[PATH]", operandCount: 0...1,
    options: DatabaseChoice.placeOptions + [
      .repeated("where", "CONDITION", "show only documents that match; see `hearth help query`"),
      .repeated("order", "FIELD[:desc]", "the order that --limit uses"),
      .value("limit", "N", "show only the first N documents"),
      .flag("group", "include all collections with that ID, at any depth below the path's document or the root"),
      .flag("all", "show every change of the database from now on, in commit order; takes no path"),
      .value("since", "TOKEN", "show only changes since this token; --json prints tokens as `resumeToken`"),
      .flag("once", "exit after showing the current documents"),
      .flag("json", "print the server's messages, one per line"),
    ],
    details: """
      Each line shows one document. `+` marks a document that is new in the results, `~` one that changed, and `-` one
      that is no longer in the results. If the connection breaks, the verb reconnects and continues after the last
      change that it showed. Ctrl-C ends it.
      """,
    examples: [
      ("hearth watch users/ann", "one document"),
      ("hearth watch orders --where 'state == \"open\"' --order placed --limit 20", "the first documents of a query"),
      ("hearth watch messages --group --json", "for programs"),
      ("hearth watch --all", "the whole database, for administrators"),
    ],
    run: { arguments in
      let client = try ServerClient(ofServerOrDirectory: arguments)
      let request = try FeedRequest(arguments, client)
      var lines = WatchLines(of: client.database, isResumed: arguments.has("since"))
      let isJSON = arguments.has("json")
      try client.follow(request, since: arguments.value("since")) { line, root in
        if isJSON {
          Terminal.output.write(line + [UInt8(ascii: "\n")])
        } else {
          Terminal.output.write(try lines.text(of: root, client))
        }
      }
      return 0
    })
}

/// The feed that `hearth watch` requests from a server.
struct FeedRequest {
  private enum Kind {
    case document(ResourcePath)
    case query(Query)
    case database
  }

  private let kind: Kind
  /// Whether the feed ends after the current documents.
  let isOnce: Bool
  private let client: ServerClient

  /// Reads the path and the options.
  /// - Throws: ``CommandFailure`` if they do not describe a feed; the message shows a correct form.
  init(_ arguments: Arguments, _ client: ServerClient) throws {
    self.client = client
    isOnce = arguments.has("once")
    let selecting = ["where", "order", "limit", "group"].filter(arguments.has)
    if arguments.has("all") {
      guard arguments.operands.isEmpty, selecting.isEmpty else {
        throw CommandFailure.usage("'--all' shows every change of the database; it takes no path and no conditions")
      }
      kind = .database
      return
    }
    guard let operand = arguments.operands.first else {
      throw CommandFailure.usage("give the path of a document or a collection, such as users, or --all")
    }
    let path = try DatabaseChoice.path(operand)
    if let key = DocumentKey(path) {
      guard selecting.isEmpty else {
        throw CommandFailure.usage("'\(path)' is a document; '--\(selecting[0])' works with collections only")
      }
      kind = .document(key.path)
    } else {
      kind = .query(try QueryOptions(arguments, client.database).query)
    }
  }

  /// Returns the method, target and body of the request that resumes after a token.
  /// - Throws: `WireError` if the query cannot be written.
  func message(since token: String?) throws -> (method: String, target: String, body: [UInt8]) {
    func parameters(_ pairs: [(String, String)]) -> String {
      pairs.isEmpty ? "" : "?" + pairs.map { "\($0)=\(ServerClient.encode($1.utf8))" }.joined(separator: "&")
    }
    let once = isOnce ? [("once", "true")] : []
    switch kind {
    case .document(let path):
      let resume = token.map { [("resumeToken", $0)] } ?? []
      return ("GET", client.target(path) + ":listen" + parameters(once + resume), [])
    case .query(let query):
      let body = try QueryJSON.listenBody(query, resumeToken: token)
      return ("POST", client.target(query.parent) + ":listen" + parameters(once), body)
    case .database:
      return ("GET", client.target(.root) + ":changes" + parameters(token.map { [("since", $0)] } ?? []), [])
    }
  }

  /// Returns whether a message completes the feed of `--once`. The feed of a database does not end by itself.
  func isOver(_ root: JSONValue) -> Bool {
    guard isOnce, case .database = kind else { return false }
    return root.member("readTime") != nil
  }
}
