import Accounts
import DocumentModel
import WireFormat

/// The accounts of a running server, as its administrator.
struct AccountsClient {
  /// What verbs take that work on accounts.
  static let options = AdminServer.options

  private let admin: AdminServer
  private var server: ServerClient { admin.client }
  private let root: String

  /// Takes the server, or the directory, and the project from options and environment.
  init(_ arguments: Arguments) throws {
    admin = try AdminServer(arguments)
    root = "/identitytoolkit.googleapis.com/v1/projects/\(ServerClient.encode(admin.project))/accounts"
  }

  /// Ends the server that was started for this command, if one was.
  func finish() { admin.finish() }

  /// Hands on all accounts, a page at a time, in the order of their ids.
  func forEachPage(_ take: ([AccountsJSON]) throws -> Bool) throws {
    var token: String?
    repeat {
      let next = token.map { "&nextPageToken=\(ServerClient.encode($0))" } ?? ""
      let target = "\(root):batchGet?maxResults=1000\(next)"
      let page = try tree(server.call("GET", target))
      guard try take(page["users"]?.elements ?? []) else { return }
      token = page["nextPageToken"]?.text
    } while token != nil
  }

  /// Sends the fields of a call of an administrator; returns the answer.
  @discardableResult
  func call(_ verb: String, _ append: (inout JSONWriter) -> Void) throws -> AccountsJSON {
    var json = JSONWriter(.compact)
    json.beginObject()
    append(&json)
    json.endObject()
    return try tree(server.call("POST", verb.isEmpty ? root : "\(root):\(verb)", json.bytes))
  }

  /// The id of an account that a person names by it, or by its e-mail address.
  /// - Throws: ``CommandFailure`` where there is none.
  func uid(_ name: String) throws -> String {
    let isEmail = name.contains("@")
    let found = try call("lookup") { json in
      json.key(isEmail ? "email" : "localId")
      json.beginArray()
      json.string(name)
      json.endArray()
    }
    guard let uid = found["users"]?.elements.first?["localId"]?.text else {
      throw CommandFailure.failed("there is no account \(name) at \(server.address)")
    }
    return uid
  }

  private func tree(_ body: [UInt8]?) throws -> AccountsJSON { try AccountsJSON(parsing: body ?? Array("{}".utf8)) }
}

extension JSONWriter {
  /// Appends a value as it was read.
  mutating func append(_ tree: AccountsJSON) {
    switch tree {
    case .null: null()
    case .boolean(let value): bool(value)
    case .integer(let value): number(Int(value))
    case .double(let value): double(value)
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
