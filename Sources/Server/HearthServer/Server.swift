package import Accounts
import Basics
import ConsoleAPI
package import DatabaseService
import Dispatch
package import DocumentStore
package import Files
import Gateway
package import GatewayCore
import Glibc
import KeyValue
import OperationsAPI
import Synchronization
import Transport

/// A Hearth server: opens the databases, accounts, files and rules, and serves them on a port.
///
///     let server = try Server(configuration)
///     let url = try server.start()
///     …
///     server.stop()
public final class Server: Sendable {
  private let configuration: HearthConfiguration
  private let directory: DataDirectory?
  private let projects: ServedProjects
  private let http: HTTPServer
  /// The server for operators' tools, on its own address.
  private let operationsHTTP: HTTPServer?
  /// The server for operators' browsers, on its own address.
  private let consoleHTTP: HTTPServer?
  private let readiness: Readiness
  private let emulatorPorts: EmulatorPorts
  /// This server's part in a cluster, or `nil` if it is a server alone.
  private let node: ClusteredNode?
  private let hub = EmulatorHub()
  private let isStopped = Atomic(false)
  /// The URLs for the keys of programs.
  private let addresses: ServerAddresses
  /// The socket for the command line, while the server runs. Only a server with a data directory has one.
  private let adminSocket = Mutex<AdminSocket?>(nil)

  /// The version of Hearth.
  public static let version = "0.1.0"
  /// The URL of the console, while the server runs.
  private let consoleLocation = Mutex<String?>(nil)
  /// The path of the console.
  package static let consolePath = ConsolePages.path

  /// Opens the data directory and prepares the server, without listening.
  /// - Throws: ``HearthError`` if the configuration, a file or the data directory cannot be used.
  public init(_ configuration: HearthConfiguration) throws(HearthError) {
    self.configuration = configuration
    try Self.requireFiles()
    if configuration.mode == .emulator, !configuration.allowsRemoteEmulator { try Self.requireLoopback(configuration) }
    if configuration.isEmulatorCompatible, configuration.mode != .emulator {
      throw .configuration("--compat emulator authorizes queries less strictly than the rules, so it needs --emulator")
    }
    if configuration.accessObserver != nil, configuration.mode != .emulator {
      throw .configuration("--record-cases records the data of requests, so it needs --emulator")
    }
    try Self.requireOperators(configuration)
    try ClusterSettings.check(configuration)
    emulatorPorts = try EmulatorPorts(configuration)
    do throws(StorageError) {
      switch configuration.storage {
      case .inMemory: directory = nil
      case .directory(let path):
        directory = try DataDirectory(path, mayBeOpenReplica: configuration.cluster != nil)
      }
    } catch { throw .storage(error.description) }
    var transport = TransportConfiguration()
    transport.host = configuration.host
    transport.port = configuration.port
    transport.furtherPorts = emulatorPorts.further
    for text in configuration.trustedProxies where !transport.trustedProxies.add(text) {
      throw HearthError.configuration("'\(text)' is not the address or network of a proxy")
    }
    transport.tls = configuration.tls.map { TLSConfiguration(certificateFile: $0.certificate, keyFile: $0.key) }
    transport.targetBytesMax = 48 << 10
    transport.bodyBytesMax = HTTPGateway.bodyBytesMax
    transport.requestLog = configuration.requestLog
    transport.failureLog = configuration.failureLog
    transport.listeningSocket = configuration.listeningSocket
    let counters = TransportCounters(loops: transport.loops)
    transport.counters = counters
    transport.errorBody = { status, message in ErrorJSON.body(httpStatus: status, message: message) }
    let projects = ServedProjects(configuration, directory)
    self.projects = projects
    readiness = Readiness(directory: directory?.path)
    let log = configuration.log
    let meter = ClusterMeter()
    let operations = OperationsService(
      counters: counters, version: Self.version, unready: { [readiness] in readiness.unready() },
      droppedLogLines: { log?.droppedLines ?? 0 },
      staleRulesFiles: { [weak projects] in projects?.staleRulesFiles ?? 0 },
      backups: configuration.backups, cluster: { meter.reading }, hub: hub)
    addresses = ServerAddresses(publicURL: configuration.publicURL)
    try projects.open(operations, addresses)
    if let own = projects.own { readiness.check(own.registry, own.rulesRegistry, project: configuration.project) }
    node = try Self.join(configuration, directory, projects, operations, addresses, transport)
    if let node {
      meter.node = node
      readiness.check { [weak node] in node?.unready }
      transport.leaveShareToPeers()
    }
    // The operator decides which clients reach this address.
    let listener = HTTPGateway.operations(operations, mode: configuration.serverMode) { [weak projects] in
      projects?.stacks.map(\.gateway.metrics) ?? []
    }
    do {
      http = try HTTPServer(configuration: transport, handler: node?.door ?? projects.handler)
      operationsHTTP = try configuration.metricsAddress.map { address throws(TransportError) in
        var transport = TransportConfiguration()
        (transport.host, transport.port) = (address.host, address.port)
        transport.loops = 1
        transport.connectionsMax = 64
        transport.bodyBytesMax = 1 << 10
        return try HTTPServer(configuration: transport, handler: listener)
      }
      consoleHTTP = try Self.makeConsole(configuration, projects, node, transport)
    } catch { throw Self.error(error) }
    projects.setCancel { [weak http, weak consoleHTTP] stack in
      http?.cancelRequests { ProjectDispatcher.isOwned($0, by: stack) || StackRequests.isOwned($0, by: stack) }
      consoleHTTP?.cancelRequests { ProjectDispatcher.isOwned($0, by: stack) || StackRequests.isOwned($0, by: stack) }
    }
    try projects.own?.prepare()
  }

