import Accounts
import Basics
import ConsoleAPI
import DatabaseService
import DocumentModel
import DocumentStore
import Files
import FileService
import Gateway
import GatewayCore
import Glibc
import IdentityService
import KeyValue
import LMDBEngine
import OperationsAPI
import RulesEngine
import Transport

/// Everything that serves one project: its databases, rules, indexes, accounts, keys and files, and the APIs that
/// use them. A server has one stack for each project.
///
/// A stack serves no other project: its registry opens only the databases of its project, and its accounts accept
/// only tokens of its project. The choice of a stack for a request is therefore not a security decision.
final class ProjectStack: Sendable {
  let configuration: HearthConfiguration
  let service: FirestoreService
  let accounts: AccountStore
  /// The open databases. The registry authorizes no caller.
  let registry: DatabaseRegistry
  let rulesRegistry = RulesRegistry()
  let files: LazyFileStore
  /// The quotas of the project, and what they count.
  let quotas: ProjectQuotas
  let gateway: HTTPGateway
  /// The secret with which the console of an emulator writes the files of rules, or `nil` if it cannot.
  let consoleKey: String?
  /// The recording of decisions for operators, or `nil` without a console for them.
  let recording: DecisionRecording?
  private let directory: DataDirectory?
  private let indexes: IndexFiles
  private let rules: RulesFiles
  private let issuers: IssuerFiles
  private let onlineIssuers: OnlineIssuers
  private let hosting: HostingSetup

  /// Reads the files of a project and prepares its APIs. Databases and files are opened when they are first used, the
  /// accounts at once. `stores` is `nil` for those of the data directory or of memory. `cluster` returns the nodes as JSON
  /// for the console, if this is the project of a cluster at its owner.
  /// - Throws: ``HearthError`` if the configuration, a file or the data directory cannot be used.
  init(
    _ configuration: HearthConfiguration, _ directory: DataDirectory?, stores: ProjectStores? = nil,
    _ operations: OperationsService, _ addresses: ServerAddresses, _ places: PlaceThrottles,
    cluster: (@Sendable () -> [UInt8])? = nil
  ) throws(HearthError) {
    let stores = stores ?? .local(configuration, directory)
    self.configuration = configuration
    self.directory = directory
    indexes = try IndexFiles(configuration.indexes)
    let fileRules = FileRules()
    rules = try RulesFiles(configuration, rulesRegistry, fileRules)
    quotas = ProjectQuotas(
      of: configuration.project ?? "demo", configuration.quotas, now: RateLimiter.monotonic)
    registry = Self.makeRegistry(configuration, directory, stores, indexes, quotas)
    let observer: ConsoleObserver? =
      configuration.mode == .emulator && configuration.hasConsole
      ? ConsoleObserver(next: configuration.accessObserver) : nil
    // Operators of a cluster use its project at the owner, from the address of any node.
    let hasOperators =
      configuration.cluster == nil
      ? configuration.consoleAddress != nil
      : cluster != nil && configuration.mode == .production
    let recorder = hasOperators ? RecordingObserver { [clock = configuration.clock] in clock.now() } : nil
    recording = recorder?.recording
    let observed: (any AccessObserver)? = observer ?? configuration.accessObserver
    service = FirestoreService(
      databases: registry, mode: configuration.serverMode, rules: rulesRegistry,
      proofMode: configuration.isEmulatorCompatible ? .emulator : .sound,
      requiresIndexes: configuration.requiresIndexes, observer: observed ?? recorder,
      observation: observed == nil ? recorder?.recording.observation : nil,
      limiter: configuration.rates.isEmpty ? nil : RateLimiter(configuration.rates), quotas: quotas)
    files = FilesSetup.make(configuration, directory, stores, registry, quotas)
    accounts = try Self.openAccounts(configuration, stores, quotas, places)
    accounts.endStreams(of: service)
    let identity = try configuration.accounts.service(
      accounts, publicURL: configuration.publicURL, fetch: configuration.providerFetch)
    issuers = try IssuerFiles(configuration, accounts.trustedIssuers)
    onlineIssuers = try OnlineIssuers(configuration, accounts.trustedIssuers)
    hosting = try HostingSetup(configuration)
    let console = try Self.consoleFacts(configuration, accounts, rulesRegistry, recording, cluster)
    // A remote emulator's address can be read on its way, so its console writes no files.
    let writesRules = observer != nil && !configuration.allowsRemoteEmulator
    let rulesFile = writesRules ? rules.consoleAccess(key: RandomBytes.hexadecimal(16)) : nil
    consoleKey = rulesFile?.key
    gateway = HTTPGateway(
      service, accounts: accounts, identity: identity,
      files: StorageService(
        store: files, rules: fileRules, documents: service, project: configuration.project,
        isCurrentKey: { [accounts] in accounts.serviceKeys.key($0) != nil }),
      usesTLS: configuration.tls != nil, hostName: configuration.host,
      addresses: addresses.addresses(publicURL: configuration.publicURL), sites: hosting.sites,
      sdk: hosting.sdk, decisionLog: observer?.log, rulesFile: rulesFile, console: console, operations: operations,
      project: configuration.isOneOfSeveral ? configuration.project : nil, node: stores.node)
  }

