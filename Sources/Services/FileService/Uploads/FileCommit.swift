package import DocumentModel

/// Documents that an administrator commits together with an object: both or neither.
package struct FileCommit: Sendable {
  /// The database of all writes.
  package let database: DatabaseID
  /// The writes, at least one.
  package let writes: [Write]

  /// Describes a commit.
  package init(_ writes: [Write], in database: DatabaseID) {
    self.database = database
    self.writes = writes
  }
}

/// The text form of a database's name in the metadata of files.
package enum FileCommitDatabase {
  /// The form `PROJECT/DATABASE`.
  static func text(of id: DatabaseID) -> String { "\(id.project)/\(id.database)" }

  /// Parses `PROJECT/DATABASE`. Returns `nil` if the text has another form.
  package static func id(_ text: String) -> DatabaseID? {
    let parts = text.utf8.split(separator: UInt8(ascii: "/")).map { String(Substring($0)) }
    return parts.count == 2 ? DatabaseID(project: parts[0], database: parts[1]) : nil
  }
}
