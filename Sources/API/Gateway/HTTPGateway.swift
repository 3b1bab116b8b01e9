package import Accounts
package import DatabaseService
package import FileService
import FirestoreAPI
import GatewayCore
package import IdentityAPI
package import OperationsAPI
import StorageAPI
package import Transport

/// The entry point of HTTP requests. It selects a handler by the first part of the path.
///
/// - `/v1/…`: the REST API of `google.firestore.v1`, in `REST/`, and of `google.firestore.admin.v1`, in `Admin/`
/// - `/emulator/v1/…`, `/hearth/v1/…`: control by test suites and tools, in `Emulator/`
/// - `/v0/b/…`, `/storage/v1/…` and others: files, in `Files/`
/// - content type `application/grpc`: the gRPC API of `google.firestore.v1`, in `GRPC/`
/// - `/google.firestore.v1.Firestore/…/channel`: WebChannels of browsers, in `WebChannel/`
/// - `/token`, the paths of published keys, `/hearth/v1/keys`: see ``KeysHandler``, in `Keys/`
/// - `/v1/accounts:…`, `/v1/token` and others, also after the host names of their services: see
///   ``IdentityHandler``, in `Accounts/`
/// - `/healthz`, `/readyz`, `/metrics`: health and metrics, in `Operations/`
/// - `/`: responds with `Ok`, the emulator's readiness probe
package final class HTTPGateway: RequestHandler {
  /// The limit of any request's body, in bytes. The handlers have smaller limits of their own. This one leaves room
  /// for the form of a channel, in which percent-encoding doubles or triples some bytes.
  package static let bodyBytesMax = 24 << 20

  private let rest: RESTHandler
  private let grpc: GRPCHandler
  private let channels: WebChannelHandler
  private let control: EmulatorHandler
  private let keys: KeysHandler
  private let identity: IdentityHandler
  private let files: StorageHandler?
  private let verifier: any TokenVerifier
  package let operations: OperationsHandler
  private let authenticator: Authenticator
  private let isOpen: Bool

  /// Creates a gateway for a service, its accounts and, if given, its files.
  ///
  /// - Parameter usesTLS: whether clients reach the server by `https`.
  package init(
    _ service: FirestoreService, accounts: AccountStore, identity: IdentityToolkit, files: StorageService? = nil,
    usesTLS: Bool = false,
    operations: OperationsService
  ) {
    verifier =
      switch accounts.mode {
      case .emulator: EmulatorTokens(accounts)
      case .production: AccountTokens(accounts)
      }
    let authenticator = Authenticator(verifier: verifier)
    self.authenticator = authenticator
    isOpen = service.defaultAccess == .everybody
    keys = KeysHandler(accounts, authenticator)
    self.identity = IdentityHandler(identity, authenticator)
    rest = RESTHandler(service, authenticator)
    grpc = GRPCHandler(service, authenticator)
    channels = WebChannelHandler(service, authenticator)
    control = EmulatorHandler(service, authenticator, files: files)
    self.operations = OperationsHandler(
      operations, metrics: MetricsReport(operations, service) { [channels] in channels.openChannels })
    self.files = files.map {
      StorageHandler($0, authenticator, keys: accounts.serviceKeys, isEmulator: isOpen, usesTLS: usesTLS)
    }
  }

  /// Returns the caller that a bearer token identifies, as for HTTP requests.
  ///
  /// - Throws: `UNAUTHENTICATED` with the reason if the token is not valid.
  package func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
    try verifier.caller(bearing: token)
  }

  /// Handles a request. Responds at once or later, on the loop of the connection.
  package func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let responder = Responder(exchange, request)
    guard request.method != .options else { return responder.sendPreflight(request) }
    let (path, parameters) = request.target.pathAndQuery
    if request.version == .http2, GRPCHandler.isGRPC(request) {
      exchange.setKind(.grpc)
      grpc.handle(path, request, exchange)
    } else if let call = keys.call(path) {
      exchange.setKind(.keys)
      keys.handle(call, request, responder)
    } else if let route = IdentityRoute.find(path) {
      exchange.setKind(route.isSignIn ? .signIn : .accounts)
      identity.handle(route, parameters, request, responder)
    } else if let rest = path.dropping("/v1/") ?? path.dropping("/v1beta1/") {
      exchange.setKind(.rest)
      self.rest.handle(rest, parameters, request, responder)
    } else if let rest = path.dropping("/emulator/v1/") {
      exchange.setKind(.control)
      control.handleEmulator(rest, request, responder)
    } else if let rest = path.dropping("/hearth/v1/") {
      exchange.setKind(.control)
      control.handleHearth(rest, parameters, request, responder)
    } else if let files, let (route, rest) = StorageHandler.route(path, parameters) {
      exchange.setKind(.files)
      files.handle(route, rest, parameters, request, exchange)
    } else if let call = OperationsHandler.call(path) {
      operations.handle(call, request, exchange, isTrusted: isAdmitted)
    } else if path.elementsEqual("/".utf8), request.method == .get || request.method == .head {
      exchange.setKind(.operations)
      responder.sendText(200, "Ok\n")
    } else if let rest = path.dropping("/google.firestore.v1.Firestore/") {
      exchange.setKind(.channel)
      if let method = WebChannelHandler.method(rest) { return channels.handle(method, parameters, request, responder) }
      responder.sendText(415, "A gRPC call needs HTTP/2 and the content type application/grpc.\n")
    } else {
      responder.sendText(404, "Not Found\n")
    }
  }

  /// Whether the caller is an administrator, or the server admits every caller.
  private func isAdmitted(_ request: borrowing HTTPRequest) -> Bool {
    guard let caller = try? authenticator.caller(of: request) else { return false }
    if case .admin = caller { return true }
    return isOpen
  }

  /// Opens the body of a file upload or of a bidirectional gRPC stream, which is read piece by piece.
  package func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    let (path, parameters) = request.target.pathAndQuery
    if let files, let (route, rest) = StorageHandler.route(path, parameters) {
      exchange.setKind(.files)
      let sink = files.openBody(route, rest, parameters, request, exchange)
      if sink != nil { exchange.setKind(.upload) }
      return sink
    }
    guard request.version == .http2 else { return nil }
    if GRPCHandler.isGRPC(request) { exchange.setKind(.grpc) }
    return grpc.openBody(path, request, exchange)
  }
}
