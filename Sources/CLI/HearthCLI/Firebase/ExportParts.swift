/// The parts of a Firebase project that an import or an export covers.
struct ExportParts: OptionSet {
  let rawValue: Int

  static let documents = ExportParts(rawValue: 1)
  static let accounts = ExportParts(rawValue: 2)
  static let files = ExportParts(rawValue: 4)
  static let all: ExportParts = [.documents, .accounts, .files]

  /// The parts by the names that firebase-tools has for them.
  private static let names: [(name: String, part: ExportParts)] = [
    ("firestore", .documents), ("auth", .accounts), ("storage", .files),
  ]

  /// The names, separated by commas, as `--only` takes them.
  var text: String { Self.names.filter { contains($0.part) }.map(\.name).joined(separator: ",") }

  static let option = Command.Option.value(
    "only", "PARTS", "with a Firebase export: firestore, auth, storage, separated by commas (default: all)")

  /// Returns the parts that `--only` names, or all.
  /// - Throws: ``CommandFailure`` if it names an unknown part.
  static func chosen(_ arguments: Arguments) throws -> ExportParts {
    guard let text = arguments.value("only") else { return .all }
    var parts: ExportParts = []
    for word in text.split(separator: ",", omittingEmptySubsequences: false) {
      guard let part = names.first(where: { $0.name == word })?.part else {
        throw arguments.refusal(
          of: "only", text, "must be a list of firestore, auth and storage, such as firestore,auth")
      }
      parts.insert(part)
    }
    return parts
  }
}
