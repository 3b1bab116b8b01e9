import Basics

/// The identity of a database: a project ID and a database ID.
package struct DatabaseID: Hashable, Sendable {
  /// The project ID, such as `demo`.
  package let project: String
  /// The database ID, ``defaultDatabase`` if the client names none.
  package let database: String
  /// A hash of the two parts. Each request looks up its database in several tables.
  private let code: Int

  /// The database ID of a client that names no database.
  package static let defaultDatabase = "(default)"

  /// Creates an identity. Returns `nil` if a part is empty, longer than 100 bytes, or not usable in a resource
  /// name.
  ///
  /// Production requires database IDs of 4 to 63 characters (firestore-api.md, section 0), but emulators accept any
  /// name. This initializer therefore rejects only IDs that would be ambiguous in a resource name or unsafe in a
  /// file name.
  package init?(project: String, database: String = DatabaseID.defaultDatabase) {
    guard DatabaseIDPart.isValid(project), DatabaseIDPart.isValid(database) else { return nil }
    self.project = project
    self.database = database
    var hasher = Hasher()
    hasher.combine(project)
    hasher.combine(database)
    code = hasher.finalize()
  }

  package static func == (a: DatabaseID, b: DatabaseID) -> Bool {
    a.code == b.code && a.project == b.project && a.database == b.database
  }

  package func hash(into hasher: inout Hasher) { hasher.combine(code) }

  /// The resource name, `projects/{project}/databases/{database}`.
  package var name: String { "projects/\(project)/databases/\(database)" }

  /// The name of the documents root, `projects/{project}/databases/{database}/documents`.
  package var documentsRoot: String { name + "/documents" }

  /// The bytes of ``documentsRoot``. Cost: one allocation.
  package var documentsRootBytes: [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(project.utf8.count + database.utf8.count + 32)
    bytes.append(contentsOf: "projects/".utf8)
    bytes.append(contentsOf: project.utf8)
    bytes.append(contentsOf: "/databases/".utf8)
    bytes.append(contentsOf: database.utf8)
    bytes.append(contentsOf: "/documents".utf8)
    return bytes
  }
}

extension DatabaseID: CustomStringConvertible {
  package var description: String { name }
}
