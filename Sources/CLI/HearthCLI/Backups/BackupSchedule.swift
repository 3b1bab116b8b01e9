import Basics
import Dispatch
import DocumentModel
import DocumentStore
import Glibc
import HearthServer
import Synchronization

/// The backups that a running server makes of its data directory. Each is made by a process of its own, so it takes no
/// memory of the server, and a crash does not affect it. With `backup-follow`, one process makes all of them, and copies
/// each commit after them.
final class BackupSchedule: Sendable {
  /// The options of `serve`.
  static let options: [Command.Option] = [
    .value("backup-to", "PLACE", "make backups in this folder or bucket: see `hearth backups create`"),
    .value("backup-every", "TIME", "the time between two backups (default: 24h)"),
    .value(
      "backup-full-every", "TIME",
      "make incremental backups, and a full one if the last is older, such as 7d"),
    .value("backup-keep", "N", "the number of backups to keep (default: 14)"),
    .flag("backup-follow", "copy each commit to the newest backup: see `hearth backups follow`"),
    .value("backup-key", "FILE", "the key or credentials file for the bucket"),
    .value("backup-endpoint", "URL", "the store of the bucket (default: that of Google or Amazon)"),
    .value("backup-region", "NAME", "the region of a bucket of S3"),
  ]

  private static let intervalSecondsMin = 60
  /// The longest time between two attempts, in seconds. A failed backup is repeated then.
  private static let attemptSecondsMax = 900

  /// The time for which incremental backups need the change log, in seconds: twice the time between backups, so that one
  /// may fail. 0 if all are full.
  let changeLogSeconds: Int
  private let words: [String]
  /// Lists the backups of the data directory.
  let listing: BackupListing
  private let attemptSeconds: Int
  let place: String
  private let log: LogWriter?
  private let outcomes: BackupOutcomes?
  private let queue = DispatchQueue(label: "backups", qos: .utility)
  /// The words of the verb that makes backups and copies commits, or `nil` if each backup has a process of its own.
  private let followerWords: [String]?
  /// The process of that verb, once it was started.
  private let follower = Mutex<FollowerProcess?>(nil)
  private let isStopped = Atomic(false)
  /// The process that makes a backup, if one does.
  private let child = Mutex<pid_t?>(nil)
  private let lastResult = Mutex<Result?>(nil)
  private let isAsked = Atomic(false)

  /// The result of an attempt.
  struct Result: Sendable {
    /// The end of the attempt, in microseconds since 1970.
    let time: Int64
    /// The reason of a failure, or `nil` after success.
    let failure: String?
  }

  /// The schedule that options choose.
  struct Choice {
    /// The time between two backups.
    let seconds: Int
    let place: any BackupPlace
    /// The words of the verb that makes a backup.
    let words: [String]
    /// The words of the verb that makes backups and copies commits, if the options choose it.
    let followerWords: [String]?

    /// Returns `nil` if the options choose no backups.
    /// - Throws: ``CommandFailure`` if an option has an invalid value or does not apply.
    init?(_ arguments: Arguments, of directory: String) throws {
      guard let place = arguments.value("backup-to") else { return nil }
      seconds = try arguments.seconds("backup-every") ?? 86_400
      guard seconds >= intervalSecondsMin else {
        throw arguments.refusal(of: "backup-every", arguments.value("backup-every") ?? "", "must be at least 1m")
      }
      let keep = try arguments.integer("backup-keep", in: 1...1_000_000) ?? 14
      var common = ["--json", "--data", directory, "--keep", "\(keep)"]
      for name in ["full-every", "key", "endpoint", "region"] {
        if let value = arguments.value("backup-\(name)") { common.append("--\(name)=\(value)") }
      }
      let unused = ["backup-key", "backup-endpoint", "backup-region"].filter(arguments.has)
      if !place.contains("://"), !unused.isEmpty {
        throw arguments.refusal(of: unused, "needs a bucket, such as --backup-to s3://backups/hearth")
      }
      words = ["backups", "create"] + common + ["--unless-newer-than", "\(seconds)s", "--", place]
      followerWords =
        arguments.has("backup-follow")
        ? ["backups", "follow"] + common + ["--every", "\(seconds)s", "--parent", "\(getpid())", "--", place] : nil
      self.place = try BackupChoice.place(
        place, Arguments(Array(words.dropFirst(2)), for: .backupsCreate), of: directory, prefix: "backup-")
    }
  }

