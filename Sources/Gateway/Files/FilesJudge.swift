import DatabaseService
import Files

/// Who may do what to objects: administrators everything, others what rules allow.
struct FilesJudge: Sendable {
  /// What a request does to an object.
  enum Method: String, Sendable { case get, list, create, update, delete }

  /// Whether denials say what is missing: emulator mode.
  let explains: Bool

  /// Refuses what a caller may not do. `name` is an object's, or for a list the prefix without its last slash.
  /// - Throws: ``FilesError/denied(_:)``.
  func require(
    _ method: Method, _ name: ObjectName, as caller: Caller, before: StoredObject?, after: StoredObject?
  ) throws(FilesError) {
    if case .admin = caller { return }
    guard !explains else { throw .denied("Permission denied. Storage Emulator has no loaded ruleset.") }
    throw .denied("Permission denied.")
  }
}
