import DocumentModel
import DocumentStore
import Glibc
import KeyValue
import LMDBEngine
import Replication

/// The data files of a node's replica: those that a server alone would use for the same project, in the same places.
struct ReplicaDirectory: Sendable {
  let directory: DataDirectory
  let project: String
  let mapBytes: Int

  /// The data files that exist, and the function that opens one.
  /// - Throws: ``StorageError`` if the directory cannot be read.
  func files() throws(StorageError) -> ReplicaFiles {
    // Content without its metadata means that a file was lost.
    _ = try DataDirectory.hasFiles(in: directory.path)
    return .onDisk(existing: try Self.stores(of: project, in: directory.path)) { [self] name throws(StorageError) in
      LMDBOptions(path: try makePath(of: name), mapBytes: mapBytes)
    }
  }

  /// The folder in which a node that joins replaces the data files.
  var folder: ReplicaFolder {
    ReplicaFolder(path: directory.path, mapBytes: mapBytes) { [project, directory] () throws(StorageError) in
      try Self.stores(of: project, in: directory.path)
    } place: { [project] store, path in
      Self.path(of: store, of: project, in: path)
    } prepare: { path throws(StorageError) in
      // Its lock is released at once.
      _ = try DataDirectory(path)
    }
  }

  /// Returns the stores of a project whose data files exist in a data directory.
  /// - Throws: ``StorageError`` if the directory cannot be read.
  static func stores(of project: String, in path: String) throws(StorageError) -> [StoreName] {
    var existing: [StoreName] = []
    for id in try DataDirectory.databases(in: path) where id.project == project {
      if let name = StoreName(database: id.database) { existing.append(name) }
    }
    if DataDirectory.accountsProjects(in: path).contains(project) { existing.append(.accounts) }
    if access(DataDirectory.filesFile(in: path), F_OK) == 0 { existing.append(.files) }
    return existing
  }

  /// Returns the path of the data file of a store in a data directory.
  static func path(of store: StoreName, of project: String, in path: String) -> String {
    if store == .accounts { return DataDirectory.accountsFile(of: project, in: path) }
    guard let database = store.database, let id = DatabaseID(project: project, database: database) else {
      return DataDirectory.filesFile(in: path)
    }
    return DataDirectory.file(of: id, in: path)
  }

  private func makePath(of name: StoreName) throws(StorageError) -> String {
    if name == .accounts { return try directory.makeAccountsFile(of: project) }
    if name == .files {
      try directory.makeFolder(at: try directory.makeFilesFolder(of: nil))
      return DataDirectory.filesFile(in: directory.path)
    }
    guard let database = name.database, let id = DatabaseID(project: project, database: database) else {
      throw .corruption(path: directory.path, detail: "the log of the cluster names the store '\(name)'")
    }
    return try directory.makeFile(of: id)
  }
}

extension ProjectStores {
  /// The stores of the owner of a cluster in one epoch. Commits get versions above `floor`.
  static func replicas(_ member: ClusterMember, project: String, floor: Int64) -> ProjectStores {
    @Sendable func store(_ name: StoreName?, _ text: String) throws(StorageError) -> any KeyValueStore {
      guard let name else {
        throw .corruption(path: text, detail: "a cluster cannot have a database of this name")
      }
      do throws(ReplicaError) { return try member.store(name) } catch {
        if case .storage(let failure) = error { throw failure }
        throw .corruption(path: name.text, detail: error.description)
      }
    }
    return ProjectStores(
      database: { id throws(StorageError) in
        // An emulator serves every project that a request names, but the log has those of one.
        guard id.project == project else { return nil }
        return try store(StoreName(database: id.database), id.name)
      },
      accounts: { () throws(StorageError) in try store(.accounts, "accounts") },
      filesMetadata: { () throws(StorageError) in try store(.files, "files") },
      lastMark: { id throws(StorageError) in
        guard id.project == project else { return 0 }
        return try DocumentDatabase.lastMark(in: store(StoreName(database: id.database), id.name))
      }, floor: floor, node: UInt16(truncatingIfNeeded: member.number))
  }
}

extension ProjectStores {
  /// The stores of a node that does not own the cluster. They can only be read; `freshness` waits for the owner's commits.
  static func followed(
    _ replica: Replica, node: UInt32, project: String, freshness: any FreshnessGate
  ) -> ProjectStores {
    ProjectStores(
      database: { id in
        guard id.project == project else { return nil }
        return StoreName(database: id.database).flatMap { replica.followedStore($0) }
      },
      accounts: { () throws(StorageError) in
        guard let store = replica.followedStore(.accounts) else { throw .notOwner(of: "accounts", owner: nil) }
        return store
      },
      filesMetadata: { () throws(StorageError) in throw .notOwner(of: "files", owner: nil) },
      lastMark: { _ in 0 },
      node: UInt16(truncatingIfNeeded: node), freshness: freshness)
  }
}
