package import Accounts
import Basics
package import DatabaseService
import Dispatch
import DocumentModel
package import DocumentStore
package import Files
import FileService
import Gateway
package import GatewayCore
import Glibc
import IdentityService
import KeyValue
import LMDBEngine
import OperationsAPI
import RulesEngine
import Synchronization
import Transport

/// A Hearth server: opens the databases, accounts, files and rules, and serves them on a port.
///
///     let server = try Server(configuration)
///     let url = try server.start()
///     …
///     server.stop()
public final class Server: Sendable {
  /// The document service, for use in this process without a port.
  package let service: FirestoreService
  package let accounts: AccountStore
  private let configuration: HearthConfiguration
  private let directory: DataDirectory?
  /// The open databases, for imports and tools in this process. The registry authorizes no caller.
  package let registry: DatabaseRegistry
  private let rules: RulesFiles
  private let issuers: IssuerFiles
  private let onlineIssuers: OnlineIssuers
  private let hosting: HostingSetup
  package let files: LazyFileStore
  private let gateway: HTTPGateway
  /// The routes for clients, in the order in which they are tried.
  package var endpoints: [any Endpoint] { gateway.requests.endpoints }
  private let http: HTTPServer
  /// The server for operators' tools, on its own address.
  private let operationsHTTP: HTTPServer?
  private let readiness: Readiness
  private let emulatorPorts: EmulatorPorts
  private let hub = EmulatorHub()
  private let isStopped = Atomic(false)
  /// The URLs for the keys of programs.
  private let addresses: ServerAddresses
  /// The socket for the command line, while the server runs. Only a server with a data directory has one.
  private let adminSocket = Mutex<AdminSocket?>(nil)

  /// The version of Hearth.
  public static let version = "0.1.0"

  /// Opens the data directory and prepares the server, without listening.
  /// - Throws: ``HearthError`` if the configuration, a file or the data directory cannot be used.
  public init(_ configuration: HearthConfiguration) throws(HearthError) {
    self.configuration = configuration
    if configuration.mode == .emulator, !configuration.allowsRemoteEmulator { try Self.requireLoopback(configuration) }
    if configuration.isEmulatorCompatible, configuration.mode != .emulator {
      throw .configuration("--compat emulator authorizes queries less strictly than the rules, so it needs --emulator")
    }
    if configuration.accessObserver != nil, configuration.mode != .emulator {
      throw .configuration("--record-cases records the data of requests, so it needs --emulator")
    }
    emulatorPorts = try EmulatorPorts(configuration)
    do throws(StorageError) {
      switch configuration.storage {
      case .inMemory: directory = nil
      case .directory(let path): directory = try DataDirectory(path)
      }
    } catch { throw .storage(error.description) }
    let indexes = try IndexFiles(configuration.indexes)
    let rulesRegistry = RulesRegistry()
    let fileRules = FileRules()
    rules = try RulesFiles(configuration, rulesRegistry, fileRules)
    registry = Self.makeRegistry(configuration, directory, indexes)
    service = FirestoreService(
      databases: registry, mode: configuration.serverMode, rules: rulesRegistry,
      proofMode: configuration.isEmulatorCompatible ? .emulator : .sound,
      requiresIndexes: configuration.requiresIndexes, observer: configuration.accessObserver,
      limiter: configuration.rates.isEmpty ? nil : RateLimiter(configuration.rates))
    files = FilesSetup.make(configuration, directory, registry)
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
    accounts = try Self.openAccounts(configuration, directory)
    accounts.endStreams(of: service)
    let identity = try configuration.accounts.service(
      accounts, publicURL: configuration.publicURL, fetch: configuration.providerFetch)
    issuers = try IssuerFiles(configuration, accounts.trustedIssuers)
    onlineIssuers = try OnlineIssuers(configuration, accounts.trustedIssuers)
    readiness = Readiness(
      directory: directory?.path, project: configuration.project, databases: registry, rules: rulesRegistry)
    let log = configuration.log
    let operations = OperationsService(
      counters: counters, version: Self.version, unready: { [readiness] in readiness.unready() },
      droppedLogLines: { log?.droppedLines ?? 0 }, staleRulesFiles: { [rules] in rules.staleCount },
      hub: hub)
    addresses = ServerAddresses(publicURL: configuration.publicURL)
    hosting = try HostingSetup(configuration)
    gateway = HTTPGateway(
      service, accounts: accounts, identity: identity,
      files: StorageService(
        store: files, rules: fileRules, documents: service, project: configuration.project,
        isCurrentKey: { [accounts] in accounts.serviceKeys.key($0) != nil }),
      usesTLS: configuration.tls != nil, hostName: configuration.host, addresses: addresses, sites: hosting.sites,
      sdk: hosting.sdk, operations: operations)
    // The operator decides which clients reach this address.
    let listener = gateway.operations
    do {
      http = try HTTPServer(configuration: transport, handler: gateway.requests)
      operationsHTTP = try configuration.metricsAddress.map { address throws(TransportError) in
        var transport = TransportConfiguration()
        (transport.host, transport.port) = (address.host, address.port)
        transport.loops = 1
        transport.connectionsMax = 64
        transport.bodyBytesMax = 1 << 10
        return try HTTPServer(configuration: transport, handler: listener)
      }
    } catch { throw Self.error(error) }
    try openConfigured(indexes)
    do throws(FilesError) { try FilesSetup.openStored(files, directory) } catch {
      let reason =
        switch error {
        case .storage(let error): error.description
        case .full: "no space left on the disk, or the limit of --map-size is reached"
        default: "\(error)"
        }
      throw .storage("cannot open the files of the data directory: \(reason)")
    }
  }

