import Glibc

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
      let isQuiet = arguments.has("quiet")
      // Each database needs some.
      allowManyFiles()
      var follower = try BackupFollower(of: directory, to: place, arguments) { text in
        if !isQuiet { Terminal.output.write("\(TerminalText.line(text))\n") }
      }
      var lastMessage: String?
      while true {
        do {
          try follower.step()
          lastMessage = nil
        } catch {
          let failure = CommandFailure(error)
          if failure.message != lastMessage {
            Terminal.error.write("hearth backups follow: \(TerminalText.line(failure.message))\n")
          }
          lastMessage = failure.message
        }
        for second in 0..<max(1, seconds) where second == 0 || lastMessage != nil || !follower.isUrgent { sleep(1) }
      }
    })
}
