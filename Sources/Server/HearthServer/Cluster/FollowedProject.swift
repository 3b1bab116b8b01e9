import Accounts
import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import KeyValue
import OperationsAPI
import Replication
import Synchronization

/// The project while another node owns the cluster: opens a stack on the replica, which can only be read.
///
/// The stack gets only requests that read documents, after the replica has what the owner had acknowledged
/// (``FreshReads``).
final class FollowedProject: Sendable {
  private let directory: DataDirectory
  private let operations: OperationsService
  private let addresses: ServerAddresses
  private let places: PlaceThrottles
  private let current = Mutex<StackRequests?>(nil)
  /// Held while something is read again, so that an older state never replaces a newer one.
  private let noting = Mutex(())
  /// Does not wait for PostgreSQL.
  private let queue = DispatchQueue(label: "hearth.cluster.followed")
  /// Whether accounts changed since the callers of streams were checked.
  private let isCheckDue = Atomic(false)

  init(
    _ directory: DataDirectory, _ operations: OperationsService, _ addresses: ServerAddresses, _ places: PlaceThrottles
  ) {
    self.directory = directory
    self.operations = operations
    self.addresses = addresses
    self.places = places
    queue.async { [weak self] in self?.maintain() }
  }

  /// The handler of requests that the replica can serve, if there is a stack.
  var requests: StackRequests? { current.withLock { $0 } }

  /// The stack that is served, if there is one.
  var stack: ProjectStack? { requests?.stack }

  /// Opens a stack in place of the former one. Returns `false` if the log has no accounts yet, which the first owner
  /// creates.
  /// - Throws: ``HearthError`` if the configuration or a store cannot be used.
  func open(_ configuration: HearthConfiguration, _ stores: ProjectStores) throws(HearthError) -> Bool {
    retire()
    guard stores.hasAccounts() else { return false }
    let stack = try ProjectStack(configuration, directory, stores: stores, operations, addresses, places)
    current.withLock { $0 = StackRequests(stack) }
    // The log may have changed them while they were read.
    _ = noteApplied([.accounts])
    stack.start(isEager: false)
    return true
  }

  /// Takes the stack from service. Its streams end; requests under way retain it.
  func retire() {
    let requests = current.withLock { requests in
      defer { requests = nil }
      return requests
    }
    requests?.stack.retire()
  }

  /// Does the regular work of a stack that writes nothing, once a second: so often the callers of open streams are checked
  /// at most, however many accounts change.
  private func maintain() {
    queue.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.maintain() }
    guard let stack else { return }
    if isCheckDue.exchange(false, ordering: .sequentiallyConsistent) { stack.service.recheckStreams(of: nil) }
    stack.reloadIssuers()
  }

  /// Notes that entries of the owner changed stores: notifies listeners, and forgets what was remembered of them. Call it
  /// before anybody learns that the entries are applied. Returns `false` if the stack is to be opened again, because the
  /// owner renewed the incarnation of a database.
  func noteApplied(_ stores: Set<StoreName>) -> Bool {
    guard let stack else { return true }
    return noting.withLock { _ in note(stores, in: stack) }
  }

  private func note(_ stores: Set<StoreName>, in stack: ProjectStack) -> Bool {
    var isOfOneLine = true
    for database in stack.registry.openDatabases {
      guard let name = StoreName(database: database.id.database), stores.contains(name) else { continue }
      do throws(StorageError) {
        if try !database.noteApplied() { isOfOneLine = false }
      } catch { report(error, stack) }
    }
    guard stores.contains(.accounts) else { return isOfOneLine }
    isCheckDue.store(true, ordering: .sequentiallyConsistent)
    do throws(StorageError) { try stack.accounts.reload() } catch { report(error, stack) }
    return isOfOneLine
  }

  private func report(_ error: StorageError, _ stack: ProjectStack) {
    stack.configuration.log(.error, "cluster.replica", "the replica cannot be read: \(error.description)")
  }
}
