package import ContentSharing
package import Files
import Glibc
import KeyValue
import LMDBEngine
import LogEngine
package import PostgresEngine
package import Replication
import SharedLog

/// A data directory that is a copy of a cluster: it has the data of one moment, and a server alone can serve it. While this
/// object lives, no other process can use the directory.
///
/// The copy is a replica without a node. Each run continues the log where the last one ended, so it reads only what is new. From
/// ``refresh(progress:)`` to ``finish()``, other commands refuse the directory, also after an interruption.
package final class ClusterCopy {
  /// The path of the directory.
  package let path: String
  private let directory: DataDirectory
  private let identity: ClusterIdentity
  private let url: String
  private let key: ClusterKey
  private let mapBytes: Int
  private var file: CopyFile

  private var replica: ReplicaDirectory {
    ReplicaDirectory(directory: directory, project: identity.project, mapBytes: mapBytes)
  }

  /// Opens or makes a directory.
  /// - Throws: ``HearthError`` if the directory is not empty and not a copy of this cluster, a server alone has written to it,
  ///   another process uses it, or it cannot be made.
  package init(
    directory path: String, of identity: ClusterIdentity, at url: String, key: ClusterKey
  ) throws(HearthError) {
    (self.path, self.identity, self.url, self.key) = (path, identity, url, key)
    mapBytes = HearthConfiguration(storage: .directory(path)).mapBytes
    do {
      let found = try CopyFile(directory: path)
      if let found, found.cluster != identity.id {
        throw HearthError.configuration("\(path) is a copy of another cluster; name another directory")
      }
      guard found != nil || Self.isEmpty(path) else {
        throw HearthError.configuration(
          "\(path) is not empty, and is not a copy of a cluster; name a directory that does not exist")
      }
      directory = try DataDirectory(path, mayBeOpenReplica: true)
      guard access("\(path)/\(NodeFile.name)", F_OK) != 0 else {
        throw HearthError.configuration("a node of the cluster used \(path); name another directory")
      }
      // A run was interrupted while it replaced the data files. The content is fetched again.
      if found != nil, access(DataDirectory.filesFile(in: path), F_OK) != 0 {
        ContentDirectory.remove(DataDirectory.filesFolder(in: path))
      }
      if let changed = try DataDirectory.foreignFile(in: path, secret: identity.secret) {
        throw HearthError.configuration(
          "\(changed) was written without the cluster, so \(path) is not a copy any more; name another directory")
      }
      file = found ?? CopyFile(of: identity)
      if found == nil { try file.write(to: path) }
    } catch { throw ClusteredNode.error(error) }
  }

  private static func isEmpty(_ path: String) -> Bool {
    let own = [DataDirectoryLock.fileName, "FORMAT", "FORMAT.new", "\(CopyFile.name).new"]
    return ContentDirectory.names(in: path).allSatisfy(own.contains)
  }

  /// Brings the data up to the end that the log has now, and moves everything to the data files. `progress` is called often.
  /// - Throws: ``HearthError``. Another run continues then.
  package func refresh(progress: @escaping (ReplicaRefresh.Progress) -> Void) throws(HearthError) -> UInt64 {
    let wasWhole = file.isWhole
    do {
      // Without PostgreSQL, the copy stays as it is.
      let tables = try PostgresTables(url, secret: identity.secret, timing: ClusterTiming())
      let snapshots = try PostgresSnapshots(url)
      try mark(isWhole: false)
      try self.replica.folder.finishReplacement()
      let replica = try Replica(
        try self.replica.files(), secret: identity.secret, sealed: SealedStores(seal: try AccountsSeal(key)))
      let begin = replica.applied
      let refresh = ReplicaRefresh(replica, tables, snapshots, self.replica.folder, progress: progress)
      do throws(ReplicaRefresh.Failure) {
        let end = try refresh.run()
        try close(replica)
        return end.sequence
      } catch {
        let isUnchanged = wasWhole && replica.applied == begin
        try close(replica)
        if isUnchanged { try mark(isWhole: true) }
        throw Self.error(error, tables.lastFailure)
      }
    } catch { throw Self.error(error) }
  }

  private func close(_ replica: Replica) throws(ReplicaRefresh.Failure) {
    do throws(ReplicaError) { try replica.close() } catch { throw .replica(error) }
  }

  private func mark(isWhole: Bool) throws(StorageError) {
    file.isWhole = isWhole
    try file.write(to: path)
  }

  private static func error(_ failure: ReplicaRefresh.Failure, _ last: PostgresFailure?) -> HearthError {
    switch failure {
    case .noAnswer: .storage("the log of the cluster cannot be read: \((last ?? .noAnswer).description)")
    case .snapshot(let reason): .storage("no snapshot of the cluster can be loaded: \(reason)")
    case .replica(let error): .storage(error.reason)
    }
  }

  private static func error(_ error: any Error) -> HearthError {
    switch error {
    case let failure as ReplicaRefresh.Failure: Self.error(failure, nil)
    case let error as ReplicaError: .storage(error.reason)
    default: ClusteredNode.error(error)
    }
  }

  /// Fetches the content of files that the data name and the directory lacks. Returns `nil` if the cluster has no files.
  /// `progress` gets the number of bytes fetched so far.
  /// - Throws: ``HearthError`` if the place cannot be reached, or the directory cannot be written.
  package func copyFiles(
    from place: any SharedContent, progress: (Int) -> Void
  ) throws(HearthError) -> SharedFilesCopy? {
    let file = DataDirectory.filesFile(in: path)
    guard access(file, F_OK) == 0 else { return nil }
    do {
      let metadata = try LMDBStore.open(LMDBOptions(path: file, readOnly: true))
      let contents = try ContentDirectory(DataDirectory.filesFolder(in: path))
      return try SharedFilesCopy(of: metadata, from: place, to: contents, progress: progress)
    } catch let error as FilesError {
      throw .storage("the files cannot be copied: \(error)")
    } catch { throw Self.error(error) }
  }

  /// Writes the rules and index files that are deployed, and marks the copy as whole. Returns the options of `hearth serve` that
  /// name the files.
  /// - Throws: ``HearthError`` if PostgreSQL does not answer, or a file cannot be written.
  package func finish() throws(HearthError) -> [String] {
    do {
      var options: [String] = []
      if let (_, deployed) = try ClusterCatalog(url).configuration(newerThan: 0) {
        let files = DeployedFiles(directory: path)
        try files.write(deployed)
        options = try files.options(deployed)
      }
      try mark(isWhole: true)
      return options
    } catch { throw Self.error(error) }
  }
}