  private static func openAccounts(
    _ configuration: HearthConfiguration, _ directory: DataDirectory?
  ) throws(HearthError) -> AccountStore {
    let project = configuration.project ?? "demo"
    let clock = configuration.clock
    do throws(StorageError) {
      let options =
        if let directory {
          LMDBOptions(path: try directory.makeAccountsFile(of: project), mapBytes: configuration.mapBytes)
        } else {
          LMDBOptions.inMemory(mapBytes: configuration.mapBytes)
        }
      return try AccountStore(
        store: try LMDBStore.open(options), project: AccountsProject(project),
        mode: configuration.serverMode, now: { clock.now() },
        audit: { configuration.log(LogEvent($0)) })
    } catch { throw .storage(error.description) }
  }

  /// Opens the stored databases that have an index file, so their indexes are built before the first request.
  private func openConfigured(_ indexes: IndexFiles) throws(HearthError) {
    guard case .directory(let path) = configuration.storage, !configuration.indexes.isEmpty else { return }
    do throws(StorageError) {
      for id in try DataDirectory.databases(in: path) where indexes.configuration(of: id) != nil {
        _ = try registry.database(id)
      }
    } catch { throw .storage(error.description) }
  }

  /// Starts to listen, and returns the URL.
  /// - Throws: ``HearthError/listening(_:)`` if the address or a required port is in use, or the address does not
  ///   belong to this machine;
  ///   ``HearthError/storage(_:)`` if the data directory cannot be written.
  public func start() throws(HearthError) -> String {
    let address: (host: String, port: Int)
    do {
      if let own = try operationsHTTP?.start() {
        let url = Self.url("http", own)
        configuration.log(.info, "operations.listening", "metrics at \(url)/metrics", [("url", .text(url))])
      }
      address = try listen()
    } catch { throw emulatorPorts.failure(error) ?? Self.error(error) }
    if configuration.mode == .emulator {
      emulatorPorts.announce(main: address, http.furtherPorts, in: hub, configuration)
    }
    let url = Self.url(configuration.tls == nil ? "http" : "https", address)
    addresses.listeningURL = url
    do { try directory?.announce(url: url) } catch { throw .storage(error.description) }
    readiness.phase = .serving
    scheduleMaintenance()
    onlineIssuers.reload()
    accounts.prepare()
    if !rules.isEmpty { watchRules() }
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
      server = try HTTPServer(configuration: transport, handler: gateway.requests)
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
    do { try http.reloadCertificate() } catch { throw Self.error(error) }
  }

