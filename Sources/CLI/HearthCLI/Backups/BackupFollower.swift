import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import KeyValue
import LMDBEngine
import LogEngine

/// Makes backups of a data directory, and copies every commit after them; see `hearth backups follow`.
struct BackupFollower {
  private let directory: String
  private let place: any BackupPlace
  private let arguments: Arguments
  private var origin = ""
  private var lock: FollowerLock?
  private let everySeconds: Int
  private let keep: Int?
  private let report: (FollowerEvent) -> Void
  private let now: () -> Timestamp
  private var log: FollowedLog?
  private var followers: [DatabaseFollower] = []
  private var unfollowed: UnfollowedDatabases?
  /// The directory that ``lock`` and ``origin`` belong to.
  private var identity: FileFacts.Identity?
  /// Keep the commits that follow the last copied ones while no database is followed.
  private var holds: [LogHold?] = []
  private var untilWritten = Timestamp(uncheckedMicroseconds: 0)
  /// When the last backup failed.
  private var failed: Timestamp?
  /// The database that was written without a log, after a note about it.
  private var noted: UnfollowedDatabases.Change?

  /// A commit gets its time before it is in the log, so all earlier commits are there this time later, in microseconds.
  private static let delayMicroseconds: Int64 = 5_000_000
  /// The number of the newest backups among which one with a log is sought.
  private static let candidatesMax = 50
  /// The time between two notes about the time up to which all commits are copied, in seconds.
  private static let noteSeconds: Int64 = 10
  /// The time after a backup that failed in which no other one is begun, in seconds.
  private static let pauseSeconds: Int64 = 60

  /// Prepares to follow a directory.
  /// - Throws: ``CommandFailure`` if an option is invalid or the directory has no identity.
  init(
    of directory: String, to place: any BackupPlace, _ arguments: Arguments,
    now: @escaping () -> Timestamp = BackupChoice.now, report: @escaping (FollowerEvent) -> Void
  ) throws {
    (self.directory, self.place, self.arguments, self.report) = (directory, place, arguments, report)
    self.now = now
    everySeconds = try arguments.seconds("every") ?? 86_400
    keep = try arguments.integer("keep", in: 1...1_000_000)
    try identify()
  }

  /// Locks the directory and reads its identity.
  private mutating func identify() throws {
    // Before the directory is opened: if it is replaced in between, that is noticed.
    let found = FileFacts(of: directory)?.identity
    (identity, lock) = (nil, nil)
    lock = try FollowerLock(directory)
    let origin = try BackupOrigin(of: directory)
    guard origin.isLasting else {
      throw CommandFailure.failed(
        "\(directory)/\(BackupOrigin.fileName) cannot be written, so later backups would not recognize this one; run "
          + "the command as the owner of the directory")
    }
    (self.origin, identity) = (origin.id, found)
  }

  /// Whether the next step should not wait, because a server that stops is about to remove its logs.
  var isUrgent: Bool { followers.contains(where: \.isClosed) }

  /// Copies the new commits. If no backup exists that they can follow, makes one first.
  /// - Throws: ``CommandFailure``, `StorageError` or the errors of the place. The next call continues.
  mutating func step() throws {
    if identity == nil || FileFacts(of: directory)?.identity != identity {
      stopFollowing()
      try identify()
    } else if !followers.allSatisfy(\.isCurrent) {
      stopFollowing()
    }
    if log == nil { try resume() }
    let now = self.now()
    if let reason = try obstacle(now) {
      if let failed, (0..<Self.pauseSeconds).contains(now.seconds - failed.seconds) {
        if reason.isEmpty { try noteProgress(now) }
        return
      }
      try beginAgain(reason)
    } else {
      try noteProgress(now)
    }
  }

  /// Copies the commits that a server has made before it ended. Makes no backup.
  /// - Throws: as ``step()``.
  mutating func finish() throws {
    let now = self.now()
    guard log != nil, followers.allSatisfy(\.isCurrent), try obstacle(now) == nil else { return }
    untilWritten = now
    try writeUntil(now)
  }

  private mutating func stopFollowing() {
    (log, unfollowed) = (nil, nil)
    followers = []
  }

  /// Copies the commits to the log that is followed. Returns the reason why a new backup is needed, which is empty if it is
  /// time for one, or `nil`.
  private mutating func obstacle(_ now: Timestamp) throws -> String? {
    guard let log else { return "" }
    for (follower, database) in zip(followers, log.databases) {
      if try !follower.copy() {
        return "the commit log of \(database.path) no longer continues the last copied commit"
      }
    }
    if case .began(let id) = try unfollowed?.change() { return "\(id) is new" }
    return now.seconds - log.name.time.seconds >= Int64(everySeconds) ? "" : nil
  }

  private mutating func noteProgress(_ now: Timestamp) throws {
    // The clock may have been set back.
    guard !(0..<Self.noteSeconds).contains(now.seconds - untilWritten.seconds) else { return }
    untilWritten = now
    try writeUntil(now)
  }

