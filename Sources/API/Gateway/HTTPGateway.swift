package import Accounts
package import DatabaseService
package import FileService
import DocumentModel
import FirestoreAPI
package import GatewayCore
import IdentityAPI
package import IdentityService
package import OperationsAPI
import StorageAPI
package import Transport

/// The entry point of HTTP requests: the routes of all APIs, in the order in which they are tried.
package final class HTTPGateway: RequestHandler {
  /// The limit of any request's body, in bytes. The handlers have smaller limits of their own. This one leaves room
  /// for the form of a channel, in which percent-encoding doubles or triples some bytes.
  package static let bodyBytesMax = 24 << 20

  private let dispatcher: RequestDispatcher
  private let verifier: any TokenVerifier
  /// Serves operators on a separate address, whose callers are all trusted.
  package let operations: RequestDispatcher

  /// Creates a gateway for a service, its accounts and, if given, its files.
  ///
  /// - Parameter usesTLS: whether clients reach the server by `https`.
  package init(
    _ service: FirestoreService, accounts: AccountStore, identity: AccountsService, files: StorageService? = nil,
    usesTLS: Bool = false,
    operations: OperationsService
  ) {
    verifier = accounts.mode.acceptsUnsignedTokens ? EmulatorTokens(accounts) : AccountTokens(accounts)
    let authenticator = Authenticator(verifier: verifier, isForEmulator: service.mode.admitsCallersWithoutRules)
    let rest = RESTHandler(service, authenticator)
    let channels = WebChannelHandler(service, authenticator)
    let metrics = MetricsReport(operations, service) { channels.openChannels }
    let storage = files.map {
      StorageContext($0, usesTLS: usesTLS, trustsMissingCredentials: service.mode.trustsMissingCredentials)
    }
    self.operations = RequestDispatcher(
      OperationsHandler(operations, metrics: metrics, service, authenticator, trustsEveryone: true).endpoints)
    dispatcher = RequestDispatcher(
      ChangeFeedHandler(rest).endpoints + rest.endpoints + GRPCHandler(service, authenticator).endpoints
        + channels.endpoints + AdminHandler(service, authenticator).endpoints
        + EmulatorHandler(service, authenticator, files: files).endpoints
        + KeysHandler(accounts, authenticator).endpoints + IdentityHandler(identity, authenticator).endpoints
        + OperationsHandler(operations, metrics: metrics, service, authenticator).endpoints
        + RootHandler(authenticator).endpoints
        + (storage.map { Self.endpoints($0, authenticator, accounts.serviceKeys) } ?? []))
  }

  /// The routes of files. Those of signed URLs are the last, because they have every path.
  private static func endpoints(
    _ storage: StorageContext, _ authenticator: Authenticator, _ keys: ServiceKeys
  ) -> [any Endpoint] {
    FirebaseStorageAPI(storage, authenticator).endpoints + CloudStorageAPI(storage, authenticator).endpoints
      + SignedURLAPI(storage, authenticator, keys: keys).endpoints
  }

  /// The route table: the rows of all APIs, in the order in which they are tried.
  package static var rows: [RouteRow] {
    ChangeFeedHandler.rows + RESTHandler.rows + GRPCHandler.rows + WebChannelHandler.rows + AdminHandler.rows
      + EmulatorHandler.rows + KeysHandler.rows + IdentityHandler.rows + OperationsHandler.rows + RootHandler.rows
      + FirebaseStorageAPI.rows + CloudStorageAPI.rows + SignedURLAPI.rows
  }

  /// Returns the caller that a bearer token identifies, as for HTTP requests.
  ///
  /// - Throws: `UNAUTHENTICATED` with the reason if the token is not valid.
  package func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
    try verifier.caller(bearing: token)
  }

  /// Handles a request. Responds at once or later, on the loop of the connection.
  package func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    dispatcher.handle(request, exchange)
  }

  /// Opens the body of a request whose route reads it piece by piece.
  package func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    dispatcher.openBody(of: request, exchange)
  }
}