  /// Creates the schedule that options choose, or returns `nil` if they choose none.
  /// - Throws: ``CommandFailure`` if an option has an invalid value or does not apply.
  init?(_ arguments: Arguments, _ configuration: HearthConfiguration) throws {
    let others = [
      "backup-every", "backup-full-every", "backup-keep", "backup-follow", "backup-key", "backup-endpoint",
      "backup-region",
    ].filter(arguments.has)
    guard let place = arguments.value("backup-to") else {
      guard others.isEmpty else { throw arguments.refusal(of: others, "needs --backup-to PLACE") }
      return nil
    }
    guard case .directory(let directory) = configuration.storage else {
      throw arguments.refusal(of: ["backup-to"], "needs a data directory; add --data DIR")
    }
    // Names a mistake at the start, rather than at the first backup.
    guard let choice = try Choice(arguments, of: directory) else { return nil }
    words = choice.words
    followerWords = choice.followerWords
    guard followerWords == nil || configuration.usesCommitLog else {
      throw arguments.refusal(of: ["backup-follow"], "needs the commit logs; leave out --commit-log off")
    }
    let access = words.filter { word in ["--key=", "--endpoint=", "--region="].contains { word.hasPrefix($0) } }
    listing = BackupListing(["backups", "list", "--json"] + access + ["--", place], of: place)
    let isIncremental = try arguments.seconds("backup-full-every") != nil
    changeLogSeconds = isIncremental ? 2 * choice.seconds + Self.attemptSecondsMax : 0
    self.place = place
    log = configuration.log
    outcomes = configuration.backups
    attemptSeconds = min(choice.seconds, Self.attemptSecondsMax)
  }

  /// Begins the first backup, unless the place has a new one, and schedules the next ones.
  func start() {
    guard let followerWords else { return schedule(afterSeconds: 1) }
    let process = FollowerProcess(followerWords) { [weak self] event in self?.take(event) }
    follower.withLock { $0 = process }
    process.start()
  }

  /// Ends the copying of commits after the server has stopped, so that none is missing. Waits some seconds at most.
  func stopFollowing() { follower.withLock { $0 }?.stop() }

  /// Ends the schedule, an unfinished backup, and a listing.
  func stop() {
    listing.stop()
    isStopped.store(true, ordering: .sequentiallyConsistent)
    child.withLock { if let pid = $0 { kill(pid, SIGTERM) } }
    queue.sync {}
  }

  private func schedule(afterSeconds seconds: Int) {
    queue.asyncAfter(deadline: .now() + .seconds(seconds)) { [weak self] in
      guard let self, !isStopped.load(ordering: .sequentiallyConsistent) else { return }
      attempt(words)
      schedule(afterSeconds: attemptSeconds)
    }
  }

  /// The result of the last attempt, or `nil` before the first one has ended.
  var last: Result? { lastResult.withLock { $0 } }

  /// Whether a backup is under way or begins now.
  var isBusy: Bool { isAsked.load(ordering: .acquiring) || child.withLock { $0 != nil } }

  /// Begins a backup in the background, however new the last one is. Returns `false` if one is under way.
  func begin() -> Bool {
    guard child.withLock({ $0 == nil }), !isStopped.load(ordering: .sequentiallyConsistent),
      isAsked.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
    else { return false }
    var words = words
    if let condition = words.firstIndex(of: "--unless-newer-than") { words.removeSubrange(condition...condition + 1) }
    queue.async { [weak self, words] in
      self?.attempt(words)
      self?.isAsked.store(false, ordering: .releasing)
    }
    return true
  }

