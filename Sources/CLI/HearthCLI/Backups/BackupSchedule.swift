import Dispatch
import Glibc
import HearthServer
import Synchronization

/// The backups that a running server makes of its data directory. Each is made by a process of its own, so it takes no
/// memory of the server, and a crash does not affect it.
final class BackupSchedule: Sendable {
  /// The options of `serve`.
  static let options: [Command.Option] = [
    .value("backup-to", "PLACE", "make backups in this folder or bucket: see `hearth backups create`"),
    .value("backup-every", "TIME", "the time between two backups (default: 24h)"),
    .value("backup-keep", "N", "the number of backups to keep (default: 14)"),
    .value("backup-key", "FILE", "the key or credentials file for the bucket"),
    .value("backup-endpoint", "URL", "the store of the bucket (default: that of Google or Amazon)"),
    .value("backup-region", "NAME", "the region of a bucket of S3"),
  ]

  private static let intervalSecondsMin = 60
  /// The longest time between two attempts, in seconds. A failed backup is repeated then.
  private static let attemptSecondsMax = 900

  private let words: [String]
  private let attemptSeconds: Int
  private let place: String
  private let log: LogWriter?
  private let queue = DispatchQueue(label: "backups", qos: .utility)
  private let isStopped = Atomic(false)
  /// The process that makes a backup, if one does.
  private let child = Mutex<pid_t?>(nil)

  /// Creates the schedule that options choose, or returns `nil` if they choose none.
  /// - Throws: ``CommandFailure`` if an option has an invalid value or does not apply.
  init?(_ arguments: Arguments, _ configuration: HearthConfiguration) throws {
    let others = ["backup-every", "backup-keep", "backup-key", "backup-endpoint", "backup-region"].filter(arguments.has)
    guard let place = arguments.value("backup-to") else {
      guard others.isEmpty else { throw arguments.refusal(of: others, "needs --backup-to PLACE") }
      return nil
    }
    guard case .directory(let directory) = configuration.storage else {
      throw arguments.refusal(of: ["backup-to"], "needs a data directory; add --data DIR")
    }
    let seconds = try arguments.seconds("backup-every") ?? 86_400
    guard seconds >= Self.intervalSecondsMin else {
      throw arguments.refusal(of: "backup-every", arguments.value("backup-every") ?? "", "must be at least 1m")
    }
    let keep = try arguments.integer("backup-keep", in: 1...1_000_000) ?? 14
    var words = [
      "backups", "create", "--quiet", "--data", directory, "--keep", "\(keep)", "--unless-newer-than", "\(seconds)s",
    ]
    for name in ["key", "endpoint", "region"] {
      if let value = arguments.value("backup-\(name)") { words.append("--\(name)=\(value)") }
    }
    let unused = ["backup-key", "backup-endpoint", "backup-region"].filter(arguments.has)
    if !place.contains("://"), !unused.isEmpty {
      throw arguments.refusal(of: unused, "needs a bucket, such as --backup-to s3://backups/hearth")
    }
    // Names the mistake at the start, rather than at the first backup.
    _ = try BackupChoice.place(
      place, Arguments(Array(words.dropFirst(2)) + ["--", place], for: .backupsCreate), of: directory)
    self.words = words + ["--", place]
    self.place = place
    log = configuration.log
    attemptSeconds = min(seconds, Self.attemptSecondsMax)
  }

  /// Begins the first backup, unless the place has a new one, and schedules the next ones.
  func start() {
    schedule(afterSeconds: 1)
  }

  /// Ends the schedule and an unfinished backup.
  func stop() {
    isStopped.store(true, ordering: .sequentiallyConsistent)
    child.withLock { if let pid = $0 { kill(pid, SIGTERM) } }
    queue.sync {}
  }

  private func schedule(afterSeconds seconds: Int) {
    queue.asyncAfter(deadline: .now() + .seconds(seconds)) { [weak self] in
      guard let self, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
      attempt()
      schedule(afterSeconds: attemptSeconds)
    }
  }

  private func attempt() {
    do {
      let process = try VerbProcess(words, takesErrors: true)
      child.withLock { $0 = process.pid }
      defer { child.withLock { $0 = nil } }
      let (text, status) = process.wait()
      guard status != 0, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
      let reason = text.split(separator: "\n").last.map(String.init) ?? "the process ended with status \(status)"
      log?.write(LogEvent(.error, "backup.failed", "the backup to \(place) failed: \(reason)"))
    } catch {
      log?.write(LogEvent(.error, "backup.failed", "the backup cannot start: \(CommandFailure(error).message)"))
    }
  }
}
