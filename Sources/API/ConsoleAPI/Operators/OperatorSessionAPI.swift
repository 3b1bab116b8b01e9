package import Accounts
import DatabaseService
import DocumentModel
package import GatewayCore
import Transport
import WireFormat

/// Signs operators in to the console of a production server, and out.
///
/// - `POST /hearth/v1/session`: `{"name": …, "password": …}` → the token of a new session.
/// - `GET /hearth/v1/session` says who is signed in.
/// - `DELETE /hearth/v1/session` ends the session.
///
/// No cookie is used. A response does not say whether a name exists, neither by its text nor by its time.
package final class OperatorSessionAPI: API {
  package let authenticator: Authenticator
  private let accounts: AccountStore
  private let sessions: OperatorSessions

  /// The longest body of a sign-in, in bytes.
  private static let bodyBytesMax = 16 << 10

  /// Creates the API.
  package init(_ accounts: AccountStore, _ sessions: OperatorSessions, _ authenticator: Authenticator) {
    self.accounts = accounts
    self.sessions = sessions
    self.authenticator = authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<OperatorSessionAPI>] {
    [
      Route(.post, ["/hearth/v1/session"], kind: .signIn, access: .everyone) { try $0.signIn($1, $2) },
      Route(.get, ["/hearth/v1/session"], kind: .keys, access: .administrator) { try $0.describe($1, $2) },
      Route(.delete, ["/hearth/v1/session"], kind: .keys, access: .administrator) { try $0.signOut($1, $2) },
    ]
  }

  private func signIn(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    guard request.body.count <= Self.bodyBytesMax, let body = MapValue(json: request.body),
      let name = body.text("name"), let password = body.text("password")
    else { throw Status(.invalidArgument, "The body must be {\"name\": …, \"password\": …}.") }
    let (accounts, sessions, responder, client) = (accounts, sessions, call.responder, request.clientAddress)
    let isTaken = sessions.submit {
      let outcome = sessions.signIn(name, password: password, from: client)
      var event = AccountEvent(.operatorSignInFailed, from: client)
      event.operatorName = String(name.prefix(64))
      switch outcome {
      case .signedIn(let session, let token):
        event.kind = .operatorSignedIn
        event.fields = [session.role.rawValue]
        accounts.audit(event)
        responder.onLoop { Self.send(session, token: token, accounts, responder) }
      case .refused:
        event.reason = "wrong name or password"
        accounts.audit(event)
        responder.onLoop { responder.sendError(Status(.unauthenticated, "The name or the password is wrong.")) }
      case .tooMany(let isLogged):
        event.reason = "too many failed attempts"
        if isLogged { accounts.audit(event) }
        responder.onLoop {
          responder.sendError(
            Status(.resourceExhausted, "Too many attempts to sign in have failed. Try again in 15 minutes."))
        }
      }
    }
    guard isTaken else {
      throw Status(.resourceExhausted, "The server is busy with other sign-ins. Try again in a moment.")
    }
  }

  private func describe(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    guard let session = call.caller.operatorSession else { throw Status.sessionEnded }
    Self.send(session, token: nil, accounts, call.responder)
  }

  private func signOut(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    guard let session = call.caller.operatorSession else { throw Status.sessionEnded }
    sessions.end(session)
    var event = AccountEvent(.operatorSignedOut, from: request.clientAddress)
    event.operatorName = session.name
    accounts.audit(event)
    call.responder.sendJSON(Array("{}\n".utf8), cacheControl: "no-store")
  }

  private static func send(
    _ session: OperatorSession, token: String?, _ accounts: AccountStore, _ responder: Responder
  ) {
    var map = MapValue([
      ("name", .string(session.name)), ("role", .string(session.role.rawValue)),
      ("project", .string(accounts.project.id)), ("idleSeconds", .integer(OperatorSessions.idleSeconds)),
      ("endSeconds", .integer(OperatorSessions.endSeconds(of: session))),
    ])
    map["token"] = token.map(Value.string)
    responder.sendJSON(map.json, cacheControl: "no-store")
  }
}
