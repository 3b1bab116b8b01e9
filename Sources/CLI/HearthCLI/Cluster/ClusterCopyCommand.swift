import Basics
import ContentSharing
import Files
import HearthServer
import PostgresEngine
import Replication

extension Command {
  /// Copies the data of a cluster to a data directory.
  static let clusterCopy = Command(
    name: "cluster copy", summary: "Copies the data of a cluster to a directory, or brings an earlier copy up to date.",
    operands: "[POSTGRES-URL] DIR", operandCount: 1...2,
    options: [
      ClusterAddress.keyOption,
      .flag("quiet", "show no progress and no summary"),
    ] + SharedFilesOption.options,
    details: """
      The copy has everything that was committed before the verb began: documents, accounts with their keys, files, and the
      rules and indexes that are deployed. It is an ordinary data directory: a server alone can serve it, and the verbs that
      read a directory can, such as `hearth backups create`, `hearth export` and `hearth check`.

      The verb reads PostgreSQL and asks no node, so it also works while no node runs. DIR must not exist, be empty, or be a
      copy of the same cluster: then the verb reads only what is new since the last time. While it runs, and after an
      interruption, other verbs refuse DIR; run the verb again then. A server that served the copy has made it data of its
      own: the verb refuses DIR, and another directory can become the next copy.

      All copies of a cluster have one identity for `hearth backups`, so that a backup of one copy continues those of another.

      Name the place of the files with --shared-files if the nodes have this option. The exit code is 1 if the content of a
      file cannot be found there; everything else is copied then.

      \(ClusterAddress.details)
      """,
    examples: [
      ("hearth cluster copy postgres://hearth@pg1,pg2/hearth /var/lib/hearth/copy --key cluster.key", "everything"),
      ("hearth cluster copy /var/lib/hearth/copy", "what is new, with the URL in HEARTH_CLUSTER"),
      (
        "hearth backups create /var/backups/hearth --data /var/lib/hearth/copy --incremental --keep 14",
        "then a backup of it"
      ),
    ],
    run: { arguments in
      guard let path = arguments.operands.last.map(LocalPath.withoutLastSlashes), !PostgresURL.isOne(path) else {
        throw CommandFailure.usage("an operand is missing: DIR")
      }
      let url = try ClusterAddress.url(arguments.operands.count == 2 ? arguments.operands[0] : nil)
      let place = try SharedFilesOption.place(arguments) { try PostgresContent(url) } ?? PostgresContent(url)
      let identity = try ClusterSchema.check(at: url)
      let key = try ClusterKey.read(arguments.value("key")).key
      try identity.check(keyCheck: try key.check())
      let copy = try ClusterCopy(directory: path, of: identity, at: url, key: key)
      // All copies of a cluster continue the same backups.
      try BackupOrigin.identify(path, as: String(Hexadecimal.text(identity.id).prefix(BackupOrigin.digits)))
      // No backup reads the directory meanwhile.
      let lock = try BackupOrigin(of: path)
      defer { withExtendedLifetime(lock) {} }
      let run = CopyRun(copy: copy, isQuiet: arguments.has("quiet"))
      try run.refresh()
      var files = try run.copyFiles(place)
      if let found = files, found.problemCount > 0 {
        // Objects that were deleted during a long run have no content any more.
        try run.refresh()
        files = try run.copyFiles(place)
      }
      let options = try copy.finish()
      guard let files, files.problemCount > 0 else {
        run.say("to serve it alone: \(run.serving(identity.project, options))\n")
        return 0
      }
      for problem in files.problems { Terminal.error.write("hearth: \(TerminalText.line(problem))\n") }
      throw CommandFailure.failed(
        "contents of files without an intact copy: \(files.problemCount); everything else was copied to \(path)")
    })
}

/// One run of `hearth cluster copy`, as a person sees it.
private struct CopyRun {
  private let copy: ClusterCopy
  private let isQuiet: Bool

  init(copy: ClusterCopy, isQuiet: Bool) { (self.copy, self.isQuiet) = (copy, isQuiet) }

  func say(_ text: String) { if !isQuiet { Terminal.output.write(text) } }

  func refresh() throws {
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    let start = Progress.now()
    let end = try copy.refresh { [path = copy.path] state in
      switch state {
      case .loading(let bytes, let total):
        progress.show(
          ProgressText.bytes(
            Int(bytes), of: Int(total), "of a snapshot loaded", milliseconds: Int(Progress.now() - start)))
      case .applied(let sequence, let end):
        let (done, all) = (ProgressText.number(Int(clamping: sequence)), ProgressText.number(Int(clamping: end)))
        progress.show("entry \(done) of \(all) of the log applied")
      case .aside(let folder):
        progress.clear()
        Terminal.error.write(
          "hearth: the log has lost commits that \(path) has; its former data is moved to \(path)/\(folder)\n")
      }
    }
    progress.clear()
    say("\(copy.path) has the log up to entry \(end)\n")
  }

  func copyFiles(_ place: any SharedContent) throws -> SharedFilesCopy? {
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    let start = Progress.now()
    let files = try copy.copyFiles(from: place) { bytes in
      progress.show(
        ProgressText.bytes(bytes, of: nil, "of files copied", milliseconds: Int(Progress.now() - start)))
    }
    progress.clear()
    guard let files else { return nil }
    say("copied \(ByteCount.text(ofFiles: files.fetched, files.bytes)) from \(place.place)\n")
    return files
  }

  /// Whether a byte needs no quotes in a command line.
  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "-_./=:@+,%".utf8.contains(byte)
    }
  }

  /// The command that serves the copy.
  func serving(_ project: String, _ options: [String]) -> String {
    (["hearth", "serve", "--project", project, "--data", copy.path] + options).map { word in
      word.utf8.allSatisfy(Self.isPlain) ? word : Shell.quoted(word)
    }.joined(separator: " ")
  }
}
