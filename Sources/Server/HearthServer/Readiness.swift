import DatabaseService
import DocumentModel
import DocumentStore
import Glibc
import Synchronization

/// Whether clients may be sent to a server.
final class Readiness: Sendable {
  /// Where a server is in its life.
  enum Phase: Int { case starting, serving, stopping }

  private let current = Atomic(Phase.starting.rawValue)
  private let directory: String?
  private let database: DatabaseID?
  private let service: FirestoreService
  /// A disk with less room left than this, in bytes, will refuse writes soon.
  private static let roomBytesMin = 64 << 20

  /// Watches over a data directory, where there is one, and the database of a project, where one is declared.
  init(directory: String?, project: String?, service: FirestoreService) {
    self.directory = directory
    database = project.flatMap { DatabaseID(project: $0) }
    self.service = service
  }

  /// Where the server is in its life.
  var phase: Phase {
    get { Phase(rawValue: current.load(ordering: .sequentiallyConsistent)) ?? .starting }
    set { current.store(newValue.rawValue, ordering: .sequentiallyConsistent) }
  }

  /// Says what is not ready: `starting`, `stopping`, `data` (the directory cannot be written to), `room` (its disk is
  /// full), `database` (the declared one cannot be read), `rules` (those in force do not compile). Cost: a few system
  /// calls, and the opening of the database where it is closed.
  func unready() -> [String] {
    var names: [String] = []
    switch phase {
    case .starting: names.append("starting")
    case .serving: break
    // The databases may be closed already.
    case .stopping: return ["stopping"]
    }
    if let directory {
      if access(directory, R_OK | W_OK | X_OK) != 0 { names.append("data") }
      var space = statvfs()
      if statvfs(directory, &space) == 0, Int(clamping: space.f_bavail) * Int(clamping: space.f_frsize) < Self.roomBytesMin {
        names.append("room")
      }
    }
    if let database {
      if (try? service.database(database).read { _ in }) == nil { names.append("database") }
      if case .broken = service.rules.inForce(for: database) { names.append("rules") }
    }
    return names
  }
}
