import Glibc
import Synchronization

extension Command {
  /// Makes backups, and copies every commit after them.
  static let backupsFollow = Command(
    name: "backups follow", summary: "Makes backups, and copies every commit to them as it happens.",
    operands: "PLACE", operandCount: 1...1,
    options: [
      .value("data", "DIR", "the data directory (default: ./hearth-data)"),
      .value("interval", "TIME", "the time between two copies (default: 1s, or 10s for a bucket)"),
      .value("every", "TIME", "the time between two backups (default: 24h)"),
      .value("full-every", "TIME", "make incremental backups, and a full one if the last is older, such as 7d"),
      .flag("incremental", "make incremental backups"),
      .value("keep", "N", "after each backup, remove all but the N newest of this directory (default: remove none)"),
      .value("parent", "PID", "copy the last commits and end if this process, which has started the verb, has ended"),
      .flag("json", "print each event as JSON, in one line"),
      .flag("quiet", "report only errors"),
    ] + BackupChoice.options,
    details: """
      The verb runs until it is stopped. It makes a backup, as `hearth backups create` does, and then copies each commit
      from the commit logs of the databases to PLACE, as a part of that backup. `hearth backups restore --at TIME` restores
      any moment since. The server keeps the commits until they are copied, so its logs grow if PLACE cannot be reached: to
      at most 4 GiB for each database.

      The databases need a commit log: see `hearth serve`. Accounts and files are in the backups only. A moment is restored
      with those of the backup before it, so make backups as often as these must be current.

      If the verb was interrupted, it continues after the last commit that is in PLACE. If commits since then were removed
      from the log, or a database is new, it makes a backup first, and says so. Moments between the last commit before the
      interruption and that backup cannot be restored.

      \(BackupChoice.details)
      """,
    examples: [
      ("hearth backups follow /backups --full-every 7d --every 1h --keep 200 --data ./hearth-data", ""),
      ("hearth backups follow s3://my-backups/hearth --region eu-central-1", "to a bucket of Amazon S3"),
    ],
    run: { arguments in
      let directory = arguments.value("data") ?? "./hearth-data"
      try DirectoryReader.require(directory)
      let place = try BackupChoice.place(arguments.operands[0], arguments, of: directory)
      let seconds = try arguments.seconds("interval") ?? (place.appendsToLogFiles ? 1 : 10)
      let parent = try arguments.integer("parent", in: 1...Int(Int32.max))
      let print = FollowerEventPrinter(directory, arguments)
      // Each database needs some.
      allowManyFiles()
      var follower = try BackupFollower(of: directory, to: place, arguments, report: print.event)
      var lastMessage: String?
      let end = FollowerEnd(parent: parent)
      while true {
        let isLast = end.isNear
        do {
          if isLast { try follower.finish() } else { try follower.step() }
          if lastMessage != nil { print.event(.recovered) }
          lastMessage = nil
        } catch {
          let failure = CommandFailure(error)
          if failure.message != lastMessage { print.event(.failed(message: failure.message)) }
          lastMessage = failure.message
        }
        if isLast { return 0 }
        for second in 0..<max(1, seconds)
        where !end.isNear && (second == 0 || lastMessage != nil || !follower.isUrgent) { sleep(1) }
      }
    })
}

/// The end of a verb that a server has started.
///
/// The server stops first, so that its last commits can be copied, and then sends SIGUSR1. A supervisor or a terminal
/// sends the signals of a stop to all processes at once: the verb ignores those.
private struct FollowerEnd {
  private static let isAsked = Atomic(false)
  private let parent: Int?

  init(parent: Int?) {
    self.parent = parent
    guard parent != nil else { return }
    for number in [SIGTERM, SIGINT, SIGHUP] { signal(number, SIG_IGN) }
    signal(SIGUSR1) { _ in FollowerEnd.isAsked.store(true, ordering: .relaxed) }
  }

  /// Whether the server has asked the verb to end, or has ended itself.
  var isNear: Bool {
    guard let parent else { return false }
    return Self.isAsked.load(ordering: .relaxed) || parent != Int(getppid())
  }
}

/// Prints the events of `hearth backups follow`.
private struct FollowerEventPrinter {
  private let directory: String
  private let printsJSON: Bool
  private let isQuiet: Bool

  init(_ directory: String, _ arguments: Arguments) {
    self.directory = directory
    printsJSON = arguments.has("json")
    isQuiet = arguments.has("quiet")
  }

  func event(_ event: FollowerEvent) {
    if printsJSON { return Terminal.output.write(event.json()) }
    let text = TerminalText.line(event.text(of: directory))
    if case .failed = event {
      Terminal.error.write("hearth backups follow: \(text)\n")
    } else if !isQuiet {
      Terminal.output.write("\(text)\n")
    }
  }
}
