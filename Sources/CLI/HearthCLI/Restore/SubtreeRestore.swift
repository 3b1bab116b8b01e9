import DocumentModel
import Glibc

/// Makes a document or a collection, with everything below it, equal to a past state.
struct SubtreeRestore {
  static let options: [Command.Option] = [
    .value("to", "PATH", "restore to this path instead, of the same kind: a document or a collection"),
    .flag("delete-newer", "also delete the documents that did not exist then"),
    .flag("dry-run", "only show what would change"),
    .flag("yes", "do not ask for confirmation"),
    .flag("quiet", "show no progress"),
  ]

  private let client: ServerClient
  private let root: ResourcePath
  private let target: ResourcePath
  /// The moment of the past state, as messages show it.
  private let moment: String
  private let arguments: Arguments

  /// Prepares a restore of `root` into the database of `client`.
  /// - Throws: ``CommandFailure`` if `--to` does not fit.
  init(_ root: ResourcePath, in client: ServerClient, as moment: String, _ arguments: Arguments) throws {
    (self.client, self.root, self.moment, self.arguments) = (client, root, moment, arguments)
    target = try arguments.value("to").map(DatabaseChoice.path) ?? root
    guard target.isCollection == root.isCollection, target.isRoot == root.isRoot else {
      throw CommandFailure.usage(
        "--to must name a \(root.isCollection ? "collection" : "document") as the restored path does")
    }
    guard target == root || !target.isAtOrBelow(root) && !root.isAtOrBelow(target) else {
      throw CommandFailure.usage("--to must not be above or below the restored path")
    }
  }

  /// Compares the past with the present, asks, and changes what differs. Returns the exit code.
  /// - Throws: ``CommandFailure`` if a request fails, or the user does not agree.
  func run(_ past: inout some Subtree) throws -> Int32 {
    var progress = Progress(isQuiet: arguments.has("quiet"))
    defer { progress.clear() }
    let plan = try RestorePlan()
    var present = ServerSubtree(client, at: target, time: nil)
    try plan.compare(&past, with: &present, deletesNewer: arguments.has("delete-newer"), place: place) {
      progress.show($0, "documents compared")
    }
    progress.clear()
    let counts = plan.counts
    let shown = TerminalText.line(target.isRoot ? "\(client.database)" : "\(target)")
    guard counts.created + counts.changed + counts.unchanged + counts.deleted + counts.kept > 0 else {
      throw CommandFailure.failed("no documents at or below \(shown), neither now nor \(moment)")
    }
    guard counts.changes > 0 else {
      Terminal.output.write("\(shown) is as it was \(moment)\(Self.kept(counts))\n")
      return 0
    }
    let summary = "\(Self.text(counts))\(Self.kept(counts))"
    guard !arguments.has("dry-run") else {
      Terminal.output.write("restoring \(shown) as it was \(moment) would change: \(summary)\n")
      return 0
    }
    if !arguments.has("yes") {
      let question = "Restore \(shown) as it was \(moment)? \(summary)."
      guard isatty(STDIN_FILENO) == 1, Terminal.error.isTerminal else {
        throw CommandFailure.failed("nothing was changed; \(summary). To restore without a question, add --yes")
      }
      guard Terminal.confirm(question) else { throw CommandFailure.failed("nothing was changed") }
    }
    let skipped = try apply(plan, &progress)
    progress.clear()
    Terminal.output.write("restored \(shown) as it was \(moment): \(summary)\n")
    guard skipped > 0 else { return 0 }
    throw CommandFailure.failed(
      "\(CountText.grouped(skipped, "document")) changed during the restore and "
        + "\(CountText.noun(skipped, "was", "were")) not restored; run the command again to restore "
        + "\(CountText.noun(skipped, "it", "them")) too")
  }

  /// Returns the name of a document of the past in the target.
  private func place(_ key: DocumentKey) -> DocumentKey {
    guard target != root else { return key }
    return DocumentKey(
      uncheckedPath: ResourcePath(uncheckedBytes: target.bytes + key.path.bytes.dropFirst(root.bytes.count)))
  }

  /// Commits the changes. Returns the number of documents that changed since the plan was made, and stay.
  private func apply(_ plan: RestorePlan, _ progress: inout Progress) throws -> Int {
    let retries = Retries(hasResponded: true)
    var (done, skipped) = (0, 0)
    let total = plan.counts.changes
    progress.restart()
    try plan.forEachBatch { batch in
      if try !commit(batch[...], retries) {
        // One of the documents changed. The others can be restored one by one.
        for index in batch.indices where try !commit(batch[index...index], retries) {
          if try !isRestored(batch[index], retries) { skipped += 1 }
        }
      }
      done += batch.count
      progress.show(done, "documents restored", fraction: Double(done) / Double(total))
    }
    return skipped
  }

  /// Commits changes atomically. Returns false if a document is no longer as planned.
  private func commit(_ batch: ArraySlice<RestorePlan.Change>, _ retries: Retries) throws -> Bool {
    do {
      _ = try retries.run { _ in
        do {
          return try client.commit(batch.map(\.change), if: batch.map(\.condition))
        } catch var failure as CommandFailure where Self.isConflict(failure) {
          failure.isTemporary = false
          throw failure
        }
      }
      return true
    } catch let failure as CommandFailure where Self.isConflict(failure) {
      return false
    }
  }

  /// Whether a condition of a commit was not fulfilled.
  private static func isConflict(_ failure: CommandFailure) -> Bool {
    switch failure.httpStatus {
    case 400: failure.message.contains("FAILED_PRECONDITION")
    case 404: failure.message.contains("NOT_FOUND")
    case 409: failure.message.contains("ALREADY_EXISTS")
    default: false
    }
  }

  /// Whether a document is as the change makes it: the response of an earlier commit may have been lost.
  private func isRestored(_ change: RestorePlan.Change, _ retries: Retries) throws -> Bool {
    switch change.change {
    case .delete(let key): return try retries.run { _ in try client.get(key) } == nil
    case .set(let key, let fields): return try retries.run { _ in try client.get(key)?.fields.bytes } == fields.bytes
    }
  }

  private static func text(_ counts: RestorePlan.Counts) -> String {
    var parts: [String] = []
    if counts.created > 0 { parts.append("\(CountText.grouped(counts.created, "document")) created") }
    if counts.changed > 0 { parts.append("\(ProgressText.number(counts.changed)) changed back") }
    if counts.deleted > 0 { parts.append("\(ProgressText.number(counts.deleted)) deleted") }
    parts.append("\(ProgressText.number(counts.unchanged)) unchanged")
    return parts.joined(separator: ", ")
  }

  private static func kept(_ counts: RestorePlan.Counts) -> String {
    counts.kept > 0 ? "; \(CountText.grouped(counts.kept, "newer document")) kept (delete with --delete-newer)" : ""
  }
}
