import DatabaseService
import FirebaseExport

/// The outcome of an import or export of several parts, and the texts that report it.
struct ExportSummary {
  var documents: ImportOutcome?
  var accounts: ExportedAccounts.Outcome?
  var files: ExportedFiles.Outcome?

  /// Adds the outcome of one export's accounts.
  mutating func add(_ outcome: ExportedAccounts.Outcome) {
    var sum = accounts ?? ExportedAccounts.Outcome()
    sum.imported += outcome.imported
    sum.failed += outcome.failed
    sum.plainPasswords += outcome.plainPasswords
    accounts = sum
  }

  /// Adds the outcome of one export's files.
  mutating func add(_ outcome: ExportedFiles.Outcome) {
    var sum = files ?? ExportedFiles.Outcome()
    sum.files += outcome.files
    sum.bytes += outcome.bytes
    sum.failed += outcome.failed
    files = sum
  }

  /// Whether accounts or files were rejected.
  var hasFailures: Bool { (accounts?.failed ?? 0) + (files?.failed ?? 0) > 0 }

  /// Returns a line such as `imported 43 documents, 2 accounts, 5 files, 12 KiB`.
  func text(_ verb: String) -> String {
    var parts: [String] = []
    if let documents {
      let unchanged = documents.unchanged > 0 ? " (\(documents.unchanged) unchanged)" : ""
      parts.append("\(CountText.of(documents.documents, "document"))\(unchanged)")
    }
    if let accounts, accounts.imported > 0 { parts.append(CountText.of(accounts.imported, "account")) }
    if let files, files.files > 0 { parts.append(ByteCount.text(ofFiles: files.files, files.bytes)) }
    return "\(verb) \(parts.isEmpty ? "nothing" : parts.joined(separator: ", "))"
  }

  /// Facts about an import that a user should know.
  var notes: [String] {
    var notes: [String] = []
    if let references = documents?.references {
      if references.rewritten > 0 {
        notes.append(
          "rewrote \(CountText.of(references.rewritten, "reference")) to the database that receives the documents")
      }
      if references.foreign > 0 {
        notes.append("kept \(CountText.of(references.foreign, "reference")) to other projects or databases")
      }
    }
    if let accounts, accounts.plainPasswords > 0 {
      notes.append(
        "the export contains the passwords of \(CountText.of(accounts.plainPasswords, "account")) as text; "
          + "keep it secret"
      )
    }
    if let accounts, accounts.failed > 0 {
      notes.append("\(CountText.of(accounts.failed, "account")) could not be imported")
    }
    if let files, files.failed > 0 { notes.append("\(CountText.of(files.failed, "file")) could not be imported") }
    return notes
  }

}
