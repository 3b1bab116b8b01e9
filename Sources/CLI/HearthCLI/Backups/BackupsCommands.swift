import Files
import DocumentModel
import WireFormat

extension Command {
  /// Makes a backup in a place, and removes the oldest ones there.
  static let backupsCreate = Command(
    name: "backups create", summary: "Makes a backup in a folder or a bucket, and removes old ones.", operands: "PLACE",
    operandCount: 1...1,
    options: [
      .value("data", "DIR", "the data directory (default: ./hearth-data)"),
      .value("keep", "N", "afterwards, remove all but the N newest backups (default: remove none)"),
      .value("unless-newer-than", "TIME", "do nothing if the newest backup is younger, such as 24h or 30m"),
      .flag("quiet", "show no progress and no summary"),
    ] + BackupChoice.options,
    details: """
      The backup shows the data directory as of one moment, as `hearth backup` describes it, even while a server uses it.
      Its name is the time, such as 2026-11-22T031500Z.

      \(BackupChoice.details)

      In a folder, each backup is a data directory, and unchanged content of files is linked. In a bucket, databases are
      compressed, and content of files is stored once. A bucket needs space for a copy of the databases in the data
      directory while the backup is made.

      Backups contain secrets: the keys that sign tokens, and password hashes. Restrict access to the place.
      """,
    examples: [
      (
        "hearth backups create /backups --keep 14 --data ./hearth-data", "in a folder; keeps two weeks of daily backups"
      ),
      ("hearth backups create s3://my-backups/hearth --region eu-central-1 --keep 14", "in a bucket of Amazon S3"),
      ("hearth backups create gs://my-backups/hearth --key backup.json", "in a bucket of Cloud Storage"),
    ],
    run: { arguments in
      let keep = try arguments.integer("keep", in: 1...1_000_000)
      let age = try arguments.seconds("unless-newer-than")
      let isQuiet = arguments.has("quiet")
      let directory = arguments.value("data") ?? "./hearth-data"
      let place = try BackupChoice.place(arguments.operands[0], arguments, of: directory)
      let source = try DirectoryReader(directory)
      let name = BackupName(BackupChoice.now())
      if let age, let newest = try? place.names().last, name.time.seconds - newest.time.seconds < Int64(age) {
        if !isQuiet { Terminal.output.write("the backup \(newest.text) in \(place.text) is new enough\n") }
        return 0
      }
      var progress = Progress(isQuiet: isQuiet)
      defer { progress.clear() }
      let outcome = try place.make(name, of: source) { text in progress.show(text) }
      var removed: [BackupName] = []
      if let keep { removed = try place.names().dropLast(keep) }
      try place.remove(removed)
      progress.clear()
      if !isQuiet { Terminal.output.write(summary(name, outcome, removed.count, place)) }
      guard let contents = outcome.contents, contents.problemCount > 0 else { return 0 }
      for problem in contents.problems { Terminal.error.write("hearth: \(TerminalText.line(problem))\n") }
      throw CommandFailure.failed(
        "damaged contents of files: \(contents.problemCount); everything else is in the backup \(name.text)")
    })

  private static func summary(
    _ name: BackupName, _ outcome: BackupOutcome, _ removed: Int, _ place: any BackupPlace
  ) -> String {
    var text = "stored the backup \(name.text) in \(place.text): \(ByteCount.text(outcome.size))"
    if let added = outcome.addedBytes { text += ", \(ByteCount.text(added)) sent" }
    if removed > 0 { text += "; removed \(removed) older \(removed == 1 ? "backup" : "backups")" }
    return text + "\n"
  }

  /// Lists the backups of a place.
  static let backupsList = Command(
    name: "backups list", summary: "Lists the backups in a folder or a bucket.", operands: "PLACE", operandCount: 1...1,
    options: [.flag("json", "print JSON")] + BackupChoice.options,
    details: BackupChoice.details,
    examples: [("hearth backups list /backups", "the oldest first")],
    run: { arguments in
      let place = try BackupChoice.place(arguments.operands[0], arguments)
      let backups = try place.names().map { (name: $0, size: try place.size(of: $0)) }
      if arguments.has("json") {
        Terminal.output.write(
          JSONWriter.report { json in
            json.add("backups", backups) { backup, json in
              json.add("name", backup.name.text)
              json.add("time", backup.name.time.description)
              json.add("size", backup.size)
            }
          })
        return 0
      }
      guard !backups.isEmpty else {
        Terminal.error.write("no backups in \(place.text)\n")
        return 0
      }
      for backup in backups { Terminal.output.write("\(backup.name.text)  \(ByteCount.text(backup.size))\n") }
      return 0
    })

