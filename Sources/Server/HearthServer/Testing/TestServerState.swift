import Accounts
import DatabaseService
import DocumentModel
import DocumentStore
import Files
import FileService
import Gateway
import GatewayCore
import IdentityService
import KeyValue
import LMDBEngine
import OperationsAPI
import Synchronization
import Transport

/// The state of a test server from its start or a reset until the next reset: everything that handles requests.
final class TestServerState: Sendable {
  let rules: RulesRegistry
  let fileRules: FileRules
  let time: TestTime
  let stores: TestStores
  let accountsStore: LMDBStore
  let identity: AccountsService
  let local: LocalServer
  let storage: StorageService
  private let files: TestServerFiles
  private let fileStore: LazyFileStore
  private let origin: TestOrigin
  private let accountsTransaction: Int

  /// A server without sockets has no transport metrics to count.
  private static let counters = TransportCounters(loops: 1)

  /// Creates a state with the content of an origin.
  init(_ origin: TestOrigin) throws(HearthError) {
    let settings = origin.settings
    self.origin = origin
    let time = TestTime(offsetMicroseconds: origin.offsetMicroseconds)
    self.time = time
    rules = RulesRegistry(copying: origin.rules)
    fileRules = FileRules(copying: origin.fileRules)
    do throws(StorageError) {
      stores = try TestStores(origin)
      accountsStore =
        if let accounts = origin.accounts { try TestOrigin.copy(accounts, settings) } else {
          try LMDBStore.open(TestOrigin.options(settings))
        }
    } catch { throw .storage(error.description) }
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.mode = .emulator
    configuration.project = settings.project
    configuration.mapBytes = settings.mapBytes
    configuration.clock = time.clock
    let registry = DatabaseRegistry(clock: time.clock, idleSeconds: nil) { [stores] (id) throws(StorageError) in
      try stores.open(id)
    }
    let service = FirestoreService(
      databases: registry, mode: .emulator, rules: rules, requiresIndexes: settings.requiresIndexes)
    files = TestServerFiles(origin, configuration, registry)
    fileStore = files.makeStore()
    let accounts: AccountStore
    do throws(StorageError) {
      for id in origin.databases.keys { _ = try registry.database(id) }
      accounts = try AccountStore(
        store: accountsStore, project: AccountsProject(settings.project), mode: .emulator, now: { time.clock.now() })
    } catch { throw .storage(error.description) }
    accounts.endStreams(of: service)
    identity = try configuration.accounts.service(accounts, publicURL: nil, fetch: nil)
    storage = StorageService(
      store: fileStore, rules: fileRules, documents: service, project: settings.project,
      isCurrentKey: { accounts.serviceKeys.key($0) != nil })
    let gateway = HTTPGateway(
      service, accounts: accounts, identity: identity,
      files: storage,
      operations: OperationsService(counters: Self.counters, version: Server.version, unready: { [] }))
    var limits = TransportConfiguration()
    limits.targetBytesMax = 48 << 10
    limits.bodyBytesMax = HTTPGateway.bodyBytesMax
    limits.errorBody = { status, message in ErrorJSON.body(httpStatus: status, message: message) }
    do throws(TransportError) { local = try LocalServer(handler: gateway.requests, limits: limits) } catch {
      throw .listening(error.description)
    }
    stores.noteBeginning()
    accountsTransaction = accountsStore.lastTransaction
  }

  /// Whether nothing was written since the state was created.
  var isUnchanged: Bool {
    stores.isUnchanged && files.isUnchanged && accountsStore.lastTransaction == accountsTransaction
      && time.offsetMicroseconds == origin.offsetMicroseconds
  }

  /// Returns the files that a fork begins with.
  func originFiles() throws(HearthError) -> OriginFiles? {
    do throws(FilesError) { return try files.makeOriginFiles(fileStore) } catch {
      throw .storage("the files cannot be copied: \(error)")
    }
  }

  /// Ends the use of this state: closes streams. Active requests still get a response.
  func end() { local.close() }
}

/// The database stores of a state.
final class TestStores: Sendable {
  private struct State {
    var stores: [DatabaseID: LMDBStore] = [:]
    var beginning: [DatabaseID: Int] = [:]
  }

  private let state = Mutex(State())
  private let settings: TestOrigin.Settings

  /// Copies the databases of an origin, and assigns each copy a new incarnation.
  init(_ origin: TestOrigin) throws(StorageError) {
    settings = origin.settings
    for (id, store) in origin.databases {
      let copy = try TestOrigin.copy(store, settings)
      try DocumentDatabase.renewIncarnation(copy)
      state.withLock { $0.stores[id] = copy }
    }
  }

  var all: [DatabaseID: LMDBStore] { state.withLock { $0.stores } }

  /// Returns the store of a database, creating an empty one if it does not exist.
  func open(_ id: DatabaseID) throws(StorageError) -> LMDBStore {
    if let store = state.withLock({ $0.stores[id] }) { return store }
    let store = try LMDBStore.open(TestOrigin.options(settings))
    state.withLock { $0.stores[id] = store }
    return store
  }

  /// Records the current content as the initial content.
  func noteBeginning() { state.withLock { $0.beginning = $0.stores.mapValues(\.lastTransaction) } }

  var isUnchanged: Bool { state.withLock { $0.stores.mapValues(\.lastTransaction) == $0.beginning } }
}
