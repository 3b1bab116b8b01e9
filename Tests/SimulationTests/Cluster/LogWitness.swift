import DatabaseService
@testable import DocumentStore
import DocumentModel
import KeyValue
import LMDBEngine
import LogEngine
import Replication
import SharedLog
import TestSupport

/// Sees the log of a ``SimulatedCluster`` and the answers to its clients, and compares them with a ``Twin``.
///
/// The log is the one history: the witness applies each durable entry to a replica of its own, finds the requests whose
/// commits the entry has, and does the same with the twin. So a request of unknown outcome needs no guess.
final class LogWitness {
  /// A request to commit, as its client made it.
  struct Request {
    var id: RequestID
    var writes: [Write]
    /// The documents that its transaction read, with their update times, or 0 for those that did not exist.
    var reads: [DocumentKey: Int64] = [:]
    /// The result of the query of its transaction.
    var listed: [ResourcePath: Int64]?
  }

  /// The durable entries.
  private(set) var line: [SharedEntry] = []
  private(set) var twin: Twin
  /// The version of the last commit, also of one that changed nothing.
  private(set) var lastVersion: Int64 = 0
  /// The outcomes of the requests that are in the log.
  private(set) var outcomes: [RequestID: CommitOutcome] = [:]
  /// The greatest version of a state that a client knows.
  private(set) var acknowledged: Int64 = 0
  private var awaited: [Request] = []
  private var refused: Set<RequestID> = []
  /// No commit may have a version at or below it, because a reader has seen the state at this version.
  private var promised: Int64 = 0
  private let replica: Replica
  private var service: SimulatedService?

  init() throws {
    twin = Twin(created: 0)
    replica = try Replica(
      ReplicaFiles(existing: []) { (_) throws(StorageError) in try LMDBStore.open(.inMemory(mapBytes: 64 << 20)) },
      secret: SimulatedCluster.secret)
  }

  // MARK: Requests

  /// Notes a request before it is sent.
  func expect(_ request: Request) { awaited.append(request) }

  /// Notes that a client got the outcome of its request.
  func acknowledge(_ id: RequestID, _ outcome: CommitOutcome) throws {
    guard let known = outcomes[id] else { throw Difference("\(outcome) is acknowledged, but not in the log") }
    guard known == outcome else { throw Difference("the client got \(outcome), but the log has \(known)") }
    // A commit that changes nothing has a version of its own, but leaves the state as it was.
    let version = outcome.version.microseconds
    acknowledged = max(acknowledged, twin.versions.last { $0 <= version } ?? 0)
  }

  /// Notes that a request of a client failed for good.
  func refuse(_ id: RequestID) throws {
    guard outcomes[id] == nil else { throw Difference("a request failed, but its commit is in the log") }
    refused.insert(id)
  }

  /// Notes that a reader has seen the state at a version.
  func promise(_ version: Int64) { promised = max(promised, version) }

  /// Whether a request can fail with a code in a state that some node may have had since a version.
  func permits(_ code: Status.Code, of writes: [Write], since version: Int64) -> Bool {
    states(since: version).contains { state in
      do throws(Status.CodeError) {
        _ = try twin.plan(writes, at: state)
        return false
      } catch { return error.code == code }
    }
  }

  /// The versions whose states were the newest at some time since a version was.
  func states(since version: Int64) -> [Int64] {
    let later = twin.versions.reversed().prefix { $0 > version }
    return [version] + later.reversed()
  }

  // MARK: The log

  /// Takes the entries that became durable.
  func note(_ entries: [SharedEntry]) throws {
    for entry in entries where entry.position.sequence > UInt64(line.count) {
      guard entry.position.sequence == UInt64(line.count) + 1 else { throw Difference("a gap in the log") }
      line.append(entry)
      try replica.apply([entry])
      if entry.kind == .batch { try noteBatch() }
    }
  }

