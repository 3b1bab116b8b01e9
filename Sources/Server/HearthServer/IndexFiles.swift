import DocumentModel
import DocumentStore
import FixtureTree
import Synchronization
import TextAnalysis

/// The parsed index files of a configuration.
struct IndexFiles: Sendable {
  private var configurations: [(database: String, indexes: IndexConfiguration)] = []

  /// Reads the files.
  /// - Throws: ``HearthError/data(_:)`` for the first mistake, with its location; ``HearthError/configuration(_:)``
  ///   if a database has two files.
  init(_ files: [HearthConfiguration.DatabaseFile]) throws(HearthError) {
    for file in files {
      guard configuration(ofDatabase: file.database) == nil else {
        throw .configuration("database \(file.database) has two index files; specify only one")
      }
      do throws(FixtureTreeError) {
        configurations.append((file.database, try IndexFile.read(file: file.path)))
      } catch { throw .data(error.description) }
      if configurations.contains(where: { $0.indexes.indexes.contains { $0.textLanguage != nil } }),
        let reason = TextAnalyzer.unavailableReason
      {
        throw .configuration("\(file.path) declares a text index, but \(reason)")
      }
    }
  }

  /// Returns the indexes declared for a database, or `nil` if it has no file.
  func configuration(of id: DatabaseID) -> IndexConfiguration? { configuration(ofDatabase: id.database) }

  private func configuration(ofDatabase id: String) -> IndexConfiguration? {
    configurations.first { $0.database.utf8.elementsEqual(id.utf8) }?.indexes
  }
}

/// A log of background work on indexes. It writes each change as one line.
final class IndexLog: Sendable {
  private let write: @Sendable (String) -> Void
  private let last = Mutex<[DatabaseID: [IndexReport]]>([:])

  init(_ write: @escaping @Sendable (String) -> Void) { self.write = write }

  /// The observer to pass to a database registry.
  var observer: @Sendable (DatabaseID, [IndexReport]) -> Void {
    { id, reports in self.note(reports, of: id) }
  }

  private func note(_ reports: [IndexReport], of id: DatabaseID) {
    let before = last.withLock { last in
      defer { last[id] = reports }
      return last[id] ?? []
    }
    for report in reports where !before.contains(report) {
      // An index that was ready from the start is not reported.
      if report.state == .ready, !before.contains(where: { $0.text == report.text }) { continue }
      write("\(id.name): index \(report.line)")
    }
    for report in before where !reports.contains(where: { $0.text == report.text }) {
      write("\(id.name): index \(report.text): removed")
    }
  }
}
