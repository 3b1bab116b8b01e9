import Accounts
import Basics
package import DatabaseService
import Digests
import DocumentModel
package import GatewayCore
import RulesEngine
package import Transport
import WireFormat

/// Reads and writes the file with the rules of an emulator's database, for the editor of the console.
///
/// - `GET /hearth/v1/projects/{p}/databases/{d}/rulesFile` → `{"path": …, "text": …, "hash": …}`
/// - `PUT` of the same path: `{"text": …, "hash": …}`, the hash of the text that the client has read
///
/// Both need the secret of this start in `X-Hearth-Key`. Every program and many pages can act as administrator of an
/// emulator's data, but a file belongs to the developer: only somebody who has read the address that the server printed
/// can write it. The file is one that `--rules` names; no part of a request chooses a path.
package final class RulesFileAPI: API {
  package let authenticator: Authenticator
  private let files: RulesFileAccess

  /// Creates the API.
  package init(_ files: RulesFileAccess, _ authenticator: Authenticator) {
    self.files = files
    self.authenticator = authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<RulesFileAPI>] {
    let path = "/hearth/v1/projects/{project}/databases/{database}/rulesFile"
    return [
      Route(.get, [path], kind: .control, access: .emulator) { try $0.read($1, $2) },
      Route(.put, [path], kind: .control, access: .emulator) { try $0.write($1, $2) },
    ]
  }

  /// Returns the caller of a request. No particular caller is needed, so unknown credentials are ignored.
  package func authenticate(_ request: borrowing HTTPRequest, _ access: RouteAccess) -> Caller {
    (try? authenticator.caller(of: request)) ?? .unauthenticated
  }

  /// Checks the secret, and that a browser sent the request for the console's own page, if one did.
  /// - Throws: `PERMISSION_DENIED`.
  private func admit(_ request: borrowing HTTPRequest) throws(Status) {
    let isOwn = request.header("sec-fetch-site").map { $0.elementsEqual("same-origin".utf8) } ?? true
    guard isOwn, let key = request.header("x-hearth-key"), Self.areEqual(key, files.key) else {
      throw Status(
        .permissionDenied,
        "Open the console by the address that the server printed at its start. It contains a secret "
          + "without which no page writes files.")
    }
  }

  /// Compares in a time that depends on the lengths only.
  private static func areEqual(_ given: UnsafeRawBufferPointer, _ key: String) -> Bool {
    let key = Array(key.utf8)
    guard given.count == key.count else { return false }
    return zip(given, key).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
  }

  private func read(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    try admit(request)
    let (database, files, responder) = (try call.text(1, of: request), files, call.responder)
    responder.work {
      guard let file = files.read(database) else {
        return responder.onLoop { responder.sendError(Status(.notFound, "The rules of this database have no file.")) }
      }
      let map = MapValue([
        ("path", .string(file.path)), ("text", .string(file.text)), ("hash", .string(Self.hash(file.text))),
      ])
      responder.onLoop { responder.sendJSON(map.json, cacheControl: "no-store") }
    }
  }

  private func write(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    try admit(request)
    guard let body = MapValue(json: request.body), let text = body.text("text"), let hash = body.text("hash") else {
      throw Status(.invalidArgument, "The body must be {\"text\": …, \"hash\": …}.")
    }
    let (database, files, responder) = (try call.text(1, of: request), files, call.responder)
    responder.work {
      let failure = Self.write(text, over: hash, database, files)
      responder.onLoop {
        guard let failure else {
          return responder.sendJSON(MapValue([("hash", .string(Self.hash(text)))]).json, cacheControl: "no-store")
        }
        responder.sendError(failure)
      }
    }
  }

  private static func write(_ text: String, over hash: String, _ database: String, _ files: RulesFileAccess) -> Status?
  {
    do throws(RulesetError) { _ = try Ruleset(compiling: text) } catch {
      return Status(.invalidArgument, "Error compiling rules:\n" + error.summary)
    }
    guard let file = files.read(database) else { return Status(.notFound, "The rules of this database have no file.") }
    guard Self.hash(file.text) == hash else {
      return Status(.failedPrecondition, "\(file.path) has changed since the console read it. Load it again.")
    }
    return files.write(database, text).map { Status(.failedPrecondition, "\(file.path) cannot be written: \($0)") }
  }

  private static func hash(_ text: String) -> String {
    Array(text.utf8).withUnsafeBytes { MessageDigest.compute(.sha256, $0) }.map { Hexadecimal.text($0) } ?? ""
  }
}

/// The files of rules that the console of an emulator may write.
package struct RulesFileAccess: Sendable {
  /// The secret of this start.
  package let key: String
  /// Returns the path and the text of the rules of a database, or `nil` if they have no file.
  package let read: @Sendable (_ database: String) -> (path: String, text: String)?
  /// Replaces the text of that file at once, and puts it in force. Returns the reason if that fails.
  package let write: @Sendable (_ database: String, _ text: String) -> String?

  /// Creates the access.
  package init(
    key: String, read: @escaping @Sendable (String) -> (path: String, text: String)?,
    write: @escaping @Sendable (String, String) -> String?
  ) {
    self.key = key
    self.read = read
    self.write = write
  }
}
