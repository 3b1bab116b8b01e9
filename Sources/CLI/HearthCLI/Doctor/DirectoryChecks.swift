import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValue
import LMDBEngine
import LogEngine
import PostgresEngine

/// Checks a data directory. The only change that it makes is one small file, which it removes.
struct DirectoryChecks {
  let path: String
  let mapBytes: Int
  /// Microseconds since 1970.
  let now: Int64
  /// Whether a node of a cluster is to use the directory.
  let isOfNode: Bool
  /// The server that uses the directory; `nil` if none does.
  private(set) var holder: String?
  /// Whether this user can read the directory without creating files that the directory's owner cannot open.
  private(set) var isReadable = false

  /// The free space below which there is a problem. Less than ten times as much, or less than a twentieth of the
  /// disk, is a warning.
  private static let roomMin = 256 << 20
  /// The time of a sync, in milliseconds, above which there is a warning.
  private static let syncMax = 50
  /// The file systems on which LMDB's locks or syncs are unreliable.
  private static let unsound: Set<String> = [
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "sshfs",
  ]

  init(path: String, mapBytes: Int, now: Int64, isOfNode: Bool = false) {
    self.path = path
    self.mapBytes = mapBytes
    self.now = now
    self.isOfNode = isOfNode
  }

  mutating func findings() -> [Finding] {
    var status = stat()
    guard stat(path, &status) == 0 else {
      guard errno == ENOENT else {
        let advice = "Give this user access to it, or name another with --data."
        return [.problem("data directory", "\(path): \(Self.reason())", advice)]
      }
      return missing()
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      return [.problem("data directory", "\(path) is not a directory", "Name another with --data.")]
    }
    var findings = [permissions(status)]
    if findings[0].level == .problem { return findings }
    let ownership = Ownership(path: path, owner: status.st_uid)
    findings += ownership.findings()
    findings += fileSystem(of: path)
    guard ownership.server == geteuid() else {
      holder = DataDirectoryLock.holder(ofDirectory: path)
      if let holder { findings.append(.ok("in use", "by \(holder)")) }
      return findings
    }
    isReadable = true
    findings.append(contentsOf: sync())
    findings += lockAndDatabases()
    return findings
  }

  private func missing() -> [Finding] {
    let parent = LocalPath.folder(of: path)
    guard access(parent, W_OK | X_OK) == 0 else {
      let text = "\(path) cannot be created: \(parent): \(Self.reason())"
      return [.problem("data directory", text, "Create it, with this user as its owner.")]
    }
    return [.ok("data directory", "the server will create \(path)")] + fileSystem(of: parent)
  }

  private func permissions(_ status: stat) -> Finding {
    let topic = "permissions"
    guard access(path, R_OK | W_OK | X_OK) == 0 else {
      return .problem(
        topic, "this user cannot write to \(path): \(Self.reason())",
        "Run the server as the owner of the directory, or chown -R it to this user.")
    }
    if status.st_mode & 0o077 != 0 {
      return .warning(topic, "users other than its owner can access \(path)", "chmod go= \(path)")
    }
    for project in DataDirectory.accountsProjects(in: path) {
      let file = DataDirectory.accountsFile(of: project, in: path)
      var secret = stat()
      if stat(file, &secret) == 0, secret.st_mode & 0o077 != 0 {
        return .problem(
          topic, "\(file) holds secrets, but users other than its owner may read it",
          "chmod go= it, and replace the keys: hearth keys rotate")
      }
    }
    return .ok(topic, "only the owner of \(path) can access it")
  }

  private func fileSystem(of place: String) -> [Finding] {
    var system = statvfs()
    guard statvfs(place, &system) == 0 else {
      return [.warning("disk", "\(place): \(Self.reason())", "Check the disk.")]
    }
    var findings: [Finding] = []
    let kind = MountTable.fileSystem(of: place) ?? ""
    if Self.unsound.contains(kind) || kind.hasPrefix("fuse") {
      findings.append(
        .problem(
          "file system", "\(place) is on \(kind), where file locks are unreliable",
          "Keep the data on a local disk of this machine."))
    } else if ["tmpfs", "ramfs"].contains(kind) {
      findings.append(
        .warning(
          "file system", "\(place) is on \(kind): all data are lost when the machine restarts",
          "Keep the data on a disk."))
    }
    let free = Int(clamping: system.f_bavail) * Int(system.f_frsize)
    let total = Int(clamping: system.f_blocks) * Int(system.f_frsize)
    let room = "\(ByteCount.text(free)) free of \(ByteCount.text(total))"
    if free < Self.roomMin {
      findings.append(.problem("disk", room, "Free some space: on a full disk, writes fail with RESOURCE_EXHAUSTED."))
    } else if free < 10 * Self.roomMin || free < total / 20 {
      findings.append(.warning("disk", room, "Free some space: on a full disk, writes fail, and only reads work."))
    } else {
      findings.append(.ok("disk", room))
    }
    if system.f_files > 0, system.f_favail < 10_000 {
      let text = "only \(system.f_favail) inodes are free"
      findings.append(.warning("disk", text, "Remove files: every stored file needs an inode."))
    }
    return findings
  }

