package import DocumentModel
package import DocumentStore

/// The calls of `google.firestore.v1.Firestore`, one file each, for every dialect.
///
/// A call is a synchronous function on the caller's thread; only what commits is answered later. Errors are
/// ``Status`` once they passed ``Status/init(_:database:)``, which the dialects do at their edge.
package final class Service: Sendable {
  /// Who may call before security rules decide.
  package enum Admission: Sendable {
    /// Everybody: emulator mode without rules.
    case everybody
    /// Nobody: production mode without rules.
    case nobody
  }

  /// The databases it serves.
  package let databases: DatabaseRegistry
  private let admission: Admission
  /// Whether queries are refused that production would refuse for want of an index.
  let requiresIndexes: Bool
  /// What queries came, for suggestions of indexes.
  let seenQueries = SeenQueries()

  /// Creates a service.
  package init(databases: DatabaseRegistry, admission: Admission, requiresIndexes: Bool = false) {
    self.databases = databases
    self.admission = admission
    self.requiresIndexes = requiresIndexes
  }

  /// Lets the caller in, or not.
  /// - Throws: `PERMISSION_DENIED` where nobody is admitted.
  func admit() throws {
    guard admission == .everybody else {
      throw Status(.permissionDenied, "Missing or insufficient permissions.")
    }
  }

  /// The edition of the database a call is for, whether it is served or not. Requests are decoded by its rules.
  package func edition(of id: DatabaseID) -> Edition { databases.edition(of: id) }

  /// The database a call is for.
  /// - Throws: `PERMISSION_DENIED` where nobody is admitted, `NOT_FOUND` where it is not served.
  package func database(_ id: DatabaseID) throws -> DocumentDatabase {
    try admit()
    guard let database = try databases.database(id) else {
      throw Status(
        .notFound,
        "The database \(id.database) does not exist for project \(id.project). "
          + "Start hearth with --project \(id.project) to declare it.")
    }
    return database
  }
}
