import Accounts
import DocumentModel
import WireFormat

/// A client of a server's accounts with the rights of an administrator.
struct AccountsClient {
  /// The options of the verbs for accounts.
  static let options = AdminServer.options

  private let admin: AdminServer
  private var server: ServerClient { admin.client }
  private let root: String
  /// The project of the accounts.
  var project: String { admin.project }

  /// Connects to the server, or opens the data directory, that options and environment name. `createsDirectory` creates
  /// a missing directory.
  /// - Throws: ``CommandFailure`` or `StorageError` if that fails.
  init(_ arguments: Arguments, createsDirectory: Bool = false) throws {
    self.init(try AdminServer(arguments, createsDirectory: createsDirectory))
  }

  /// Creates a client of a server.
  init(_ admin: AdminServer) {
    self.admin = admin
    root = "/identitytoolkit.googleapis.com/v1/projects/\(ServerClient.encode(admin.project))/accounts"
  }

  /// Stops the server that was started for this command, if any.
  func finish() { admin.finish() }

  /// Passes all accounts to `take`, a page at a time, in the order of their IDs, until it returns false.
  /// - Throws: ``CommandFailure`` if a request fails, or the error of `take`.
  func forEachPage(_ take: ([JSONTree]) throws -> Bool) throws {
    var token: String?
    repeat {
      let next = token.map { "&nextPageToken=\(ServerClient.encode($0))" } ?? ""
      let target = "\(root):batchGet?maxResults=1000\(next)"
      let page = try tree(server.call("GET", target))
      guard try take(page["users"]?.elements ?? []) else { return }
      token = page["nextPageToken"]?.text
    } while token != nil
  }

  /// Sends an administrative request, whose fields `append` writes, and returns the response.
  /// - Throws: ``CommandFailure`` if the request fails.
  @discardableResult
  func call(_ verb: String, _ append: (inout JSONWriter) -> Void) throws -> JSONTree {
    var json = JSONWriter(.compact)
    json.beginObject()
    append(&json)
    json.endObject()
    return try tree(server.call("POST", verb.isEmpty ? root : "\(root):\(verb)", json.bytes))
  }

  /// Returns the ID of the account with an ID or an email address.
  /// - Throws: ``CommandFailure`` if no account has it, or the request fails.
  func uid(_ name: String) throws -> String {
    let isEmail = name.contains("@")
    let found = try call("lookup") { json in
      json.key(isEmail ? "email" : "localId")
      json.beginArray()
      json.string(name)
      json.endArray()
    }
    guard let uid = found["users"]?.elements.first?["localId"]?.text else {
      throw CommandFailure.failed("account \(name) does not exist at \(server.address)")
    }
    return uid
  }

  private func tree(_ body: [UInt8]?) throws -> JSONTree { try JSONTree(parsing: body ?? Array("{}".utf8)) }
}

extension JSONWriter {
  /// Appends a parsed JSON value.
  mutating func append(_ tree: JSONTree) {
    switch tree.kind {
    case .null: null()
    case .boolean(let value): bool(value)
    case .number(let text): value(text)
    case .string(let text): string(text)
    case .array(let elements):
      beginArray()
      for element in elements { append(element) }
      endArray()
    case .object(let members):
      beginObject()
      for member in members {
        var name = member.name
        name.withUTF8 { key(UnsafeRawBufferPointer($0)) }
        append(member.value)
      }
      endObject()
    }
  }
}
