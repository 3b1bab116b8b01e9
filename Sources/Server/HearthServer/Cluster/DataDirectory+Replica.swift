import Glibc
package import KeyValue
import LMDBEngine
import LogEngine
import PostgresEngine

/// Data directories that are replicas of a cluster.
///
/// While the node runs, or after it was killed, its newest commits are in PostgreSQL and not in the files. A node that stopped
/// has moved everything to the files, and its directory is like any other. So is a copy (``ClusterCopy``) that was not interrupted.
extension DataDirectory {
  /// Refuses the replica of a node that runs or was killed, and a copy that was interrupted. Cost: looks for two files, and
  /// opens the data files if one of them exists.
  /// - Throws: ``StorageError/openReplica(path:)``, ``StorageError/unfinishedCopy(path:)``; another ``StorageError`` if a data
  ///   file cannot be read.
  package static func requireClosedReplica(_ path: String) throws(StorageError) {
    guard try isOpenReplica(path) else { return }
    throw access("\(path)/\(NodeFile.name)", F_OK) == 0 ? .openReplica(path: path) : .unfinishedCopy(path: path)
  }

  /// Whether a directory is the replica of a node that runs or was killed, or a copy that was interrupted.
  /// - Throws: ``StorageError`` if a file cannot be read.
  package static func isOpenReplica(_ path: String) throws(StorageError) -> Bool {
    let copy = try CopyFile(directory: path)
    if let copy, !copy.isWhole { return true }
    guard copy != nil || access("\(path)/\(NodeFile.name)", F_OK) == 0 else { return false }
    for file in try dataFiles(in: path) {
      guard try mark(of: file)?.isOpen == true else { continue }
      // A directory that was taken out of its cluster has logs of its own. A server that was killed left this one.
      let hasLog = try DiskFolder(path: LoggedStore.logPath(of: file)).names().contains { $0.hasSuffix(".log") }
      if !hasLog { return true }
    }
    return false
  }

  /// Returns a data file that was written without the cluster whose log has this secret, so that its node would refuse it, or
  /// `nil` if all are of the cluster.
  /// - Throws: ``StorageError`` if a data file cannot be read.
  package static func foreignFile(in path: String, secret: UInt64) throws(StorageError) -> String? {
    for file in try dataFiles(in: path) {
      let store = try openData(file)
      if let mark = try store.logOrigin() {
        if mark.secret != secret { return file }
      } else if try store.statistics().entries > 0 {
        return file
      }
    }
    return nil
  }

  /// Returns the paths of all data files of a directory: databases, accounts and the metadata of files.
  /// - Throws: ``StorageError`` if the format of the directory is unknown.
  package static func dataFiles(in path: String) throws(StorageError) -> [String] {
    guard access("\(path)/FORMAT", F_OK) == 0 else { return [] }
    var files = try databases(in: path).map { file(of: $0, in: path) }
    files += accountsProjects(in: path).map { accountsFile(of: $0, in: path) }
    for owner in try filesOwners(in: path) { files.append(filesFile(of: owner, in: path)) }
    return files
  }

  private static func mark(of file: String) throws(StorageError) -> LogMark? { try openData(file).logMark() }

  private static func openData(_ file: String) throws(StorageError) -> LMDBStore {
    var options = LMDBOptions(path: file, readOnly: true).withRoom()
    options.acceptsOpenLog = true
    return try LMDBStore.open(options)
  }
}