  /// Makes a data directory of a backup.
  static let backupsRestore = Command(
    name: "backups restore", summary: "Makes a data directory of a backup, or restores a part of it.",
    operands: "PLACE [DIR]", operandCount: 1...2,
    options: [
      .value("name", "NAME", "the backup (default: the newest)"),
      .value("before", "TIME", "the newest backup that began before this time, such as 2026-11-22T10:00:00Z"),
      .value("only", "PATH", "restore this document or collection into --data; / is the whole database"),
      .value("data", "DIR", "with --only, the data directory, even while a server uses it (default: ./hearth-data)"),
      DatabaseChoice.projectOption, DatabaseChoice.databaseOption,
    ] + SubtreeRestore.options + BackupChoice.options,
    details: """
      DIR must be an empty directory or not exist. Everything is verified: if a file is missing or damaged, nothing is
      left at DIR. Start a server on it with `hearth serve --data DIR`.

      With --only and without DIR, a document or collection of the backup replaces that of a data directory, as `hearth
      restore` does it: it shows the numbers of documents that differ, asks, and keeps newer documents unless
      --delete-newer is given. A backup in a bucket is downloaded to TMPDIR or /tmp first.

      \(BackupChoice.details)
      """,
    examples: [
      ("hearth backups restore /backups ./restored", "the newest"),
      ("hearth backups restore s3://my-backups/hearth ./restored --before 2026-11-22T10:00:00Z", "of an earlier time"),
      (
        "hearth backups restore /backups --only users/ann --data ./hearth-data", "one document with everything below it"
      ),
    ],
    run: { arguments in
      try arguments.exclude("name", "before")
      if arguments.has("only") { return try BackupPart.restore(arguments) }
      for name in ["data", "project", "database", "to", "delete-newer", "dry-run", "yes"] where arguments.has(name) {
        throw arguments.refusal(of: [name], "needs --only")
      }
      guard arguments.operands.count == 2 else {
        throw CommandFailure.usage("name the new data directory DIR, or a part of the backup with --only")
      }
      let place = try BackupChoice.place(arguments.operands[0], arguments)
      let name = try chosen(try place.names(), arguments, place)
      var progress = Progress(isQuiet: arguments.has("quiet"))
      defer { progress.clear() }
      try place.restore(name, to: arguments.operands[1]) { text in progress.show(text) }
      progress.clear()
      if !arguments.has("quiet") {
        Terminal.output.write("restored the backup \(name.text) to \(arguments.operands[1])\n")
      }
      return 0
    })

  /// Returns the backup that the options choose.
  /// - Throws: ``CommandFailure`` if no such backup exists.
  static func chosen(
    _ names: [BackupName], _ arguments: Arguments, _ place: any BackupPlace
  ) throws -> BackupName {
    guard let newest = names.last else { throw CommandFailure.failed("no backups in \(place.text)") }
    if let text = arguments.value("name") {
      guard let name = names.first(where: { $0.text == text }) else {
        throw CommandFailure.failed(
          "\(place.text) has no backup \(text); `hearth backups list \(arguments.operands[0])` lists them")
      }
      return name
    }
    guard let text = arguments.value("before") else { return newest }
    guard let time = Timestamp(rfc3339: text.utf8) else {
      throw arguments.refusal(of: "before", text, "must be a time such as 2026-11-22T10:00:00Z")
    }
    guard let name = names.last(where: { $0.time < time }) else {
      throw CommandFailure.failed("the oldest backup in \(place.text) is \(names[0].text)")
    }
    return name
  }

  /// Removes backups of a place.
  static let backupsDelete = Command(
    name: "backups delete", summary: "Removes backups from a folder or a bucket.", operands: "PLACE NAME…",
    operandCount: 2...10_000, options: BackupChoice.options,
    details: "Content of files that no other backup has is removed too.\n\n\(BackupChoice.details)",
    examples: [("hearth backups delete /backups 2026-11-22T031500Z", "")],
    run: { arguments in
      let place = try BackupChoice.place(arguments.operands[0], arguments)
      let names = try place.names()
      let found = try Set(arguments.operands.dropFirst()).sorted().map { text in
        guard let name = names.first(where: { $0.text == text }) else {
          throw CommandFailure.failed("\(place.text) has no backup \(text); nothing was removed")
        }
        return name
      }
      try place.remove(found)
      return 0
    })
}

extension Arguments {
  /// Returns the value of an option in seconds: a number and a unit, such as `90s`, `30m`, `24h` or `7d`.
  /// - Throws: ``CommandFailure`` if the value has another form.
  func seconds(_ name: String) throws -> Int? {
    guard let text = value(name) else { return nil }
    let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
    guard let unit = text.last.flatMap({ units[$0] }), let count = Int(text.dropLast()), (1...1_000_000).contains(count)
    else { throw refusal(of: name, text, "must be a number with a unit, such as 30m, 24h or 7d") }
    return count * unit
  }
}