  /// Stores the time up to which all commits are copied, unless a database changed whose commits are not.
  private mutating func writeUntil(_ now: Timestamp) throws {
    if let change = try unfollowed?.change() {
      if case .written(let id) = change, change != noted {
        report(.uncovered(database: "\(id)"))
        noted = change
      }
      return
    }
    try log?.write(
      until: Timestamp(uncheckedMicroseconds: now.microseconds - Self.delayMicroseconds), followers.map(\.sequence))
  }

  /// Continues the newest backup of the directory that a follower made. Other processes may have made later ones.
  private mutating func resume() throws {
    try limitHolds()
    guard !place.isMissing else { return }
    let names = try place.names().filter { $0.origin == origin }
    guard
      let log = try names.suffix(Self.candidatesMax).reversed().compactMap({ try FollowedLog(of: $0, in: place) })
        .first
    else { return }
    do {
      try follow(log)
      holds = []
      report(.continued(backup: log.name.text))
    } catch let failure as CommandFailure where failure.exitCode == ExitCode.data {
      report(.ended(reason: failure.message))
      stopFollowing()
    }
  }

  /// Gives up the commits that are held if the place cannot be reached for too long.
  private mutating func limitHolds() throws {
    guard !holds.isEmpty else { return }
    for id in try DataDirectory.databases(in: directory)
    where DatabaseFollower.isTooLong(LoggedStore.logPath(of: DataDirectory.file(of: id, in: directory))) { holds = [] }
  }

  private mutating func follow(_ log: FollowedLog) throws {
    // A process can open a file only once.
    followers = []
    let files = try log.place.logFiles(of: log.name)
    let present = log.databases.indices.filter { access("\(directory)/\(log.databases[$0].path)", F_OK) == 0 }
    guard present.count == log.databases.count else {
      throw CommandFailure.data("a database of the backup \(log.name.text) was removed")
    }
    followers = try present.map { try DatabaseFollower(log, $0, of: directory, files) }
    unfollowed = UnfollowedDatabases(of: directory, try place.state(of: log.name), besides: log.databases)
    self.log = log
  }

  /// Makes a backup, copies the commits up to it to the log of the one before, and follows the new one. If that fails, the
  /// next step continues the log that is there.
  private mutating func beginAgain(_ reason: String) throws {
    let former = log
    // The new backup and the commits after it need what the logs have from now on.
    let others = try UnfollowedDatabases(of: directory, nil, besides: log?.databases ?? []).present()
    if !followers.isEmpty || holds.isEmpty {
      holds = try followers.map(\.hold) + others.map { try LogHold(LoggedStore.logPath(of: "\(directory)/\($0.path)")) }
    }
    stopFollowing()
    do {
      try makeBackup(after: former, reason)
    } catch {
      stopFollowing()
      failed = now()
      throw error
    }
    (holds, failed) = ([], nil)
  }

  private mutating func makeBackup(after former: FollowedLog?, _ reason: String) throws {
    let lock = try BackupOrigin(of: directory)
    let name = Command.unusedName(in: place, of: lock)
    let (parent, _) = try BackupParent.chosen(for: name, arguments, in: place)
    let outcome = try place.make(name, of: DirectoryReader(directory), since: parent) { _ in }
    guard let state = try place.state(of: name) else {
      throw CommandFailure.failed("the backup \(name.text) no longer exists in \(place.text)")
    }
    let databases = state.stores.compactMap { store -> FollowedLog.Database? in
      guard let origin = outcome.logOrigins[store.path], let position = store.position else { return nil }
      return FollowedLog.Database(path: store.path, origin: origin, time: position.version)
    }
    let next = FollowedLog(databases, after: name, in: place)
    try next.writeStart()
    // The log of the backup before reaches to the new one, so each moment in between can be restored.
    if let former, (try? follow(former)) != nil {
      let now = self.now()
      if try followers.allSatisfy({ try $0.copy() }) { try writeUntil(now) }
    }
    try follow(next)
    untilWritten = Timestamp(uncheckedMicroseconds: 0)
    report(.made(backup: name.text, isIncremental: outcome.parent != nil, reason: reason))
    if let keep {
      try place.remove(place.removable(place.names().filter { $0.origin == origin }, keep: keep, made: name))
    }
    withExtendedLifetime(lock) {}
  }
}

/// The right to copy the commits of a data directory. One process at a time has it.
private final class FollowerLock {
  private static let fileName = "backups-follow.lock"
  private let descriptor: Int32

  init(_ directory: String) throws {
    let file = "\(directory)/\(Self.fileName)"
    descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StorageError.system(operation: "open", path: file, code: errno) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
      close(descriptor)
      throw CommandFailure(
        ExitCode.busy, "another process copies the commits of \(directory) already; stop it first")
    }
    var status = stat()
    if geteuid() == 0, stat(directory, &status) == 0 { fchown(descriptor, status.st_uid, status.st_gid) }
  }

  deinit { close(descriptor) }
}
