import DocumentModel
import Glibc
import WireFormat

extension Command {
  /// Shows changes as they are made.
  static let watch = Command(
    name: "watch", summary: "Shows a document or a collection, and its changes as they are made.", operands: "[PATH]",
    operandCount: 0...1,
    options: DatabaseChoice.serverOptions + [
      .repeated("where", "CONDITION", "which documents of a collection; see `hearth help query`"),
      .repeated("order", "FIELD[:desc]", "their order, for --limit"),
      .value("limit", "N", "only the first so many"),
      .flag("group", "all collections of that id, at any depth below the path's document or the root"),
      .flag("all", "every change of the database, in the order of commits, from now on; takes no path"),
      .value("since", "TOKEN", "only what changed since a token; --json shows tokens as `resumeToken`"),
      .flag("once", "end once all that is there was shown"),
      .flag("json", "print the server's messages, one a line"),
    ],
    details: """
      Each line is one document: + is new to the results, ~ changed, - left them. Where the connection breaks, it goes
      on behind the last change that it saw. Ctrl-C ends it.
      """,
    examples: [
      ("hearth watch users/ann", "one document"),
      ("hearth watch orders --where 'state == \"open\"' --order placed --limit 20", "the window of a query"),
      ("hearth watch messages --group --json", "for programs"),
      ("hearth watch --all", "the whole database, for administrators"),
    ],
    run: { arguments in
      let client = try ServerClient(arguments)
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

/// What `hearth watch` asks a server for.
struct FeedRequest {
  private enum Kind {
    case document(ResourcePath)
    case query(Query)
    case database
  }

  private let kind: Kind
  /// Whether the feed ends once everything was told.
  let isOnce: Bool
  private let client: ServerClient

  /// Reads the path and the options.
  /// - Throws: ``CommandFailure`` that says what to write instead.
  init(_ arguments: Arguments, _ client: ServerClient) throws {
    self.client = client
    isOnce = arguments.has("once")
    let selecting = ["where", "order", "limit", "group"].filter(arguments.has)
    if arguments.has("all") {
      guard arguments.operands.isEmpty, selecting.isEmpty else {
        throw CommandFailure.usage("'--all' takes no path and no conditions: it shows every change of the database")
      }
      kind = .database
      return
    }
    guard let operand = arguments.operands.first else {
      throw CommandFailure.usage("the path of a document or a collection is needed, such as users; or --all")
    }
    let path = try DatabaseChoice.path(operand)
    if let key = DocumentKey(path) {
      guard selecting.isEmpty else {
        throw CommandFailure.usage("'\(path)' is a document; '--\(selecting[0])' goes with a collection")
      }
      kind = .document(key.path)
    } else {
      kind = .query(try QueryOptions(arguments, client.database).query)
    }
  }

  /// Method, target and body of the request that goes on behind a token.
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

  /// Whether the feed is over with a message: a feed of a database has no end of its own.
  func isOver(_ root: JSONValue) -> Bool {
    guard isOnce, case .database = kind else { return false }
    return root.member("readTime") != nil
  }
}
