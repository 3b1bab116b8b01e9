package import Accounts
import DatabaseService
import DocumentModel
package import GatewayCore
import Transport
import WireFormat

/// Manages the operators of the console of a production server. For administrators.
///
/// - `GET /hearth/v1/operators` lists them.
/// - `POST /hearth/v1/operators`: `{"name": …, "role": …, "password": …}` adds one.
/// - `PATCH /hearth/v1/operators/{name}`: `{"role": …}`, `{"password": …}` or both.
/// - `DELETE /hearth/v1/operators/{name}` removes one.
///
/// A change or removal ends the sessions of the operator. Its response contains the project of the operators:
/// `{"project": …}`.
package final class OperatorsHandler: API {
  package let authenticator: Authenticator
  private let accounts: AccountStore

  /// Creates a handler for the operators of a project.
  package init(_ accounts: AccountStore, _ authenticator: Authenticator) {
    self.accounts = accounts
    self.authenticator = authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<OperatorsHandler>] {
    [
      Route(.get, ["/hearth/v1/operators"], kind: .keys, access: .administrator) { handler, _, call in
        call.responder.sendJSON(Operators.list(handler.accounts.operators.all), cacheControl: "no-store")
      },
      Route(.post, ["/hearth/v1/operators"], kind: .keys, access: .administrator) { try $0.add($1, $2) },
      Route(.patch, ["/hearth/v1/operators/{name}"], kind: .keys, access: .administrator) { try $0.change($1, $2) },
      Route(.delete, ["/hearth/v1/operators/{name}"], kind: .keys, access: .administrator) { try $0.remove($1, $2) },
    ]
  }

  private func add(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let body = try Self.object(request.body)
    guard let name = body.text("name"), let password = body.text("password"), let role = try Self.role(body) else {
      throw Status(
        .invalidArgument,
        "The body must be {\"name\": …, \"role\": \"viewer\", \"editor\" or \"owner\", \"password\": …}.")
    }
    work(.operatorAdded, name, ["role \(role.rawValue)"], request, call) { (operators) throws(OperatorError) in
      try operators.add(name, role: role, password: password)
    }
  }

  private func change(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let name = try call.text(0, of: request)
    let body = try Self.object(request.body)
    let (role, password) = (try Self.role(body), body.text("password"))
    guard role != nil || password != nil else {
      throw Status(.invalidArgument, "The body must contain \"role\" or \"password\".")
    }
    let fields = (role.map { ["role \($0.rawValue)"] } ?? []) + (password == nil ? [] : ["password"])
    work(.operatorChanged, name, fields, request, call) { (operators) throws(OperatorError) in
      // The password first, because it can be refused.
      if let password { try operators.setPassword(password, of: name) }
      if let role { try operators.setRole(role, of: name) }
    }
  }

  private func remove(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let name = try call.text(0, of: request)
    work(.operatorRemoved, name, [], request, call) { (operators) throws(OperatorError) in try operators.remove(name) }
  }

  /// Changes operators on another thread, logs the change, and responds.
  private func work(
    _ kind: AccountEvent.Kind, _ name: String, _ fields: [String], _ request: borrowing HTTPRequest,
    _ call: RoutedCall, _ body: @escaping @Sendable (Operators) throws(OperatorError) -> Void
  ) {
    let (accounts, responder, client) = (accounts, call.responder, request.clientAddress)
    responder.work {
      let outcome = Result { () throws(OperatorError) in try body(accounts.operators) }
      if case .success = outcome {
        var event = AccountEvent(kind, by: .admin, from: client)
        (event.operatorName, event.fields) = (name, fields)
        accounts.audit(event)
      }
      responder.onLoop {
        switch outcome {
        case .success:
          let done = MapValue([("project", .string(accounts.project.id))])
          responder.sendJSON(done.json, cacheControl: "no-store")
        case .failure(.unknown(let name)):
          responder.sendError(Status(.notFound, "No operator is named \(name)."))
        case .failure(.storage(let error)): responder.sendError(Status(error, database: nil))
        case .failure(.refused(let reason)): responder.sendError(Status(.invalidArgument, reason))
        }
      }
    }
  }

  /// Returns the role in a body, or `nil` if it names none.
  /// - Throws: `INVALID_ARGUMENT` if the role does not exist.
  private static func role(_ body: MapValue) throws(Status) -> OperatorRole? {
    guard body["role"] != nil else { return nil }
    guard let role = body.text("role").flatMap(OperatorRole.init(rawValue:)) else {
      throw Status(.invalidArgument, "The role must be \"viewer\", \"editor\" or \"owner\".")
    }
    return role
  }

  private static func object(_ body: UnsafeRawBufferPointer) throws(Status) -> MapValue {
    guard let map = MapValue(json: body) else { throw Status(.invalidArgument, "The body must be a JSON object.") }
    return map
  }
}