  /// Reloads the rules, the TLS certificate and its key, the keys of trusted issuers, and the rules of web apps. If a
  /// file is not valid, its previous content stays in force, and the error is logged.
  public func reload() {
    reloadRules()
    issuers.reload()
    onlineIssuers.reload()
    hosting.reload()
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
  public func reloadRules() { rules.reload(all: true) }

  /// Stops the server: completes active requests within ``HearthConfiguration/stopGraceSeconds``, then closes the
  /// databases.
  public func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    readiness.phase = .stopping
    onlineIssuers.stop()
    http.stop(graceSeconds: configuration.stopGraceSeconds)
    // The lock of the data directory is still held, so this is not the socket of the next server.
    adminSocket.withLock { socket in
      socket?.remove()
      socket = nil
    }
    // Last, so operators' tools can see meanwhile that the server is stopping.
    operationsHTTP?.stop(graceSeconds: 1)
    registry.closeAll()
    files.close()
  }

  /// Returns the caller that a bearer token identifies, as requests do.
  /// - Throws: ``Status`` `UNAUTHENTICATED` with the reason if the token is not valid.
  package func caller(bearing token: UnsafeRawBufferPointer) throws(Status) -> Caller {
    try gateway.caller(bearing: token)
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
      registry.maintain()
      issuers.reload()
      do throws(FilesError) { try files.opened?.maintain() } catch {
        configuration.log(.warn, "files.sweep", "could not remove unreferenced files: \(error)")
      }
      do throws(TokenError) { try accounts.maintain() } catch {
        configuration.log(.error, "keys.renewal", "could not rotate the signing keys: \(error.description)")
      }
      scheduleMaintenance()
    }
  }

  /// Checks every second whether a rules file has changed.
  private func watchRules() {
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in
      guard let self, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
      rules.reload()
      watchRules()
    }
  }

  private static func makeRegistry(
    _ configuration: HearthConfiguration, _ directory: DataDirectory?, _ indexes: IndexFiles
  ) -> DatabaseRegistry {
    let mode = configuration.serverMode
    let declared = configuration.project.flatMap { DatabaseID(project: $0) }
    let mapBytes = configuration.mapBytes
    let enterprise = enterpriseNames(configuration)
    return DatabaseRegistry(
      retention: configuration.retention, clock: configuration.clock,
      idleSeconds: directory == nil ? nil : Self.idleSeconds,
      editions: { id in enterprise.contains { names(id.database, $0) } ? .enterprise : .standard },
      indexes: { indexes.configuration(of: $0) },
      indexObserver: configuration.logsProgress
        ? IndexLog { configuration.log(.info, "index.progress", $0) }.observer : nil,
      scratch: ScratchSpace(configuration.scratchBudget, directory: directory?.path),
      blanks: mode.createsWhatRequestsName ? blankDatabases(directory) : nil
    ) { (id) throws(StorageError) in
      guard mode.createsWhatRequestsName || id == declared else { return nil }
      guard let directory else { return try LMDBStore.open(.inMemory(mapBytes: mapBytes)) }
      return try LMDBStore.open(LMDBOptions(path: try directory.makeFile(of: id), mapBytes: mapBytes))
    }
  }

  /// Returns the databases that requests to an emulator name, but that do not exist.
  private static func blankDatabases(_ directory: DataDirectory?) -> BlankDatabases {
    var limit = rlimit()
    let descriptors =
      getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? Int(clamping: limit.rlim_cur) : .max
    let openMax = min(
      BlankDatabases.openDatabasesMax, max(1, descriptors / (2 * BlankDatabases.descriptorsPerDatabase)))
    return BlankDatabases(
      openMax: openMax,
      isStored: { id in directory.map { access(DataDirectory.file(of: id, in: $0.path), F_OK) == 0 } ?? false },
      makeStore: { () throws(StorageError) in try LMDBStore.open(.inMemory(mapBytes: blankMapBytes)) })
  }

  /// The map of a store of blank databases, in bytes. It contains declared indexes only.
  private static let blankMapBytes = 16 << 20

  private static func enterpriseNames(_ configuration: HearthConfiguration) -> [String] {
    configuration.enterpriseDatabases ?? (configuration.mode == .emulator ? ["enterprise*"] : [])
  }

  /// Returns whether a pattern of ``HearthConfiguration/enterpriseDatabases`` matches a database.
  private static func names(_ database: String, _ pattern: String) -> Bool {
    pattern.hasSuffix("*") ? database.hasPrefix(pattern.dropLast()) : database == pattern
  }

  /// The time after which an unused database is closed, in seconds.
  private static let idleSeconds = 600

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
