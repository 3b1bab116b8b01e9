import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

/// What `hearth doctor` finds out about a data directory, without changing it but for one small file that it removes.
struct DirectoryChecks {
  let path: String
  let mapBytes: Int
  /// Microseconds since 1970.
  let now: Int64
  /// The server that uses the directory; `nil` for none.
  private(set) var holder: String?
  /// Whether this user can open what is in the directory, and leaves nothing there that its owner cannot.
  private(set) var isReadable = false

  /// Less room than this is a problem; less than ten times as much, or than a twentieth of the disk, a warning.
  private static let roomMin = 256 << 20
  /// Slower syncs than this many milliseconds make every commit slow.
  private static let syncMax = 50
  /// File systems on which LMDB's locks or its syncs cannot be relied on.
  private static let unsound: Set<String> = [
    "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "sshfs",
  ]

  init(path: String, mapBytes: Int, now: Int64) {
    self.path = path
    self.mapBytes = mapBytes
    self.now = now
  }

  mutating func findings() -> [Finding] {
    var status = stat()
    guard stat(path, &status) == 0 else {
      guard errno == ENOENT else {
        let advice = "Let this user reach it, or name another with --data."
        return [.problem("data directory", "\(path): \(Self.reason())", advice)]
      }
      return missing()
    }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      return [.problem("data directory", "\(path) is no directory", "Name another with --data.")]
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
      let text = "\(path) cannot be made: \(parent): \(Self.reason())"
      return [.problem("data directory", text, "Make it for this user.")]
    }
    return [.ok("data directory", "\(path) will be made")] + fileSystem(of: parent)
  }

  private func permissions(_ status: stat) -> Finding {
    let topic = "permissions"
    guard access(path, R_OK | W_OK | X_OK) == 0 else {
      return .problem(
        topic, "this user may not write to \(path): \(Self.reason())", "Run as its owner, or chown -R it to this user.")
    }
    if status.st_mode & 0o077 != 0 {
      return .warning(topic, "others than the owner of \(path) may look into it", "chmod go= \(path)")
    }
    for project in DataDirectory.accountsProjects(in: path) {
      let file = DataDirectory.accountsFile(of: project, in: path)
      var secret = stat()
      if stat(file, &secret) == 0, secret.st_mode & 0o077 != 0 {
        return .problem(
          topic, "\(file) holds secrets, and others than its owner may read it",
          "chmod go= it, and replace the keys: hearth keys rotate")
      }
    }
    return .ok(topic, "only their owner reaches the data in \(path)")
  }

  private func fileSystem(of place: String) -> [Finding] {
    var system = statvfs()
    guard statvfs(place, &system) == 0 else {
      return [.warning("disk", "\(place): \(Self.reason())", "Look at the disk.")]
    }
    var findings: [Finding] = []
    let kind = MountTable.fileSystem(of: place) ?? ""
    if Self.unsound.contains(kind) || kind.hasPrefix("fuse") {
      findings.append(
        .problem(
          "file system", "\(place) is on \(kind), where locks do not hold", "Keep the data on a disk of this machine."))
    } else if ["tmpfs", "ramfs"].contains(kind) {
      findings.append(
        .warning("file system", "\(place) is on \(kind): all is gone after a restart", "Keep the data on a disk."))
    }
    let free = Int(clamping: system.f_bavail) * Int(system.f_frsize)
    let total = Int(clamping: system.f_blocks) * Int(system.f_frsize)
    let room = "\(ByteCount.text(free)) free of \(ByteCount.text(total))"
    if free < Self.roomMin {
      findings.append(.problem("disk", room, "Make room: writes fail with RESOURCE_EXHAUSTED when it is full."))
    } else if free < 10 * Self.roomMin || free < total / 20 {
      findings.append(.warning("disk", room, "Make room before it is full: then writes fail and reads go on."))
    } else {
      findings.append(.ok("disk", room))
    }
    if system.f_files > 0, system.f_favail < 10_000 {
      findings.append(.warning("disk", "only \(system.f_favail) more files fit", "Every stored file takes one."))
    }
    return findings
  }

  /// How long the disk takes for what every commit waits for.
  private func sync() -> [Finding] {
    let file = "\(path)/.doctor-\(getpid())"
    let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return [.problem("sync", "\(file): \(Self.reason())", "Look at the disk.")] }
    defer {
      close(descriptor)
      unlink(file)
    }
    let page = [UInt8](repeating: 0, count: 4096)
    var times: [Int64] = []
    for _ in 0..<9 {
      let begun = Progress.now()
      guard pwrite(descriptor, page, page.count, 0) == page.count, fdatasync(descriptor) == 0 else {
        return [.problem("sync", "\(file): \(Self.reason())", "Look at the disk.")]
      }
      times.append(Progress.now() - begun)
    }
    let median = times.sorted()[times.count / 2]
    guard median > Self.syncMax else {
      return [.ok("sync", "a sync takes \(median < 1 ? "less than 1" : "\(median)") ms")]
    }
    return [.warning("sync", "a sync takes \(median) ms", "Every group of commits waits for one; use a faster disk.")]
  }

  private mutating func lockAndDatabases() -> [Finding] {
    var findings: [Finding] = []
    do throws(StorageError) {
      // Letting go of it at once leaves nothing but the lock's file, which a server makes too.
      _ = try DataDirectoryLock(directory: path)
    } catch {
      if case .locked(_, let name) = error {
        holder = name
        findings.append(.ok("in use", "by \(name)"))
      } else {
        findings.append(.problem("lock", error.description, "Let this user write to \(path)."))
      }
    }
    let ids: [DatabaseID]
    do throws(StorageError) {
      ids = try DataDirectory.databases(in: path)
    } catch {
      // A directory that nothing was written to yet has no format.
      if access("\(path)/FORMAT", F_OK) == 0 {
        findings.append(
          .problem("format", error.description, "Use the version of Hearth that wrote it, or a newer one."))
      }
      return findings
    }
    for id in ids { findings.append(database(id)) }
    return findings
  }

  private func database(_ id: DatabaseID) -> Finding {
    let topic = id.database
    let check = "hearth check \(path) tells more; restore from a backup where it finds damage."
    do throws(StorageError) {
      let store = try LMDBStore.open(
        LMDBOptions(path: DataDirectory.file(of: id, in: path), mapBytes: mapBytes, readOnly: true))
      let size = try store.statistics()
      let snapshot = try store.snapshot()
      defer { snapshot.end() }
      var reader = SnapshotReader(snapshot)
      let last = try reader.lastVersion()
      if last > now + 5_000_000 {
        return .problem(
          topic, "the last commit to \(id) is \((last - now) / 1_000_000) s in the future",
          "The clock went back: set it right. Until then times of commits stand still.")
      }
      let text = "\(id) uses \(ByteCount.text(size.usedBytes)) of \(ByteCount.text(mapBytes))"
      guard size.usedBytes > mapBytes / 10 * 8 else { return .ok(topic, text) }
      return .warning(topic, text, "Start with a larger --map-size; when it is full, writes fail.")
    } catch {
      return .problem(topic, error.description, check)
    }
  }

  static func reason() -> String { String(cString: strerror(errno)) }
}