  private func noteBatch() throws {
    let service = try self.service ?? open()
    guard let database = try service.databases.database(service.id) else { throw Difference("no database") }
    _ = try database.noteApplied()
    var found: [(request: Request, outcome: CommitOutcome)] = []
    let last = try database.read { reader in
      var commits = RecentCommits()
      for request in awaited {
        let digest = CommitDigest.of(request.writes)
        if let outcome = try commits.outcome(of: request.id, digest: digest, in: reader.snapshot) {
          found.append((request, outcome))
        }
      }
      return try reader.lastVersion()
    }
    awaited.removeAll { request in found.contains { $0.request.id == request.id } }
    for (request, outcome) in found.sorted(by: { $0.outcome.version.microseconds < $1.outcome.version.microseconds }) {
      try apply(request, outcome)
    }
    lastVersion = max(lastVersion, last)
    try compare(service)
  }

  /// Opens the database when the log has named it.
  private func open() throws -> SimulatedService {
    guard let store = replica.followedStore(SimulatedCluster.store) else { throw Difference("no store") }
    let registry = DatabaseRegistry(idleSeconds: nil, adopts: false) { (_) throws(StorageError) in store }
    let opened = try SimulatedService(databases: registry, store: store)
    service = opened
    return opened
  }

  private func apply(_ request: Request, _ outcome: CommitOutcome) throws {
    let version = outcome.version.microseconds
    guard version > lastVersion else { throw Difference("version \(version) after \(lastVersion)") }
    guard version > promised else { throw Difference("version \(version), but \(promised) was promised") }
    guard !refused.contains(request.id) else { throw Difference("a request failed, but its commit is in the log") }
    for (key, update) in request.reads where twin.document(key)?.update ?? 0 != update {
      throw Difference("a transaction commits at \(version), but \(key) changed after it read it")
    }
    if let listed = request.listed, listed != documents(at: .max) {
      throw Difference("a transaction commits at \(version), but the result of its query changed")
    }
    let effects: [Twin.Effect]
    do { effects = try twin.plan(request.writes).effects } catch {
      throw Difference("a commit at \(version) should have failed with \(error.code)")
    }
    let expected = effects.map { effect in
      WriteResult(
        updateTime: effect.updateTime.map { Timestamp(uncheckedMicroseconds: $0 == -1 ? version : $0) },
        transformResults: effect.transformResults)
    }
    guard outcome.results == expected else { throw Difference("results \(outcome.results), expected \(expected)") }
    try twin.commit(request.writes, at: version)
    lastVersion = version
    outcomes[request.id] = outcome
  }

  /// Compares the newest state of the log with that of the twin. A commit of no request, or a second one of the same,
  /// is a difference.
  private func compare(_ service: SimulatedService) throws {
    let found = try service.documents(.latest)
    guard found == documents(at: .max) else { throw Difference("the log has \(found), not \(documents(at: .max))") }
  }

  /// The documents of the collection with their update times, at a version.
  func documents(at version: Int64) -> [ResourcePath: Int64] {
    Dictionary(
      uniqueKeysWithValues: twin.documents(at: version).filter { $0.key.collection == SimulatedCluster.collection }
        .map { ($0.key.path, $0.value.update) })
  }

  /// Compares a replica of a node with this one, byte for byte.
  func compare(_ other: Replica, of node: Int) throws {
    let name = SimulatedCluster.store
    guard let mine = replica.loggedStore(name), let its = other.loggedStore(name) else { return }
    guard try mine.contents() == its.contents() else { throw Difference("the replica of node \(node) differs") }
    let snapshot = try its.snapshot()
    defer { snapshot.end() }
    let problems = try DatabaseCheck.run(snapshot).problems
    guard problems.isEmpty else { throw Difference("the replica of node \(node): \(problems)") }
  }
}

extension KeyValueStore {
  /// All keys and values in order.
  fileprivate func contents() throws -> [[UInt8]] {
    let snapshot = try snapshot()
    defer { snapshot.end() }
    let cursor = try snapshot.makeCursor()
    var all: [[UInt8]] = []
    var isAtEntry = try cursor.seek(atOrAfter: UnsafeRawBufferPointer(start: nil, count: 0))
    while isAtEntry {
      all += [[UInt8](cursor.key), [UInt8](cursor.value)]
      isAtEntry = try cursor.next()
    }
    return all
  }
}

extension SimulatedService {
  /// The documents of the collection of a ``SimulatedCluster``, with their update times.
  func documents(_ consistency: ConsistencySelector) throws -> [ResourcePath: Int64] {
    let rows = try results(of: SimulatedCluster.query, consistency)
    return Dictionary(uniqueKeysWithValues: rows.map { ($0.path, $0.update) })
  }
}