  /// Starts to listen, and returns the URL.
  /// - Throws: ``HearthError/listening(_:)`` if the address or a required port is in use, or the address does not
  ///   belong to this machine;
  ///   ``HearthError/storage(_:)`` if the data directory cannot be written.
  public func start() throws(HearthError) -> String {
    let address: (host: String, port: Int)
    do {
      let metrics = try operationsHTTP?.start()
      let console = try consoleHTTP?.start()
      address = try listen()
      // If one address is in use, the server announces none.
      if let metrics {
        let url = Self.url("http", metrics)
        configuration.log(.info, "operations.listening", "metrics at \(url)/metrics", [("url", .text(url))])
      }
      if let console {
        let url = Self.url(configuration.tls == nil ? "http" : "https", console) + Self.consolePath
        consoleLocation.withLock { $0 = url }
        configuration.log(.info, "console.listening", "the console for operators is at \(url)", [("url", .text(url))])
      }
    } catch { throw emulatorPorts.failure(error) ?? Self.error(error) }
    if configuration.mode == .emulator {
      emulatorPorts.announce(main: address, http.furtherPorts, in: hub, configuration)
    }
    let url = Self.url(configuration.tls == nil ? "http" : "https", address)
    addresses.listeningURL = url
    if configuration.mode == .emulator, configuration.hasConsole {
      let key = projects.own?.consoleKey.map { "#/?key=\($0)" } ?? ""
      consoleLocation.withLock { $0 = url + Self.consolePath + key }
    }
    do { try directory?.announce(url: url) } catch { throw .storage(error.description) }
    readiness.phase = .serving
    node?.start()
    scheduleMaintenance()
    projects.start()
    if projects.hasRules { watchRules() }
    return url
  }

  /// Listens without TLS on a free port of the loopback address while `body` runs, which receives the URL. Requests have
  /// the same rights there as on the server's own address. Start the server first.
  /// - Throws: ``HearthError/listening(_:)`` if no port can be opened, or the error of `body`.
  package func withPlainAddress(_ body: (String) throws -> Void) throws {
    var transport = TransportConfiguration()
    (transport.host, transport.port, transport.loops) = ("127.0.0.1", 0, 1)
    transport.targetBytesMax = 48 << 10
    transport.bodyBytesMax = HTTPGateway.bodyBytesMax
    let server: HTTPServer
    let address: (host: String, port: Int)
    do {
      server = try HTTPServer(configuration: transport, handler: projects.handler)
      address = try server.start()
    } catch { throw Self.error(error) }
    defer { server.stop(graceSeconds: 1) }
    try body(Self.url("http", address))
  }

  /// Starts the loops with the admin socket, if the data directory can have one. The server works without it.
  private func listen() throws(TransportError) -> (host: String, port: Int) {
    var admin: AdminSocket?
    do throws(HearthError) {
      admin = try directory.map { (directory) throws(HearthError) in
        try AdminSocket(in: directory.path)
      }
    } catch {
      configuration.log(
        .warn, "admin.unavailable", "the command line cannot use this server's admin socket: \(error.description)")
    }
    do throws(TransportError) {
      let address = try http.start(adminSocket: admin?.descriptor)
      adminSocket.withLock { $0 = admin }
      return address
    } catch {
      if let admin {
        close(admin.descriptor)
        admin.remove()
      }
      throw error
    }
  }

