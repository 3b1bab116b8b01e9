package import ContentSharing
import DocumentModel
import DocumentStore
import Files
import FileService
import Glibc
import KeyValue
import LMDBEngine
import LogEngine
package import PostgresEngine
import Replication
package import SharedLog

/// The data directory of a server alone, to be uploaded as the first snapshot of a cluster. While this object lives, no
/// server can use the directory.
package final class ClusterUpload {
  /// The project that the cluster serves.
  package let project: String
  /// The size of the data files, in bytes.
  package let fileBytes: Int
  private let directory: DataDirectory
  private let stores: [StoreName: LMDBStore]
  /// The folder of the files of the project, or `nil` if it has none.
  private let filesFolder: String?

  /// Opens a directory, and moves to its data files the commits that a killed server left in logs.
  /// - Parameter project: the project. `nil` chooses the only one.
  /// - Throws: ``HearthError`` if the directory does not exist, a server uses it, it does not have the project, or a data
  ///   file or its log cannot be read.
  package init(directory path: String, project: String?) throws(HearthError) {
    do {
      // The lock would make a directory that does not exist.
      let projects = Set(try DataDirectory.databases(in: path).map(\.project))
        .union(DataDirectory.accountsProjects(in: path)).sorted()
      guard let project = project ?? (projects.count == 1 ? projects[0] : nil) else {
        throw HearthError.configuration(
          projects.isEmpty
            ? "\(path) has no data yet; omit --from"
            : "\(path) has the projects \(projects.joined(separator: ", ")); name one with --project")
      }
      guard projects.contains(project) else {
        throw HearthError.configuration("\(path) has no project \(project), but \(projects.joined(separator: ", "))")
      }
      directory = try DataDirectory(path)
      self.project = project
      var files: [StoreName: String] = [:]
      for id in try DataDirectory.databases(in: path) where id.project == project {
        guard let name = StoreName(database: id.database) else {
          throw HearthError.data("a cluster cannot have a database of the name \(id.database)")
        }
        files[name] = DataDirectory.file(of: id, in: path)
      }
      if DataDirectory.accountsProjects(in: path).contains(project) {
        files[.accounts] = try directory.makeAccountsFile(of: project)
      }
      // One of several projects can have a folder of its own.
      let owners = try DataDirectory.filesOwners(in: path)
      if owners.contains(project) {
        filesFolder = DataDirectory.filesFolder(of: project, in: path)
      } else if projects.count == 1, owners.contains(nil) {
        filesFolder = DataDirectory.filesFolder(in: path)
      } else {
        filesFolder = nil
      }
      if let filesFolder { files[.files] = "\(filesFolder)/data.mdb" }
      var stores: [StoreName: LMDBStore] = [:]
      for (name, file) in files {
        let options = LMDBOptions(path: file).withRoom()
        try LoggedStore.settle(options)
        stores[name] = try LMDBStore.open(options)
      }
      self.stores = stores
      fileBytes = try stores.values.reduce(0) { (sum, store) throws(StorageError) in
        sum + (try store.statistics().usedBytes)
      }
    } catch let error as HearthError {
      throw error
    } catch let error as StorageError {
      throw Self.error(error, path)
    } catch { throw .data("\(error)") }
  }

  private static func error(_ error: StorageError, _ path: String) -> HearthError {
    switch error {
    case .locked: .storage("\(error.description); a server that runs has newer data")
    case .corruption:
      .storage(
        "\(error.description). If \(path) was the directory of a node of a cluster that was killed, its newest commits are in "
          + "PostgreSQL: start and stop the node first")
    default: .storage(error.description)
    }
  }

  // MARK: Files

  /// Copies the content of files to the place in which the nodes share it. Returns the number of copied contents. May be
  /// repeated.
  /// - Throws: ``HearthError`` if the place fails, or a file is too large for it.
  package func shareFiles(_ place: any SharedContent) throws(HearthError) -> Int {
    guard let filesFolder, let metadata = stores[.files] else { return 0 }
    var settings = FileStore.Configuration { Clock.system.now() }
    settings.shared = place
    let (stores, project) = (stores, project)
    settings.wasCommitted = { (text, number) throws(FilesError) in
      guard let id = FileCommitDatabase.id(text), id.project == project, let name = StoreName(database: id.database),
        let store = stores[name]
      else { return false }
      do throws(StorageError) { return try DocumentDatabase.lastMark(in: store) == number } catch {
        throw FilesError(error)
      }
    }
    do throws(FilesError) {
      let files = FileStore(
        metadata: metadata, contents: try ContentDirectory(filesFolder), configuration: settings)
      try files.recover()
      try leaveCluster(place, files)
      let shared = try files.shareStored()
      guard shared.refused == 0 else {
        throw FilesError.sharedContent(
          "\(shared.refused) files are too large for \(place.place), or damaged; name another place with --shared-files, "
            + "such as a folder or a bucket")
      }
      return shared.contents
    } catch { throw .storage("the files cannot be shared: \(error)") }
  }

  /// Makes a copy of another cluster data of its own, before the first change. The sweeps of two clusters with one place would remove
  /// each other's content.
  private func leaveCluster(_ place: any SharedContent, _ files: FileStore) throws(FilesError) {
    let isEmpty: Bool
    do throws(SharedContentError) { isEmpty = try place.identity(claiming: nil) == nil } catch {
      throw FilesError(error)
    }
    let copy = "\(directory.path)/\(CopyFile.name)"
    if access(copy, F_OK) == 0 {
      guard isEmpty else {
        throw .sharedContent("\(place.place) has files of another cluster; name another place with --shared-files")
      }
      unlink("\(directory.path)/\(DataDirectory.backupIdentityName)")
      unlink(copy)
    }
    if isEmpty { try files.forgetPlace() }
  }

  // MARK: The snapshot

  /// The entry with which the log of the cluster begins. A node without data is behind it, so it loads the snapshot.
  package static func firstEntry(secret: UInt64) -> SharedEntry {
    SharedEntry(.handover, [], after: LogPosition(sequence: 1), epoch: 0, secret: secret)
  }

  /// Uploads the data files as a snapshot at ``firstEntry(secret:)``, with which the tables were made. `progress` gets the
  /// number of bytes that were read so far. Returns the size of the snapshot in bytes.
  /// - Throws: ``HearthError``. Then the cluster has no snapshot, and its nodes wait for one.
  package func upload(
    to url: String, key: ClusterKey, secret: UInt64, progress: @escaping (Int64) -> Void
  ) throws(HearthError) -> Int64 {
    let mark = Self.firstEntry(secret: secret).position
    let sources = stores.map { name, store in
      SnapshotWriter.Source(name: name) { () throws(StorageError) in (try PipedCopy(of: store), mark) }
    }
    do {
      let writer = SnapshotWriter(
        try PostgresSnapshots(url), sealed: SealedStores(seal: try AccountsSeal(key)), progress: progress)
      return try writer.write { sources }.bytes
    } catch let error as SnapshotWritingError {
      throw .storage("the data cannot be uploaded: \(error.description)")
    } catch let error as PostgresFailure {
      throw .storage(error.description)
    } catch { throw .storage("\(error)") }
  }
}
