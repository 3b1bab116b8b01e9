import DatabaseService
import DocumentModel
import DocumentStore
import Glibc
import KeyValue
import Synchronization

/// The readiness of a server to serve clients.
final class Readiness: Sendable {
  /// The phase in the lifetime of a server.
  enum Phase: Int { case starting, serving, stopping }

  private let current = Atomic(Phase.starting.rawValue)
  private let directory: String?
  /// A database that clients need, and the rules that protect it.
  private struct Needed {
    let database: DatabaseID
    let databases: DatabaseRegistry
    let rules: RulesRegistry
  }

  private let needed = Mutex<Needed?>(nil)
  /// Returns the reason why a node of a cluster is not ready, or `nil`.
  private let nodeCheck = Mutex<(@Sendable () -> String?)?>(nil)
  /// The free space of a disk below which the server is not ready, in bytes, because writes may soon fail.
  private static let roomBytesMin = 64 << 20

  /// Checks the data directory, if there is one.
  init(directory: String?) { self.directory = directory }

  /// Also checks the `(default)` database of a project, if one is declared.
  func check(_ databases: DatabaseRegistry, _ rules: RulesRegistry, project: String?) {
    guard let database = project.flatMap({ DatabaseID(project: $0) }) else { return }
    needed.withLock { $0 = Needed(database: database, databases: databases, rules: rules) }
  }

  /// Also checks a node of a cluster with a function that returns why it is not ready, or `nil`.
  func check(node: @escaping @Sendable () -> String?) { nodeCheck.withLock { $0 = node } }

  var phase: Phase {
    get { Phase(rawValue: current.load(ordering: .sequentiallyConsistent)) ?? .starting }
    set { current.store(newValue.rawValue, ordering: .sequentiallyConsistent) }
  }

  /// Returns the reasons why the server is not ready: `starting`, `stopping`, `data` (the directory is not
  /// writable), `room` (its disk is full), `database` (the declared database cannot be read), `writes` (it cannot
  /// write to its disk), `rules` (the rules in force do not compile), `cluster` (no owner of the cluster
  /// is known). Cost: a few system calls, and opening the database if it is closed.
  func unready() -> [String] {
    var names: [String] = []
    switch phase {
    case .starting: names.append("starting")
    case .serving: break
    // The databases may already be closed.
    case .stopping: return ["stopping"]
    }
    if let directory {
      if access(directory, R_OK | W_OK | X_OK) != 0 { names.append("data") }
      var space = statvfs()
      if statvfs(directory, &space) == 0,
        Int(clamping: space.f_bavail) * Int(clamping: space.f_frsize) < Self.roomBytesMin
      {
        names.append("room")
      }
    }
    if let name = nodeCheck.withLock({ $0 })?() { names.append(name) }
    if let needed = needed.withLock({ $0 }) {
      let database = try? needed.databases.database(needed.database)
      if (try? database?.read { _ in }) == nil { names.append("database") }
      if database?.store.writeFailure != nil { names.append("writes") }
      if case .broken = needed.rules.active(for: needed.database) { names.append("rules") }
    }
    return names
  }
}
