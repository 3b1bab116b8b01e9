package import ContentSharing
package import Files
import Glibc
import KeyValue
import LMDBEngine
package import PostgresEngine
package import Replication
import SharedLog

/// A data directory that is a copy of a cluster: it has the data of one moment, and a server alone can serve it. While this
/// object lives, no other process can use the directory.
///
/// The copy is a replica without a node. Each run continues the log where the last one ended, so it reads only what is new.
package final class ClusterCopy {
  /// The path of the directory.
  package let path: String
  private let directory: DataDirectory
  private let identity: ClusterIdentity
  private let url: String
  private let key: ClusterKey
  private let mapBytes: Int

  private var replica: ReplicaDirectory {
    ReplicaDirectory(directory: directory, project: identity.project, mapBytes: mapBytes)
  }

  /// Opens or makes a directory.
  /// - Throws: ``HearthError`` if the directory is not empty and not a copy of this cluster, another process uses it, or it cannot
  ///   be made.
  package init(
    directory path: String, of identity: ClusterIdentity, at url: String, key: ClusterKey
  ) throws(HearthError) {
    (self.path, self.identity, self.url, self.key) = (path, identity, url, key)
    mapBytes = HearthConfiguration(storage: .directory(path)).mapBytes
    do {
      let found = try CopyFile.cluster(ofDirectory: path)
      if let found, found != identity.id {
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
      // Before the first data file: the file says what a run that is interrupted here leaves.
      try CopyFile.write(cluster: identity.id, to: path)
    } catch { throw ClusteredNode.error(error) }
  }

  private static func isEmpty(_ path: String) -> Bool {
    ContentDirectory.names(in: path).allSatisfy { $0 == DataDirectoryLock.fileName || $0 == "FORMAT" }
  }

  /// Brings the data up to the end that the log has now, and moves everything to the data files. `progress` is called often.
  /// - Throws: ``HearthError``. Another run continues then.
  package func refresh(
    progress: @escaping (ReplicaRefresh.Progress) -> Void
  ) throws(HearthError) -> ReplicaRefresh.Outcome {
    do {
      try replica.folder.finishReplacement()
      let replica = try Replica(
        try self.replica.files(), secret: identity.secret, sealed: SealedStores(seal: try AccountsSeal(key)))
      let tables = try PostgresTables(url, secret: identity.secret, timing: ClusterTiming())
      let refresh = ReplicaRefresh(
        replica, tables, try PostgresSnapshots(url), self.replica.folder, progress: progress)
      let outcome: ReplicaRefresh.Outcome
      do throws(ReplicaRefresh.Failure) { outcome = try refresh.run() } catch {
        replica.abandon()
        throw Self.error(error, path, tables.lastFailure)
      }
      try replica.close()
      return outcome
    } catch { throw ClusteredNode.error(error) }
  }

  private static func error(
    _ failure: ReplicaRefresh.Failure, _ path: String, _ last: PostgresFailure?
  ) -> HearthError {
    switch failure {
    case .noAnswer: .storage("the log of the cluster cannot be read: \((last ?? .noAnswer).description)")
    case .snapshot(let reason): .storage("no snapshot of the cluster can be loaded: \(reason)")
    case .replica(let error):
      .storage(error.isFinal ? "\(error.reason); remove \(path), and make a new copy" : error.reason)
    }
  }

  /// Fetches the content of files that the data name and the directory lacks. Call it after ``refresh(progress:)``. Returns `nil`
  /// if the cluster has no files. `progress` gets the number of bytes fetched so far.
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
    } catch { throw ClusteredNode.error(error) }
  }

  /// Writes the rules and index files that are deployed. Returns the options of `hearth serve` that name them.
  /// - Throws: ``HearthError`` if PostgreSQL does not answer, or a file cannot be written.
  package func writeConfiguration() throws(HearthError) -> [String] {
    do {
      guard let (_, deployed) = try ClusterCatalog(url).configuration(newerThan: 0) else { return [] }
      let files = DeployedFiles(directory: path)
      try files.write(deployed)
      return try files.options(deployed)
    } catch { throw ClusteredNode.error(error) }
  }
}
