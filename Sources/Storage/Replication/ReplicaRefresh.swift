import Glibc
import KeyValue
package import LogEngine
package import SharedLog

/// Brings a replica that no node uses up to the end of the log.
///
/// It only reads the tables, so the nodes of the cluster do not notice it. If the replica is new, or the log does not continue
/// it any more, it loads the newest snapshot first, as a node does.
///
/// Memory: a page of the log, or some parts of a snapshot.
package final class ReplicaRefresh {
  /// The reason why a replica cannot be brought up to the end of the log.
  package enum Failure: Error, Equatable, Sendable {
    /// The tables did not answer for some seconds.
    case noAnswer
    case replica(ReplicaError)
    /// No snapshot can be loaded.
    case snapshot(String)
  }

  /// How far the work is.
  package enum Progress: Sendable {
    /// So many bytes of a snapshot are loaded.
    case loading(bytes: Int64, of: Int64)
    /// The replica has the log up to an entry.
    case applied(UInt64, of: UInt64)
  }

  /// The state of the replica afterwards.
  package struct Outcome: Equatable, Sendable {
    /// The position in the log up to which the replica has every commit.
    package var position = LogPosition()
    /// The folder of the data files that had commits which the log lost.
    package var aside: String?
  }

  /// The times in microseconds: between two looks at a log that has nothing new, until tables without an answer are given up, and
  /// until an owner has appended again what the log lost.
  struct Patience {
    var pause: useconds_t = 200_000
    var silence: Int64 = 5_000_000
    var healing = ClusterTiming().healing
  }

  private let tables: any SharedTables
  private let snapshots: any SnapshotTables
  private let folder: ReplicaFolder
  private let replica: Replica
  private let patience: Patience
  private let progress: (Progress) -> Void
  private var outcome = Outcome()

  /// How often a snapshot is loaded at most. Between two loads, the log was truncated.
  private static let loadsMax = 3

  init(
    _ replica: Replica, _ tables: any SharedTables, _ snapshots: any SnapshotTables, _ folder: ReplicaFolder,
    _ patience: Patience, progress: @escaping (Progress) -> Void
  ) {
    (self.replica, self.tables, self.snapshots, self.folder) = (replica, tables, snapshots, folder)
    (self.patience, self.progress) = (patience, progress)
  }

  /// Prepares the work for a replica whose data files are in a folder.
  package convenience init(
    _ replica: Replica, _ tables: any SharedTables, _ snapshots: any SnapshotTables, _ folder: ReplicaFolder,
    progress: @escaping (Progress) -> Void
  ) {
    self.init(replica, tables, snapshots, folder, Patience(), progress: progress)
  }

  /// Applies every entry that was durable when this call began. Call it once, and close the replica afterwards.
  /// - Throws: ``Failure``. The replica has a part of the log then, and another run continues.
  package func run() throws(Failure) -> Outcome {
    if replica.isNew { try load(after: nil) }
    for _ in 1..<Self.loadsMax {
      do throws(Failure) { return try follow() } catch {
        switch error {
        case .replica(.truncated), .replica(.diverged), .replica(.missingStore): break
        default: throw error
        }
        guard case .replica(let reason) = error else { throw error }
        try load(after: reason)
      }
    }
    return try follow()
  }

  // MARK: Loading

  private func load(after error: ReplicaError?) throws(Failure) {
    let aside = ReplicaFolder.aside(after: error)
    outcome.aside = aside ?? outcome.aside
    replica.detach(flushes: aside != nil)
    let loader = SnapshotLoader(
      snapshots, folder, secret: replica.secret, sealed: replica.sealed, isCancelled: { false },
      progress: { [progress] in progress(.loading(bytes: $0, of: $1)) })
    do throws(SnapshotLoadingError) { try loader.load(after: error, aside: aside) } catch {
      throw .snapshot(error.text)
    }
    let stores: [StoreName]
    do throws(StorageError) { stores = try folder.existing() } catch { throw .replica(.storage(error)) }
    do throws(ReplicaError) { try replica.attach(stores) } catch { throw .replica(error) }
  }

  // MARK: The log

  private func follow() throws(Failure) -> Outcome {
    var tail = EntryTail(after: replica.applied, mark: replica.lastMark, secret: replica.secret)
    var end = UInt64.max
    // The time without a new entry.
    var idle: Int64 = 0
    while true {
      let seen = try observe(after: tail.applied.sequence)
      // An entry that was visible and is lost is not waited for.
      end = min(end, seen.head)
      do throws(EntryTail.Break) { try tail.see(seen) } catch {
        throw .replica(error == .truncated ? .truncated : .diverged)
      }
      if !tail.isAhead {
        // The last entry may be visible before it is durable.
        if let last = seen.entries.last?.position, last.sequence >= end, ask(.settle(last)) == .settled {
          tail.confirm(upTo: last)
        }
        let entries = tail.takeConfirmed()
        do throws(ReplicaError) { try replica.apply(entries) } catch { throw .replica(error) }
        if !entries.isEmpty { progress(.applied(tail.applied.sequence, of: max(end, tail.applied.sequence))) }
        if tail.isWhole, tail.applied.sequence >= end {
          outcome.position = tail.applied
          return outcome
        }
        if !entries.isEmpty {
          idle = 0
          continue
        }
      }
      guard idle < patience.healing else { throw tail.isAhead ? .replica(.diverged) : .noAnswer }
      usleep(patience.pause)
      idle += Int64(patience.pause)
    }
  }

  private func observe(after sequence: UInt64) throws(Failure) -> StoreObservation {
    if case .observed(let observation) = ask(.observe(after: sequence)) { return observation }
    throw .noAnswer
  }

  private func ask(_ request: TableRequest) -> TableReply? {
    var waited: Int64 = 0
    while true {
      if let reply = tables.perform(request) { return reply }
      guard waited < patience.silence else { return nil }
      usleep(patience.pause)
      waited += Int64(patience.pause)
    }
  }
}
