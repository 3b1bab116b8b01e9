import DocumentStore
import Files
import HearthServer
import KeyValue
import LMDBEngine
import LogEngine

extension Command {
  /// The child process of `check`: verifies one database file, and may crash on damage. See ``ChildCheck``.
  ///
  /// If the file cannot be read to its end, it prints a problem and no `done`.
  static let checkFile = Command(
    name: "check-file", summary: "Verifies one database file; `hearth check` runs it.", operands: "FILE",
    operandCount: 1...1, isHidden: true,
    run: { arguments in
      do throws(StorageError) {
        let store = try StoredDatabase.openReadOnly(LMDBOptions(path: arguments.operands[0]))
        // Both checks read every row.
        let rows = try store.statistics().entries
        Terminal.output.write("total \(2 * rows)\n")
        // The rows in the log are only in memory.
        _ = try store.base.verify { count in Terminal.output.write("progress \(count)\n") }
        let snapshot = try store.snapshot()
        let report = try DatabaseCheck.run(snapshot) { count in
          Terminal.output.write("progress \(rows + count)\n")
        }
        snapshot.end()
        ChildCheck.print(problems: report.problems, count: report.problemCount)
        Terminal.output.write(
          "done \(report.documents) \(report.collections) \(report.indexEntries) \(report.history) \(report.changes)\n")
        return report.problemCount == 0 ? 0 : ExitCode.failure
      } catch {
        ChildCheck.print(problem: text(of: error))
        return ExitCode.failure
      }
    })

  /// The child process of `check` for files: verifies the metadata and every content of a data directory.
  static let checkFiles = Command(
    name: "check-files", summary: "Verifies the files of a data directory; `hearth check` runs it.", operands: "DIR",
    operandCount: 1...2, isHidden: true,
    run: { arguments in
      do {
        let owner = arguments.operands.count > 1 ? arguments.operands[1] : nil
        guard let (metadata, contents, lock) = try DirectoryReader(arguments.operands[0]).openFiles(of: owner) else {
          return 0
        }
        _ = try metadata.verify { _ in Terminal.output.write("progress 0\n") }
        let check = try withExtendedLifetime(lock) {
          try FilesCheck(metadata, contents) { bytes in Terminal.output.write("progress \(bytes >> 20)\n") }
        }
        ChildCheck.print(problems: check.problems, count: check.problemCount)
        Terminal.output.write(
          "done \(check.objects) \(check.contents) \(check.contentBytes) \(check.uploads) \(check.orphans)\n")
        return check.problemCount == 0 ? 0 : ExitCode.failure
      } catch {
        ChildCheck.print(problem: (error as? StorageError).map(text) ?? CommandFailure(error).message)
        return ExitCode.failure
      }
    })

  private static func text(of error: StorageError) -> String {
    guard case .corruption(let path, let detail) = error else { return error.description }
    return path.hasSuffix(CheckReport.logSuffix) ? "\(CheckReport.logProblem)\(path): \(detail)" : detail
  }
}
