import FirebaseExport

extension ExportParts {
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
