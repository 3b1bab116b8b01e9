package import Accounts
import Basics
package import Callers
package import ConsoleAPI
package import DatabaseService
package import DocumentModel
package import FileService
import FirestoreAPI
package import GatewayCore
package import Hosting
import HostingAPI
import IdentityAPI
package import IdentityService
package import OperationsAPI
import StorageAPI
package import Transport

/// The APIs of a server: the routes of all of them, in the order in which they are tried.
package struct HTTPGateway: Sendable {
  /// The limit of any request's body, in bytes. The handlers have smaller limits of their own. This one leaves room
  /// for the form of a channel, in which percent-encoding doubles or triples some bytes.
  package static let bodyBytesMax = 24 << 20

  /// Tells which requests of clients may be sent again if their response was lost.
  package static let repeatableRequests = RepeatableRequests(
    ChangeFeedHandler.heads + RESTHandler.heads + GRPCHandler.heads + IdentityHandler.heads)

  /// Tells which requests of clients any node of a cluster can handle.
  package static let anyNodeRequests = AnyNodeRequests.forDocuments

  /// Returns the database that such a request reads; see ``AnyNodeRequests/databaseRead(by:of:)``.
  package static func databaseRead(by request: borrowing HTTPRequest, of project: String) -> String? {
    AnyNodeRequests.databaseRead(by: request, of: project)
  }

  /// Returns the number of the node that has the channel of a request, or `nil` if the request is for no open channel.
  package static func nodeOfChannel(in request: borrowing HTTPRequest) -> UInt16? {
    WebChannelHandler.node(of: request)
  }

  /// Serves clients.
  package let requests: RequestDispatcher
  /// The parts of the project that metrics report.
  package let metrics: MetricsSource
  private let verifier: any TokenVerifier
  /// Serves the operators of a production server at the address of the console, or `nil` without one.
  package let console: RequestDispatcher?

  /// Creates a gateway for a service, its accounts and, if given, its files.
  ///
  /// - Parameters:
  ///   - usesTLS: whether clients reach the server by `https`.
  ///   - hostName: the host on which the operator lets the server listen.
  ///   - addresses: the URLs for the keys of programs.
  ///   - sites: the web apps, or `nil` for a server without any.
  ///   - sdk: a site with the files of the web SDK, or `nil`.
  ///   - decisionLog: the log of requests that the console shows, or `nil` for a server without a console.
  ///   - rulesFile: the files of rules that the console of an emulator may write, or `nil` for none.
  ///   - console: the facts for the console of a production server, or `nil` for a server without one.
  ///   - project: the project as a label of metrics, or `nil` if the server has only one.
  ///   - node: the number of the node in a cluster, or 0.
  package init(
    _ service: FirestoreService, accounts: AccountStore, identity: AccountsService, files: StorageService? = nil,
    usesTLS: Bool = false, hostName: String? = nil, addresses: ServerAddresses = ServerAddresses(publicURL: nil),
    sites: HostedSites? = nil, sdk: HostedSites? = nil, decisionLog: DecisionLog? = nil,
    rulesFile: RulesFileAccess? = nil, console: ConsoleFacts? = nil, operations: OperationsService,
    project: String? = nil, node: UInt16 = 0
  ) {
    verifier = accounts.mode.acceptsUnsignedTokens ? EmulatorTokens(accounts) : AccountTokens(accounts)
    let authenticator = Authenticator(
      verifier: verifier, mode: service.mode, hostName: hostName, limiter: service.limiter,
      requestQuota: service.quotas.requestRate)
    let channels = WebChannelHandler(service, authenticator, node: node)
    let source = MetricsSource(project: project, service) { channels.openChannels }
    metrics = source
    let report = MetricsReport(operations) { [source] }
    let hosting = sites.map { HostedAppsAPI($0, authenticator) }
    let root = RootHandler(
      operations, authenticator, app: hosting.map(Self.appPage), console: decisionLog == nil ? nil : ConsolePages.path)
    var endpoints = Self.documents(service, authenticator, channels, files, accounts)
    endpoints += KeysHandler(accounts, authenticator, addresses: addresses, project: project).endpoints
    endpoints += OperatorsHandler(accounts, authenticator).endpoints
    endpoints += IdentityHandler(identity, authenticator).endpoints
    endpoints += SignInPages(identity, authenticator, usesTLS: usesTLS).endpoints
    endpoints += OperationsHandler(operations, metrics: report, service, authenticator).endpoints + root.endpoints
    endpoints += FirebaseScripts(project: accounts.project.id, sdk: sdk, authenticator).endpoints
    endpoints += HubHandler(operations.hub, authenticator).endpoints
    if let decisionLog {
      endpoints +=
        DecisionLogAPI(decisionLog, service, authenticator).endpoints
        + ConsolePages(project: accounts.project.id, version: operations.version, authenticator).endpoints
    }
    if let rulesFile { endpoints += RulesFileAPI(rulesFile, authenticator).endpoints }
    if let files { endpoints += Self.files(files, authenticator, accounts.serviceKeys, usesTLS: usesTLS) }
    // The last ones, because they have every path.
    if let hosting { endpoints += hosting.endpoints }
    requests = RequestDispatcher(endpoints)
    self.console = console.map { facts in
      let authenticator = Authenticator(
        verifier: OperatorTokens(facts.sessions, users: AccountTokens(accounts)), mode: service.mode)
      let session = OperatorSessionAPI(accounts, facts.sessions, authenticator)
      var endpoints = Self.documents(
        service, authenticator, WebChannelHandler(service, authenticator), files, accounts)
      endpoints += KeysHandler(accounts, authenticator, addresses: addresses, project: project).endpoints
      endpoints += OperatorsHandler(accounts, authenticator).endpoints + session.endpoints
      endpoints += ServerFactsAPI(facts, project: accounts.project.id, authenticator).endpoints
      endpoints += IdentityHandler(identity, authenticator).endpoints
      endpoints += OperationsHandler(operations, metrics: report, service, authenticator).endpoints
      endpoints += DecisionLogAPI(facts.recording.log, service, authenticator).endpoints
      endpoints += RecordingAPI(facts.recording, authenticator).endpoints
      if let files { endpoints += Self.files(files, authenticator, accounts.serviceKeys, usesTLS: usesTLS) }
      return RequestDispatcher(ConsoleRoutes.endpoints(endpoints, facts.sessions, accounts.audit))
    }
  }

  /// The function with which the handler of `/` responds with the page of an app.
  private static func appPage(_ hosting: HostedAppsAPI) -> RootHandler.AppPage {
    { (request: borrowing HTTPRequest, responder: Responder) in hosting.respondToRoot(request, responder) }
  }

  /// Serves operators on a separate address, whose callers are all administrators. `sources` returns the projects that
  /// metrics report.
  package static func operations(
    _ operations: OperationsService, mode: ServerMode, _ sources: @escaping @Sendable () -> [MetricsSource]
  ) -> RequestDispatcher {
    let authenticator = Authenticator(everyoneIs: .admin, mode: mode)
    return RequestDispatcher(
      OperationsHandler(
        operations, metrics: MetricsReport(operations, sources), FirestoreService(withoutDatabasesIn: mode),
        authenticator
      ).endpoints)
  }

  /// Serves health checks to clients that name no project. None of them is an administrator.
  package static func operationsWithoutProject(_ operations: OperationsService, mode: ServerMode) -> RequestDispatcher {
    let authenticator = Authenticator(verifier: nil, mode: mode)
    return RequestDispatcher(
      OperationsHandler(
        operations, metrics: MetricsReport(operations) { [] }, FirestoreService(withoutDatabasesIn: mode), authenticator
      ).endpoints + RootHandler(operations, authenticator).endpoints)
  }

  private static func documents(
    _ service: FirestoreService, _ authenticator: Authenticator, _ channels: WebChannelHandler,
    _ files: StorageService?, _ accounts: AccountStore
  ) -> [any Endpoint] {
    let rest = RESTHandler(service, authenticator, project: accounts.project.id)
    return ChangeFeedHandler(rest).endpoints + rest.endpoints + GRPCHandler(service, authenticator).endpoints
      + channels.endpoints + AdminHandler(service, authenticator).endpoints
      + EmulatorHandler(service, authenticator, files: files, accounts: accounts).endpoints
  }

  /// The routes of files. Those of signed URLs are the last, because they have every path.
  private static func files(
    _ files: StorageService, _ authenticator: Authenticator, _ keys: ServiceKeys, usesTLS: Bool
  ) -> [any Endpoint] {
    let storage = StorageContext(files, usesTLS: usesTLS)
    return FirebaseStorageAPI(storage, authenticator).endpoints + CloudStorageAPI(storage, authenticator).endpoints
      + SignedURLAPI(storage, authenticator, keys: keys).endpoints
  }

  /// Returns the caller that a bearer token identifies, as for HTTP requests.
  ///
  /// - Throws: `UNAUTHENTICATED` with the reason if the token is not valid.
  package func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
    try verifier.caller(bearing: token)
  }
}
