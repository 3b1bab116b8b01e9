import Files
import Glibc
import HearthServer
import DocumentModel
import WireFormat

extension Command {
  /// Makes a backup in a place, and removes the oldest ones there.
  static let backupsCreate = Command(
    name: "backups create", summary: "Makes a backup in a folder or a bucket, and removes old ones.", operands: "PLACE",
    operandCount: 1...1,
    options: [
      .value("data", "DIR", "the data directory (default: ./hearth-data)"),
      .value("keep", "N", "afterwards, remove all but the N newest backups of this directory (default: remove none)"),
      .value(
        "unless-newer-than", "TIME",
        "do nothing if the newest backup of this directory is younger, such as 24h or 30m"),
      .flag("incremental", "store only what changed since the newest backup of this directory"),
      .value(
        "full-every", "TIME", "as --incremental, but make a full backup if the last one is older than this, such as 7d"),
      .flag("quiet", "show no progress and no summary"),
      .flag("json", "print the result as JSON, in one line, and show no progress"),
    ] + BackupChoice.options,
    details: """
      The backup shows the data directory as of one moment, as `hearth backup` describes it, even while a server uses it.
      Its name is the time and the identity of the data directory, such as 2026-11-22T031500Z-4f1c2a9b. So several servers
      can use the same PLACE. The first backup stores the identity in DIR/backup-id. A restored directory gets another
      one, so it never removes backups of the original.

      An incremental backup stores the documents that changed since the newest backup of the directory, its parent, and
      needs it and all backups before it, down to a full one. It takes a time that depends on the changes, not on the size
      of the databases. Accounts and the metadata of files are stored as a whole if they changed. The verb stores a
      database as a whole, and says so, if the database was cleared or replaced, if its indexes changed, or if its change
      log no longer reaches back to the parent. The log covers seven days and five million changes. The backup is a full
      one if there is no parent, if the parent has no `\(BackupState.fileName)` because an older version made it, or if
      the parent is the last of \(BackupChain.membersMax) backups. --keep never removes a backup that a kept one needs.

      Only one backup of a data directory is made at a time. While another process makes one, the verb waits for
      three seconds, and then fails with exit code \(ExitCode.busy). The server then skips its backup and tries again later.

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
      (
        "hearth backups create /backups --full-every 7d --keep 48", "hourly, by a timer: mostly incremental backups"
      ),
      ("hearth backups create s3://my-backups/hearth --region eu-central-1 --keep 14", "in a bucket of Amazon S3"),
      ("hearth backups create gs://my-backups/hearth --key backup.json", "in a bucket of Cloud Storage"),
    ],
    run: { arguments in
      let keep = try arguments.integer("keep", in: 1...1_000_000)
      let age = try arguments.seconds("unless-newer-than")
      let printsJSON = arguments.has("json")
      let isQuiet = arguments.has("quiet") || printsJSON
      let directory = arguments.value("data") ?? "./hearth-data"
      let place = try BackupChoice.place(arguments.operands[0], arguments, of: directory)
      let source = try DirectoryReader(directory)
      let origin = try BackupOrigin(of: directory)
      defer { withExtendedLifetime(origin) {} }
      // A copy of a cluster may have been brought up to date until now.
      try DataDirectory.requireClosedReplica(directory)
      guard keep == nil || origin.isLasting else {
        throw CommandFailure.failed(
          "\(directory)/\(BackupOrigin.fileName) cannot be written, so later backups would not recognize this one; run "
            + "the command once as the owner of the directory, or leave out --keep")
      }
      let name = unusedName(in: place, of: origin)
      // A backup with a later time was made while the clock was ahead, and says nothing about the last hours.
      if let age, let newest = try? place.names().last(where: { $0.origin == origin.id && $0 <= name }),
        name.time.seconds - newest.time.seconds < Int64(age)
      {
        if printsJSON { Terminal.output.write(BackupReport(name: newest.text, isMade: false, size: 0).json()) }
        if !isQuiet { Terminal.output.write("the backup \(newest.text) in \(place.text) is new enough\n") }
        return 0
      }
      var progress = Progress(isQuiet: isQuiet)
      defer { progress.clear() }
      let (parent, note) = try BackupParent.chosen(for: name, arguments, in: place)
      let outcome = try place.make(name, of: source, since: parent) { text in progress.show(text) }
      progress.clear()
      for note in outcome.notes + (note.map { ["\(name.text) is a full backup: \($0)"] } ?? []) {
        Terminal.error.write("hearth: \(TerminalText.line(note))\n")
      }
      var removed: [BackupName] = []
      if let keep {
        removed = try place.removable(place.names().filter { $0.origin == origin.id }, keep: keep, made: name)
      }
      try place.remove(removed)
      if !isQuiet { Terminal.output.write(summary(name, outcome, removed.count, place)) }
      if printsJSON {
        Terminal.output.write(BackupReport(name: name.text, isMade: true, size: outcome.size).json())
      }
      guard let contents = outcome.contents, contents.problemCount > 0 else { return 0 }
      for problem in contents.problems { Terminal.error.write("hearth: \(TerminalText.line(problem))\n") }
      throw CommandFailure.failed(
        "damaged contents of files: \(contents.problemCount); everything else is in the backup \(name.text)")
    })

  /// Returns the name of a backup that begins now. Names have whole seconds, so it waits if the name is in use.
  static func unusedName(in place: any BackupPlace, of origin: BackupOrigin) -> BackupName {
    var name = BackupName(BackupChoice.now(), origin: origin.id)
    for _ in 0..<20 where (try? place.names().contains(name)) == true {
      usleep(100_000)
      name = BackupName(BackupChoice.now(), origin: origin.id)
    }
    return name
  }

  private static func summary(
    _ name: BackupName, _ outcome: BackupOutcome, _ removed: Int, _ place: any BackupPlace
  ) -> String {
    let kind = outcome.parent == nil ? "" : "incremental "
    var text = "stored the \(kind)backup \(name.text) in \(place.text): \(ByteCount.text(outcome.size))"
    if let added = outcome.addedBytes { text += ", \(ByteCount.text(added)) sent" }
    if removed > 0 { text += "; removed \(removed) older \(removed == 1 ? "backup" : "backups")" }
    return text + "\n"
  }

  /// Lists the backups of a place.
  static let backupsList = Command(
    name: "backups list", summary: "Lists the backups in a folder or a bucket.", operands: "PLACE", operandCount: 1...1,
    options: [originOption, .flag("json", "print JSON")] + BackupChoice.options,
    details: """
      Each line has the name, the size, and the word full, or for an incremental backup the name of its parent. The size is
      that of the data directory, or of what the incremental backup stores. If the place has backups of several data
      directories, each line also has the machine and the path of the directory.

      \(BackupChoice.details)
      """,
    examples: [("hearth backups list /backups", "the oldest first")],
    run: { arguments in
      let place = try BackupChoice.place(arguments.operands[0], arguments)
      let names = try place.names()
      let hasSeveral = Set(names.map(\.origin)).count > 1
      let backups = try ofOrigin(names, arguments).map { (name: $0, facts: try place.facts(of: $0)) }
      if arguments.has("json") {
        Terminal.output.write(
          JSONWriter.report { json in
            json.add("backups", backups) { backup, json in
              json.add("name", backup.name.text)
              json.add("time", backup.name.time.description)
              json.add("size", backup.facts.size)
              json.add("kind", backup.facts.parent == nil ? "full" : "incremental")
              json.add("parent", backup.facts.parent?.text)
              json.add("origin", backup.name.origin)
              json.add("source", backup.facts.source)
            }
          })
        return 0
      }
      guard !backups.isEmpty else {
        Terminal.error.write("no backups in \(place.text)\n")
        return 0
      }
      for backup in backups {
        let source = hasSeveral ? "  \(TerminalText.line(backup.facts.source ?? "unknown"))" : ""
        let kind = backup.facts.parent.map { "since \($0.text)" } ?? "full"
        Terminal.output.write("\(backup.name.text)  \(ByteCount.text(backup.facts.size))  \(kind)\(source)\n")
      }
      return 0
    })

  private static let originOption = Option.value(
    "origin", "ID", "only backups of this data directory: the last part of their names")

  static func ofOrigin(_ names: [BackupName], _ arguments: Arguments) -> [BackupName] {
    guard let origin = arguments.value("origin") else { return names }
    return names.filter { $0.origin == origin }
  }

  /// Makes a data directory of a backup.
  static let backupsRestore = Command(
    name: "backups restore", summary: "Makes a data directory of a backup, or restores a part of it.",
    operands: "PLACE [DIR]", operandCount: 1...2,
    options: [
      .value("name", "NAME", "the backup (default: the newest)"),
      .value("before", "TIME", "the newest backup that began before this time, such as 2026-11-22T10:00:00Z"),
      .value("at", "TIME", "this moment, if `hearth backups follow` copied the commits; or an age, such as 15m"),
      originOption,
      .value("database", "ID", "with DIR, replace only this database of the data directory DIR, such as (default)"),
      .value("only", "PATH", "restore this document or collection into --data; / is the whole database"),
      .value("data", "DIR", "with --only, the data directory, even while a server uses it (default: ./hearth-data)"),
      .value("project", "ID", "with --database, its project (default: the only one of the backup that has it)"),
    ] + SubtreeRestore.options + BackupChoice.options,
    details: """
      DIR must be an empty directory or not exist. Everything is verified: if a file is missing or damaged, nothing is
      left at DIR. For an incremental backup, the verb takes the full one, merges the changes of each later one, and then
      checks the result. If one of them is missing or damaged, the message names it; older backups can still be restored.
      Start a server on it with `hearth serve --data DIR`. If the place has backups of several data
      directories, choose one with --origin or --name.

      With --at, the verb restores the backup before the moment, and applies the commits up to it that `hearth backups
      follow` copied. It may be the time of any commit. Accounts and files are those of the backup. If the moment is not
      covered, the message says which moments are.

      With --database, DIR is an existing data directory that no server uses: stop the server first. The verb copies the
      database beside the present file, verifies it, and then replaces the file, which needs space for both. Other
      databases, accounts and files do not change, so documents can refer to files that were deleted after the backup.
      If something fails, the present database remains.

      With --only and without DIR, a document or collection of the backup replaces that of a data directory, as `hearth
      restore` does it: it shows the numbers of documents that differ, asks, and keeps newer documents unless
      --delete-newer is given. A backup in a bucket is downloaded to TMPDIR or /tmp first.

      \(BackupChoice.details)
      """,
    examples: [
      ("hearth backups restore /backups ./restored", "the newest"),
      ("hearth backups restore s3://my-backups/hearth ./restored --before 2026-11-22T10:00:00Z", "of an earlier time"),
      ("hearth backups restore /backups ./restored --at 2026-11-22T10:00:00Z", "exactly that moment"),
      (
        "hearth backups restore /backups ./hearth-data --database '(default)' --project shop",
        "one database, after the server was stopped"
      ),
      (
        "hearth backups restore /backups --only users/ann --data ./hearth-data", "one document with everything below it"
      ),
    ],
    run: { arguments in
      try arguments.exclude("name", "before")
      for name in ["name", "before", "database", "only"] { try arguments.exclude("at", name) }
      if arguments.has("only") { return try BackupPart.restore(arguments) }
      for name in ["data", "to", "delete-newer", "dry-run", "yes"] where arguments.has(name) {
        throw arguments.refusal(of: [name], "needs --only")
      }
      guard arguments.operands.count == 2 else {
        throw CommandFailure.usage("name the new data directory DIR, or a part of the backup with --only")
      }
      let place = try BackupChoice.place(arguments.operands[0], arguments)
      // The database in hearth.json is that of verbs that call a server.
      let isDatabase = arguments.has("database") && arguments.origins["database"] == nil
      if !isDatabase, arguments.has("project"), arguments.origins["project"] == nil {
        throw arguments.refusal(of: ["project"], "needs --database, the database to restore")
      }
      let names = try place.names()
      let name = try chosen(names, arguments, place)
      var progress = Progress(isQuiet: arguments.has("quiet"))
      defer { progress.clear() }
      if let text = arguments.value("at") {
        let moment = try moment(text, arguments)
        let restore = try MomentRestore(moment, names.filter { $0.origin == name.origin }, in: place)
        let count = try restore.run(to: arguments.operands[1]) { progress.show($0) }
        progress.clear()
        if !arguments.has("quiet") {
          Terminal.output.write(
            "restored \(moment) to \(arguments.operands[1]): the backup \(restore.log.name.text) and "
              + "\(CountText.of(count, "group")) of commits\n")
        }
        return 0
      }
      if isDatabase {
        let restore = try DatabaseRestore(arguments, try place.databases(of: name), of: name)
        try restore.run(name, in: place) { text in progress.show(text) }
        progress.clear()
        if !arguments.has("quiet") {
          Terminal.output.write(
            "restored the database \(restore.id) of the backup \(name.text) in \(restore.directory); its other databases, "
              + "accounts and files did not change\n")
        }
        return 0
      }
      try place.restore(name, to: arguments.operands[1]) { text in progress.show(text) }
      progress.clear()
      if !arguments.has("quiet") {
        Terminal.output.write("restored the backup \(name.text) to \(arguments.operands[1])\n")
      }
      return 0
    })

  /// Returns the moment that a time or an age names.
  private static func moment(_ text: String, _ arguments: Arguments) throws -> Timestamp {
    if let time = Timestamp(rfc3339: text.utf8) { return time }
    guard let seconds = try? arguments.seconds("at") else {
      throw arguments.refusal(of: "at", text, "must be a time such as 2026-11-22T10:00:00Z, or an age such as 15m")
    }
    return Timestamp(uncheckedMicroseconds: BackupChoice.now().microseconds - Int64(seconds) * 1_000_000)
  }

  /// Returns the backup that the options choose.
  /// - Throws: ``CommandFailure`` if no such backup exists.
  static func chosen(
    _ all: [BackupName], _ arguments: Arguments, _ place: any BackupPlace
  ) throws -> BackupName {
    let names = ofOrigin(all, arguments)
    guard let newest = names.last else {
      let origin = arguments.value("origin").map { " of \($0)" } ?? ""
      throw CommandFailure.failed("no backups\(origin) in \(place.text)")
    }
    if let text = arguments.value("name") {
      guard let name = names.first(where: { $0.text == text }) else {
        throw CommandFailure.failed(
          "\(place.text) has no backup \(text); `hearth backups list \(arguments.operands[0])` lists them")
      }
      return name
    }
    if !arguments.has("origin"), Set(names.map(\.origin)).count > 1 {
      let origins = Set(names.compactMap(\.origin)).sorted().joined(separator: ", ")
      throw CommandFailure.failed(
        "\(place.text) has backups of several data directories; choose one with --origin (\(origins)), or a backup with "
          + "--name. `hearth backups list \(arguments.operands[0])` lists them with their directories")
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
    details: """
      Content of files that no other backup has is removed too. A backup that an incremental one needs is removed only
      together with it.

      \(BackupChoice.details)
      """,
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
