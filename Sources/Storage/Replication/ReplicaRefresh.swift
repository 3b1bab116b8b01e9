import Glibc
import KeyValue
package import LogEngine
package import SharedLog

/// Brings a replica that no node uses up to the end of the log.
///
/// It does not begin a session, so the nodes of the cluster do not notice it. If the replica is new, or the log does not continue
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
    /// The replica has commits that the log lost. Its data files are moved to a folder of this name.
    case aside(String)
  }

  /// The times that a run waits, in microseconds.
  struct Patience {
    /// The time between two looks at a log that has nothing new.
    var pause: useconds_t = 200_000
    /// The time after which a run gives up if the tables do not answer, or if they still lack entries that they lost.
    var silence = ClusterTiming().healing
  }

  private let tables: any SharedTables
  private let snapshots: any SnapshotTables
  private let folder: ReplicaFolder
  private let replica: Replica
  private let patience: Patience
  private let progress: (Progress) -> Void

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

  /// Applies every entry that was durable when this call began, and returns the position of the last. Call it once, and close the
  /// replica afterwards.
  /// - Throws: ``Failure``. The replica has a part of the log then, and another run continues.
  package func run() throws(Failure) -> LogPosition {
    if replica.isNew { try load(after: nil) }
    for _ in 1..<Self.loadsMax {
      do throws(Failure) { return try follow() } catch {
        guard case .replica(let reason) = error, reason.isMendedByLoading else { throw error }
        try load(after: reason)
      }
    }
    return try follow()
  }

  // MARK: Loading

  private func load(after error: ReplicaError?) throws(Failure) {
    let aside = ReplicaFolder.aside(after: error)
    if let aside { progress(.aside(aside)) }
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

  private func follow() throws(Failure) -> LogPosition {
    var tail = EntryTail(after: replica.applied, mark: replica.lastMark, secret: replica.secret)
    var end = UInt64.max
    var lastProgress = BootTime.now()
    while true {
      guard case .observed(let seen) = tables.perform(.observe(after: tail.applied.sequence)) else {
        guard BootTime.now() - lastProgress < patience.silence else { throw .noAnswer }
        usleep(patience.pause)
        continue
      }
      // An entry that was visible and is lost is not waited for.
      end = min(end, seen.head)
      do throws(EntryTail.Break) { try tail.see(seen) } catch {
        throw .replica(error == .truncated ? .truncated : .diverged)
      }
      if !tail.isAhead {
        // The last entry may be visible before it is durable.
        if let last = seen.entries.last?.position, last.sequence >= end, tables.perform(.settle(last)) == .settled {
          tail.confirm(upTo: last)
        }
        let entries = tail.takeConfirmed()
        do throws(ReplicaError) { try replica.apply(entries) } catch { throw .replica(error) }
        if !entries.isEmpty { progress(.applied(tail.applied.sequence, of: max(end, tail.applied.sequence))) }
        if tail.isWhole, tail.applied.sequence >= end { return tail.applied }
        if !entries.isEmpty {
          lastProgress = BootTime.now()
          continue
        }
      }
      // An owner that lives has appended again by now what the log lost.
      guard BootTime.now() - lastProgress < patience.silence else {
        throw tail.isAhead ? .replica(.diverged) : .noAnswer
      }
      usleep(patience.pause)
    }
  }
}
