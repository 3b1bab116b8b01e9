import DocumentModel
import Glibc

extension Command {
  /// Restores a document, a collection or a database as of a past moment.
  static let restore = Command(
    name: "restore", summary: "Restores a document, a collection or a database as it was at a moment.",
    operands: "[PATH]", operandCount: 0...1,
    options: DatabaseChoice.placeOptions + [
      .value("at", "TIME", "the moment, such as 2026-11-22T10:00:00Z, or 15m for 15 minutes ago; required")
    ] + SubtreeRestore.options,
    details: """
      PATH is a document or a collection, which is restored with everything below it. Without PATH, the whole database is
      restored. The verb compares the documents of that moment with those of now, shows the numbers of those that differ,
      and asks for confirmation. Without a terminal, it needs --yes.

      Documents that did not exist at that moment stay, unless --delete-newer is given. With --to, the documents go to
      another path, where you can compare them first.

      The server keeps past states for an hour, or as long as `hearth serve --history` says. For earlier states, use a
      backup: see `hearth backups restore --only`.

      The changes are commits of up to 500 documents. Clients can read and write meanwhile: a document that changes after
      it was compared is not restored. If the verb is interrupted, run it again with the same moment.
      """,
    examples: [
      ("hearth restore users/ann/habits --at 2026-11-22T10:00:00Z --data ./hearth-data", "a collection"),
      ("hearth restore users/ann --at 15m --data ./hearth-data --dry-run", "shows what has changed since"),
      ("hearth restore orders --at 15m --to orders-before --data ./hearth-data", "into another collection"),
      ("hearth restore --at 2026-11-22T10:00:00Z --delete-newer --data ./hearth-data", "the whole database"),
    ],
    run: { arguments in
      let root = try arguments.operands.first.map(DatabaseChoice.path) ?? .root
      guard let text = arguments.value("at") else {
        throw CommandFailure.usage("name the moment with --at, such as --at 2026-11-22T10:00:00Z or --at 15m")
      }
      let client = try ServerClient(ofServerOrDirectory: arguments)
      guard let now = try client.readTimeNow() else {
        throw CommandFailure.failed("\(client.address) does not report its time, so it cannot read in the past")
      }
      let moment: Timestamp
      if let time = Timestamp(rfc3339: text.utf8) {
        moment = time
      } else if let seconds = try? arguments.seconds("at") {
        moment = Timestamp(uncheckedMicroseconds: now.microseconds - Int64(seconds) * 1_000_000)
      } else {
        throw arguments.refusal(of: "at", text, "must be a time such as 2026-11-22T10:00:00Z, or an age such as 15m")
      }
      guard moment < now else {
        throw CommandFailure.failed("\(moment) is in the future; the server's time is \(now)")
      }
      if let oldest = try client.oldestReadTime(), moment < oldest {
        throw CommandFailure.failed(
          "the history of \(client.database) begins at \(oldest), after \(moment); restore an earlier state from a "
            + "backup: `hearth backups restore PLACE --only PATH`")
      }
      let restore = try SubtreeRestore(root, in: client, as: "at \(moment)", arguments)
      var past = ServerSubtree(client, at: root, time: moment)
      return try restore.run(&past)
    })
}