  /// Checks the files that a configuration names, without opening anything of the data directory.
  /// - Throws: ``HearthError`` for the first file that is not valid.
  static func check(_ configuration: HearthConfiguration) throws(HearthError) {
    _ = try IndexFiles(configuration.indexes)
    _ = try RulesFiles(configuration, RulesRegistry(), FileRules())
    _ = try IssuerFiles(configuration, TrustedIssuers(revocations: TokenRevocations()))
    try configuration.accounts.check(fetch: configuration.providerFetch)
    _ = try HostingSetup(configuration)
  }

  // MARK: Lifetime

  /// Opens what a server must open before its first request: databases that may have to build indexes, and files that
  /// a crash may have left behind.
  /// - Throws: ``HearthError/storage(_:)`` if that fails.
  func prepare() throws(HearthError) {
    try openConfigured()
    try openCounted()
    do throws(FilesError) { try FilesSetup.openStored(files, directory, configuration) } catch {
      let reason =
        switch error {
        case .storage(let error): error.description
        case .full: "no space left on the disk, or the limit of --map-size is reached"
        default: "\(error)"
        }
      throw .storage("cannot open the files of the data directory: \(reason)")
    }
  }

  /// Starts the work in the background. `isEager` also creates the key that signs tokens, so that no sign-in waits
  /// for it.
  func start(isEager: Bool = true) {
    onlineIssuers.reload()
    if isEager { accounts.prepare() }
  }

  /// Ends the streams and the work in the background. Requests under way continue.
  func retire() {
    onlineIssuers.stop()
    service.endStreams()
  }

  /// Ends the work in the background.
  func stopFetching() { onlineIssuers.stop() }

  /// Closes the databases and the files.
  func close() {
    registry.closeAll()
    files.close()
  }

  /// Does the regular work. Call it about twice a minute.
  func maintain() {
    registry.maintain()
    issuers.reload()
    do throws(FilesError) { try files.opened?.maintain() } catch {
      configuration.log(.warn, "files.sweep", "could not remove unreferenced files: \(error)")
    }
    do throws(TokenError) { try accounts.maintain() } catch {
      configuration.log(.error, "keys.renewal", "could not rotate the signing keys: \(error.description)")
    }
  }

  // MARK: Rules

  /// Whether there are no rules files to watch.
  var hasNoRules: Bool { rules.isEmpty }

  /// The number of rules files whose current content is not in force.
  var staleRulesFiles: Int { rules.staleCount }

  /// Reads the rules files that changed, or all if `all` is set.
  func reloadRules(all: Bool = false) { rules.reload(all: all) }

  /// Reads the keys of trusted issuers and the rules of web apps again.
  func reloadIssuersAndApps() {
    issuers.reload()
    onlineIssuers.reload()
    hosting.reload()
  }

  /// Reads the keys of trusted issuers that changed.
  func reloadIssuers() { issuers.reload() }

  // MARK: Opening