  private func note(_ failure: String?) {
    lastResult.withLock { $0 = Result(time: Clock.system.now(), failure: failure) }
  }

  /// Reports an event of the process that makes backups and copies commits.
  private func take(_ event: FollowerEvent) {
    switch event {
    case .made(let backup, _, let reason):
      note(nil)
      noteSuccess(backup)
      log?.write(
        LogEvent(
          .info, "backup.completed",
          "the backup \(backup) to \(place) was completed" + (reason.isEmpty ? "" : ", because \(reason)"),
          [("place", .text(place)), ("backup", .text(backup))]))
    case .continued(let backup):
      noteSuccess(backup)
      log?.write(
        LogEvent(.info, "backup.continued", "commits after the backup \(backup) are copied to \(place)"))
    case .ended(let reason):
      log?.write(LogEvent(.warn, "backup.ended", "a new backup to \(place) is needed: \(reason)"))
    case .uncovered(let database):
      log?.write(
        LogEvent(
          .warn, "backup.uncovered", "\(database) has no commit log, so its commits are only in the backups"))
    case .failed(let message):
      note(message)
      outcomes?.noteFailure()
      log?.write(
        LogEvent(
          .error, "backup.failed", "commits cannot be copied to \(place): \(message)", [("place", .text(place))]))
    case .recovered:
      note(nil)
      log?.write(LogEvent(.info, "backup.continued", "commits are copied to \(place) again"))
    }
  }

  /// Notes the time of a backup by its name.
  private func noteSuccess(_ backup: String) {
    if let name = BackupName(backup) { outcomes?.noteSuccess(atSeconds: Int(name.time.seconds)) }
  }

  private func attempt(_ words: [String]) {
    do {
      let begun = ContinuousClock.now
      let process = try VerbProcess(words, takesErrors: true)
      child.withLock { $0 = process.pid }
      defer { child.withLock { $0 = nil } }
      let (text, status) = process.wait()
      guard status != 0 else {
        note(nil)
        return completed(text, in: begun.duration(to: .now))
      }
      guard !isStopped.load(ordering: .sequentiallyConsistent) else { return }
      let reason = VerbProcess.reason(in: text) ?? "the process ended with status \(status)"
      note(reason)
      guard status != ExitCode.busy << 8 else {
        log?.write(LogEvent(.warn, "backup.skipped", "the backup to \(place) was skipped: \(reason)"))
        return
      }
      outcomes?.noteFailure()
      log?.write(
        LogEvent(.error, "backup.failed", "the backup to \(place) failed: \(reason)", [("place", .text(place))]))
    } catch {
      note("the backup cannot start: \(CommandFailure(error).message)")
      outcomes?.noteFailure()
      log?.write(LogEvent(.error, "backup.failed", "the backup cannot start: \(CommandFailure(error).message)"))
    }
  }

  /// Reports the output of a verb that succeeded.
  private func completed(_ output: String, in duration: Duration) {
    let lines = output.split(separator: "\n")
    // Lines before the report say which databases an incremental backup contains as a whole.
    for line in lines where !line.hasPrefix("{") {
      log?.write(LogEvent(.info, "backup.whole", "backup to \(place): \(VerbProcess.withoutPrefix(String(line)))"))
    }
    guard let line = lines.last(where: { $0.hasPrefix("{") }),
      let report = try? BackupReport(json: Array(line.utf8)), let name = BackupName(report.name)
    else { return }
    noteSuccess(name.text)
    guard report.isMade else { return }
    let (seconds, attoseconds) = duration.components
    let text = (Double(seconds) + Double(attoseconds) / 1e18) * 1000
    log?.write(
      LogEvent(
        .info, "backup.completed", "the backup \(report.name) to \(place) was completed",
        [
          ("place", .text(place)), ("backup", .text(report.name)), ("bytes", .integer(report.size)),
          ("duration_ms", .integer(Int(text.rounded()))),
        ]))
  }
}