  /// Reloads the TLS certificate and its key, for new connections. Does nothing without TLS.
  /// - Throws: ``HearthError/configuration(_:)`` if they are not valid. Then the current certificate stays in use.
  public func reloadCertificate() throws(HearthError) {
    do {
      try http.reloadCertificate()
      try consoleHTTP?.reloadCertificate()
    } catch { throw Self.error(error) }
  }

  /// Reloads the projects of ``HearthConfiguration/loadProjects``, the rules, the TLS certificate and its key, the keys
  /// of trusted issuers, and the rules of web apps. If a file is not valid, its previous content stays in force, and the error is logged.
  public func reload() {
    projects.reload()
    guard configuration.tls != nil else { return }
    do {
      try reloadCertificate()
      configuration.log(.info, "certificate.reloaded", "the certificate was reloaded")
    } catch {
      configuration.log(.error, "certificate.refused", "\(error.description); the current certificate stays in use")
    }
  }

  /// Returns whether every event loop responds within the given time. Do not call it on an event loop.
  public func isResponsive(withinMilliseconds milliseconds: Int) -> Bool {
    http.loopsRespond(withinMilliseconds: milliseconds)
  }

  /// Reloads the rules files. If a file does not compile, its previous rules stay in force, and the error is passed
  /// to ``HearthConfiguration/warn``.
  public func reloadRules() { for stack in projects.stacks { stack.reloadRules(all: true) } }

