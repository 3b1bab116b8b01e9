import DocumentStore
import KeyValueStore
import LMDBStore

extension Command {
  /// The child of `check`: verifies one file and may die of it.
  ///
  /// Prints lines for its parent: `progress N`, `problem TEXT`, and at the end `done` with the counts. A file that
  /// cannot be read on ends with a problem too, without `done`.
  static let checkFile = Command(
    name: "check-file", summary: "Verifies one data file; run by check.", operands: "FILE", operandCount: 1...1,
    isHidden: true,
    run: { arguments in
      do throws(StorageError) {
        let store = try LMDBStore.open(LMDBOptions(path: arguments.operands[0], readOnly: true))
        _ = try store.verify { count in Terminal.output.write("progress \(count)\n") }
        let snapshot = try store.snapshot()
        let report = try DatabaseCheck.run(snapshot) { count in Terminal.output.write("progress \(count)\n") }
        snapshot.end()
        for problem in report.problems { Terminal.output.write("problem \(oneLine(problem))\n") }
        if report.problemCount > report.problems.count {
          Terminal.output.write("problem and \(report.problemCount - report.problems.count) more\n")
        }
        Terminal.output.write(
          "done \(report.documents) \(report.collections) \(report.indexEntries) \(report.history) \(report.changes)\n")
        return report.problemCount == 0 ? 0 : ExitCode.failure
      } catch {
        let text = if case .corruption(_, let detail) = error { detail } else { error.description }
        Terminal.output.write("problem \(oneLine(text))\n")
        return ExitCode.failure
      }
    })

  private static func oneLine(_ text: String) -> String {
    String(text.map { $0.isNewline ? " " : $0 })
  }
}