  /// Measures the time of a sync, which every commit waits for.
  private func sync() -> [Finding] {
    let file = "\(path)/.doctor-\(getpid())"
    let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return [.problem("sync", "\(file): \(Self.reason())", "Check the disk.")] }
    defer {
      close(descriptor)
      unlink(file)
    }
    let page = [UInt8](repeating: 0, count: 4096)
    var times: [Int64] = []
    for _ in 0..<9 {
      let begun = Progress.now()
      guard pwrite(descriptor, page, page.count, 0) == page.count, fdatasync(descriptor) == 0 else {
        return [.problem("sync", "\(file): \(Self.reason())", "Check the disk.")]
      }
      times.append(Progress.now() - begun)
    }
    let median = times.sorted()[times.count / 2]
    guard median > Self.syncMax else {
      return [.ok("sync", "a sync takes \(median < 1 ? "less than 1" : "\(median)") ms")]
    }
    return [.warning("sync", "a sync takes \(median) ms", "Use a faster disk: every commit waits for a sync.")]
  }

  private mutating func lockAndDatabases() -> [Finding] {
    var findings: [Finding] = []
    do throws(StorageError) {
      // Releasing the lock at once leaves only the lock file, which a server creates too.
      _ = try DataDirectoryLock(directory: path)
    } catch {
      if case .locked(_, let name) = error {
        holder = name
        findings.append(.ok("in use", "by \(name)"))
      } else {
        findings.append(.problem("lock", error.description, "Give this user write access to \(path)."))
      }
    }
    let ids: [DatabaseID]
    do throws(StorageError) {
      ids = try DataDirectory.databases(in: path)
    } catch {
      // A directory without any data has no format file.
      if access("\(path)/FORMAT", F_OK) == 0 {
        findings.append(
          .problem("format", error.description, "Use the version of Hearth that wrote the data, or a newer one."))
      }
      return findings
    }
    if let finding = replica() { findings.append(finding) }
    // The files of a replica that is not closed are not a state of the databases.
    if isReadable { for id in ids { findings.append(database(id)) } }
    return findings
  }

  /// Checks whether the directory is the replica of a node of a cluster, and its files are complete.
  private mutating func replica() -> Finding? {
    let topic = "replica"
    do throws(StorageError) {
      if let copy = try CopyFile(directory: path), try DataDirectory.foreignFile(in: path, secret: copy.secret) == nil {
        isReadable = try !DataDirectory.isOpenReplica(path)
        guard !isReadable else { return .ok(topic, "\(path) is a copy of a cluster") }
        return .problem(
          topic, "\(path) is a copy of a cluster that was interrupted", "Run hearth cluster copy again.")
      }
    } catch {
      isReadable = false
      return .problem(topic, error.description, "Make a new copy.")
    }
    let node: String
    do throws(StorageError) {
      guard let file = try NodeFile(directory: path) else { return nil }
      node = "node \(file.node) of a cluster"
      isReadable = try !DataDirectory.isOpenReplica(path)
    } catch {
      isReadable = false
      return .problem(topic, error.description, "Let the cluster make it anew: name an empty directory with --data.")
    }
    if isReadable {
      let text = "\(path) is that of \(node), which closed it"
      return .ok(topic, isOfNode ? text : "\(text); after it is served alone, it cannot join the cluster again")
    }
    if holder != nil { return .ok(topic, "\(path) is that of \(node); its newest commits are in PostgreSQL") }
    let text = "\(path) is that of \(node), which was killed; its newest commits are in PostgreSQL"
    if isOfNode { return .ok(topic, "\(text), where the node reads them when it starts") }
    return .problem(
      topic, text, "Start the node with --cluster. To use the files alone, stop it with SIGTERM afterwards.")
  }

  private func database(_ id: DatabaseID) -> Finding {
    let topic = id.database
    let check = "Run hearth check \(path), and restore a backup if it finds damage."
    do throws(StorageError) {
      let store = try StoredDatabase.openReadOnly(
        LMDBOptions(path: DataDirectory.file(of: id, in: path), mapBytes: mapBytes))
      let size = try store.statistics()
      let snapshot = try store.snapshot()
      defer { snapshot.end() }
      var reader = SnapshotReader(snapshot)
      let last = try reader.lastVersion()
      if last > now + 5_000_000 {
        return .problem(
          topic, "the last commit to \(id) is \((last - now) / 1_000_000) s in the future",
          "Correct the clock: it was set back. Until it catches up, new commits get no later times.")
      }
      let text = "\(id) uses \(ByteCount.text(size.usedBytes)) of \(ByteCount.text(mapBytes))"
      guard size.usedBytes > mapBytes / 10 * 8 else { return .ok(topic, text) }
      return .warning(topic, text, "Start with a larger --map-size: when the database is full, writes fail.")
    } catch {
      return .problem(topic, error.description, check)
    }
  }

  static func reason() -> String { String(cString: strerror(errno)) }
}