  /// Stops the server: completes active requests within ``HearthConfiguration/stopGraceSeconds``, then closes the
  /// databases.
  public func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    readiness.phase = .stopping
    // The next owner serves the requests of this server's clients that come meanwhile.
    node?.handOver()
    projects.stopWork()
    // Its live streams would use the whole time.
    consoleHTTP?.stop(graceSeconds: 1)
    http.stop(graceSeconds: configuration.stopGraceSeconds)
    // The lock of the data directory is still held, so this is not the socket of the next server.
    adminSocket.withLock { socket in
      socket?.remove()
      socket = nil
    }
    // Last, so operators' tools can see meanwhile that the server is stopping.
    operationsHTTP?.stop(graceSeconds: 1)
    node?.stop()
    projects.close()
  }

  /// Returns the caller that a bearer token identifies, as requests do.
  /// - Throws: ``Status`` `UNAUTHENTICATED` with the reason if the token is not valid.
  package func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
    try projects.first.gateway.caller(bearing: token)
  }

  // MARK: The first project

  /// The document service, for use in this process without a port.
  package var service: FirestoreService { projects.first.service }
  /// The accounts of the project.
  package var accounts: AccountStore { projects.first.accounts }
  /// Returns the accounts of a project, or `nil` if it is not served.
  package func accounts(of project: String) -> AccountStore? {
    projects.stacks.first { $0.configuration.project == project }?.accounts
  }
  /// The open databases, for imports and tools in this process. The registry authorizes no caller.
  package var registry: DatabaseRegistry { projects.first.registry }
  /// The files of the project.
  package var files: LazyFileStore { projects.first.files }
  /// The routes for clients, in the order in which they are tried.
  package var endpoints: [any Endpoint] { projects.first.gateway.requests.endpoints }

  /// The URL of the console, or `nil` without one or before the start. That of an emulator contains the secret with which
  /// the page writes files.
  public var consoleURL: String? { consoleLocation.withLock { $0 } }
  /// The routes of the console for operators, in the order in which they are tried.
  package var consoleEndpoints: [any Endpoint] { projects.first.gateway.console?.endpoints ?? [] }

  /// Makes the server for operators' browsers, if the configuration has an address for it. It has the certificate of the
  /// main address, one loop, and few connections.
  private static func makeConsole(
    _ configuration: HearthConfiguration, _ projects: ServedProjects, _ node: ClusteredNode?,
    _ main: TransportConfiguration
  ) throws(TransportError) -> HTTPServer? {
    guard let address = configuration.consoleAddress, let requests = node?.console ?? projects.consoleHandler else {
      return nil
    }
    var console = TransportConfiguration()
    (console.host, console.port, console.loops) = (address.host, address.port, 1)
    console.connectionsMax = 256
    console.bufferedBytesMax = 32 << 20
    console.unsentBytesMax = 16 << 20
    console.targetBytesMax = main.targetBytesMax
    console.bodyBytesMax = main.bodyBytesMax
    console.trustedProxies = main.trustedProxies
    console.tls = main.tls
    console.requestLog = main.requestLog
    console.failureLog = main.failureLog
    console.errorBody = main.errorBody
    let project = configuration.loadProjects == nil ? node?.project ?? configuration.project ?? "" : ""
    let page = RequestDispatcher(ConsolePages(forOperatorsOf: project, version: version).endpoints)
    return try HTTPServer(
      configuration: console,
      handler: ConsoleDoor(
        page: page, requests: requests, address: address.host, name: configuration.consoleHost,
        usesTLS: configuration.tls != nil))
  }

  /// Checks that the address of the console belongs to a production server.
  /// - Throws: ``HearthError/configuration(_:)`` if it does not.
  private static func requireOperators(_ configuration: HearthConfiguration) throws(HearthError) {
    guard configuration.consoleAddress != nil else {
      guard configuration.consoleHost == nil else {
        throw .configuration("--console-host needs --console-address, the address of the console")
      }
      return
    }
    guard configuration.mode == .production else {
      throw .configuration("an emulator serves its console on its own port; --console-address is for production")
    }
    guard configuration.hasConsole else {
      throw .configuration("--no-console and --console-address exclude each other")
    }
  }

  /// Joins the cluster of a configuration, if it names one.
  private static func join(
    _ configuration: HearthConfiguration, _ directory: DataDirectory?, _ projects: ServedProjects,
    _ operations: OperationsService, _ addresses: ServerAddresses, _ limits: TransportConfiguration
  ) throws(HearthError) -> ClusteredNode? {
    guard let settings = configuration.cluster, let directory else { return nil }
    let health = HTTPGateway.operationsWithoutProject(operations, mode: configuration.serverMode)
    let places = PlaceThrottles { [clock = configuration.clock] in clock.now() }
    let followed = FollowedProject(directory, operations, addresses, places)
    return try ClusteredNode(
      configuration, settings, directory, limits: limits, operations: health, followed: followed
    ) { cancelRelayed in
      OwnedProject(projects, directory, operations, addresses, places) { [weak projects] stack in
        projects?.cancelRequests(of: stack)
        cancelRelayed(stack)
      }
    }
  }

  private static func url(_ scheme: String, _ address: (host: String, port: Int)) -> String {
    "\(scheme)://\(address.host.contains(":") ? "[\(address.host)]" : address.host):\(address.port)"
  }

  private static func error(_ error: TransportError) -> HearthError {
    if case .badCertificate = error { return .configuration(error.description) }
    return .listening(error.description)
  }

  private func scheduleMaintenance() {
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .seconds(30)) { [weak self] in
      guard let self, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
      projects.maintain()
      scheduleMaintenance()
    }
  }

  /// Checks every second whether a rules file has changed.
  private func watchRules() {
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in
      guard let self, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
      for stack in projects.stacks { stack.reloadRules() }
      watchRules()
    }
  }

  /// The file descriptors that a server needs to start.
  private static let filesMin: UInt = 64

  /// Checks that the process may open enough files. Libraries end the process if they cannot open their first ones.
  /// - Throws: ``HearthError/configuration(_:)`` if the limit is too low.
  private static func requireFiles() throws(HearthError) {
    var limit = rlimit()
    let files = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(files, &limit) == 0, limit.rlim_cur < filesMin else { return }
    let old = limit.rlim_cur
    limit.rlim_cur = min(limit.rlim_max, filesMin)
    guard limit.rlim_cur == filesMin, setrlimit(files, &limit) == 0 else {
      throw .configuration(
        "a process may open only \(old) files here, and a server needs at least \(filesMin); raise the limit, for example "
          + "with ulimit -n 1024")
    }
  }

  /// Checks that only this machine can reach the server.
  /// - Throws: ``HearthError/configuration(_:)`` if other machines can reach it.
  private static func requireLoopback(_ configuration: HearthConfiguration) throws(HearthError) {
    var remedy = "use --host 127.0.0.1"
    var host = configuration.host
    // A descriptor that is not a socket with an address is rejected later, when the server takes ownership of it.
    if let socket = configuration.listeningSocket, let bound = HTTPServer.host(ofSocket: socket) {
      host = bound
      remedy = "bind the inherited socket to 127.0.0.1 instead of \(bound) (ListenStream= in systemd)"
    }
    guard !HearthConfiguration.isLoopback(host) else { return }
    throw .configuration(
      "emulator mode gives admin access to every client, so it listens on loopback only; \(remedy), "
        + "or add --allow-remote-emulator if the network is trusted")
  }
}
