/// The parts of a Firebase export that an import or an export covers.
package struct ExportParts: OptionSet, Sendable {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }

  package static let documents = ExportParts(rawValue: 1)
  package static let accounts = ExportParts(rawValue: 2)
  package static let files = ExportParts(rawValue: 4)
  package static let all: ExportParts = [.documents, .accounts, .files]

  /// The parts by the names that firebase-tools has for them.
  package static let names: [(name: String, part: ExportParts)] = [
    ("firestore", .documents), ("auth", .accounts), ("storage", .files),
  ]

  /// The names, separated by commas, as `--only` takes them.
  package var text: String { Self.names.filter { contains($0.part) }.map(\.name).joined(separator: ",") }
}
