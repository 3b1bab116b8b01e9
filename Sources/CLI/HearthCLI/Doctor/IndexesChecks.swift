import DocumentModel
import FixtureTree
import HearthServer
import TextAnalysis

/// Checks the index files.
struct IndexesChecks {
  let configuration: HearthConfiguration

  func findings() -> [Finding] {
    let topic = "indexes"
    guard !configuration.indexes.isEmpty else {
      guard configuration.requiresIndexes else { return [] }
      let text = "--require-indexes without --indexes: the server refuses queries that need a composite index"
      return [.warning(topic, text, "Add --indexes firestore.indexes.json; 'hearth indexes suggest' prints one.")]
    }
    var databases: [String] = []
    return configuration.indexes.map { file in
      guard !databases.contains(file.database) else {
        return .problem(topic, "database \(file.database) has two index files", "Remove one of them.")
      }
      databases.append(file.database)
      do throws(FixtureTreeError) {
        let declared = try IndexFile.read(file: file.path)
        if declared.indexes.contains(where: { $0.textLanguage != nil }), let reason = TextAnalyzer.unavailableReason {
          return .problem(
            topic, "\(file.path) declares a text index, but \(reason)",
            "Install the package: the server would not start.")
        }
        let (indexes, fields) = (declared.indexes.count, declared.fields.count)
        return .ok(
          topic, "\(file.path): \(CountText.of(indexes, "index", "indexes")), \(CountText.of(fields, "field"))")
      } catch {
        return .problem(topic, error.description, "Correct it, or name another file: the server would not start.")
      }
    }
  }
}