  private static func openAccounts(
    _ configuration: HearthConfiguration, _ stores: ProjectStores, _ quotas: ProjectQuotas, _ places: PlaceThrottles
  ) throws(HearthError) -> AccountStore {
    let project = configuration.project ?? "demo"
    let clock = configuration.clock
    do throws(StorageError) {
      return try AccountStore(
        store: try stores.accounts(), project: AccountsProject(project),
        mode: configuration.serverMode, now: { clock.now() },
        audit: { configuration.log(LogEvent($0)) }, quota: quotas.accounts, places: places)
    } catch { throw .storage(error.description) }
  }

  /// Returns what the console of a production server shows, or `nil` if the server has none. Operators of one project
  /// among several do not see the facts of the server, which concern the other projects too.
  private static func consoleFacts(
    _ configuration: HearthConfiguration, _ accounts: AccountStore, _ rules: RulesRegistry,
    _ recording: DecisionRecording?, _ cluster: (@Sendable () -> [UInt8])?
  ) throws(HearthError) -> ConsoleFacts? {
    guard let recording else { return nil }
    let sessions: OperatorSessions
    do throws(AccountError) { sessions = try OperatorSessions(accounts) } catch {
      throw .configuration("the console cannot start: there is not enough memory for password checks")
    }
    var backups: BackupActions?
    if let list = configuration.listBackups, let create = configuration.createBackup {
      backups = BackupActions(list: list, create: create)
    }
    return ConsoleFacts(
      sessions: sessions, rules: rules, hasOtherProjects: configuration.isOneOfSeveral,
      configuration: configuration.shownConfiguration, backups: backups, recording: recording, cluster: cluster)
  }

  /// Opens the stored databases that have an index file, so their indexes are built before the first request.
  private func openConfigured() throws(HearthError) {
    guard case .directory(let path) = configuration.storage, !configuration.indexes.isEmpty else { return }
    do throws(StorageError) {
      for id in try DataDirectory.databases(in: path) where indexes.configuration(of: id) != nil {
        _ = try registry.database(id)
      }
    } catch { throw .storage(error.description) }
  }

  /// Opens the stored databases of the project if their documents have a quota, because each commit must know the bytes
  /// of all. A database stays counted after it is closed. An emulator serves databases that nobody declared.
  private func openCounted() throws(HearthError) {
    guard case .directory(let path) = configuration.storage, quotas.documents.limit != nil else { return }
    let declared = configuration.mode == .production ? configuration.declaredDatabases : nil
    do throws(StorageError) {
      for id in try DataDirectory.databases(in: path) where declared?.contains(id) ?? true {
        _ = try registry.database(id)
      }
    } catch { throw .storage(error.description) }
  }

  /// Changes the quotas. Data beyond them stays.
  /// - Throws: ``HearthError/storage(_:)`` if a database cannot be opened. The quotas are in force nevertheless.
  func apply(_ limits: QuotaLimits) throws(HearthError) {
    quotas.apply(limits)
    try openCounted()
  }

  private static func makeRegistry(
    _ configuration: HearthConfiguration, _ directory: DataDirectory?, _ stores: ProjectStores, _ indexes: IndexFiles,
    _ quotas: ProjectQuotas
  ) -> DatabaseRegistry {
    let mode = configuration.serverMode
    let declared = configuration.declaredDatabases
    let enterprise = enterpriseNames(configuration).map(DatabasePattern.init)
    return DatabaseRegistry(
      retention: configuration.retention, clock: configuration.clock,
      idleSeconds: directory == nil ? nil : Self.idleSeconds,
      editions: { id in enterprise.contains { $0.matches(id.database) } ? .enterprise : .standard },
      indexes: { indexes.configuration(of: $0) },
      indexObserver: configuration.logsProgress
        ? IndexLog { configuration.log(.info, "index.progress", $0) }.observer : nil,
      scratch: ScratchSpace(configuration.scratchBudget, directory: directory?.path),
      blanks: mode.createsWhatRequestsName ? blankDatabases(directory) : nil, quota: quotas.documents,
      commitMemory: configuration.commitMemory, adopts: stores.freshness == nil, freshness: stores.freshness,
      floor: stores.floor
    ) { (id) throws(StorageError) in
      guard mode.createsWhatRequestsName || declared.contains(id) else { return nil }
      return try stores.database(id)
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

  /// The time after which an unused database is closed, in seconds.
  private static let idleSeconds = 600
}
