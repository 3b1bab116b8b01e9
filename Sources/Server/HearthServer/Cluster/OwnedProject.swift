import Accounts
import Dispatch
import Gateway
import GatewayCore
import Glibc
import OperationsAPI
import Synchronization
import Transport

/// The project of a cluster while this node owns it: opens its stack on the replicas when the node becomes the owner, and
/// closes it when another node is.
///
/// A stack that lost the ownership is harmless: its stores refuse reads and writes. It is closed when no request retains
/// it, and before the next one is opened, because both use the same local files.
final class OwnedProject: Sendable {
  private struct State {
    var stack: ProjectStack?
    /// A stack that gets no new requests, and the time at which its requests are ended.
    var retired: (stack: ProjectStack, end: DispatchTime)?
    var isStopped = false
  }

  private let projects: ServedProjects
  private let directory: DataDirectory
  private let operations: OperationsService
  private let addresses: ServerAddresses
  private let places: PlaceThrottles
  private let cancel: @Sendable (ObjectIdentifier) -> Void
  private let state = Mutex(State())

  /// Creates a project without a stack. `cancel` ends the requests that a ``StackRequests`` with this stack has.
  init(
    _ projects: ServedProjects, _ directory: DataDirectory, _ operations: OperationsService,
    _ addresses: ServerAddresses, _ places: PlaceThrottles, cancel: @escaping @Sendable (ObjectIdentifier) -> Void
  ) {
    self.projects = projects
    self.directory = directory
    self.operations = operations
    self.addresses = addresses
    self.places = places
    self.cancel = cancel
  }

  /// The stack that serves requests, or `nil` if this node is not the owner.
  var stack: ProjectStack? { state.withLock { $0.stack } }

  /// Opens the project on the stores of an epoch, after the former stack is closed. Call it from one thread at a time.
  /// Returns the handler of its requests. `nodes` returns the nodes of the cluster as JSON, for the console.
  ///
  /// Cost: as a start of a server with these files, tens of milliseconds.
  /// - Throws: ``HearthError`` if the configuration or a store cannot be used.
  func open(
    _ configuration: HearthConfiguration, _ stores: ProjectStores, nodes: @escaping @Sendable () -> [UInt8]
  ) throws(HearthError) -> StackRequests {
    retire()
    while !closeRetired() { usleep(Self.pauseMicroseconds) }
    let stack = try ProjectStack(
      configuration, directory, stores: stores, operations, addresses, places, cluster: nodes)
    do throws(HearthError) { try stack.prepare() } catch {
      stack.close()
      throw error
    }
    state.withLock { $0.stack = stack }
    projects.setOwn(stack)
    stack.start()
    return StackRequests(stack)
  }

  /// Takes the project from service. Its streams end, and requests that take longer than a second.
  func retire() {
    let stack = state.withLock { state -> ProjectStack? in
      guard let stack = state.stack else { return nil }
      state.stack = nil
      state.retired = (stack, .now() + .seconds(1))
      return stack
    }
    projects.setOwn(nil)
    stack?.retire()
  }

  /// Takes the project from service, and waits until its requests have ended, for a limited time.
  func retire(waitingAtMost milliseconds: Int) {
    retire()
    let deadline = DispatchTime.now() + .milliseconds(milliseconds)
    while !isUnused, DispatchTime.now() < deadline { usleep(1_000) }
  }

  /// Whether no request uses a retired stack.
  private var isUnused: Bool {
    state.withLock { state in state.retired == nil || isKnownUniquelyReferenced(&state.retired!.stack) }
  }

  /// Closes the retired stack if no request uses it. Returns whether none is left.
  @discardableResult func closeRetired() -> Bool {
    var unused: ProjectStack?
    var overdue: ObjectIdentifier?
    let isClosed = state.withLock { state -> Bool in
      guard state.retired != nil else { return true }
      if isKnownUniquelyReferenced(&state.retired!.stack) {
        unused = state.retired?.stack
        state.retired = nil
        return true
      }
      if let retired = state.retired, retired.end <= .now() { overdue = ObjectIdentifier(retired.stack) }
      return false
    }
    unused?.close()
    if let overdue { cancel(overdue) }
    return isClosed
  }

  /// Closes everything. No request may use the project any more.
  func close() {
    let stacks = state.withLock { state in
      defer { (state.stack, state.retired) = (nil, nil) }
      return [state.stack, state.retired?.stack]
    }
    projects.setOwn(nil)
    for stack in stacks { stack?.close() }
  }

  private static let pauseMicroseconds: useconds_t = 5_000
}
