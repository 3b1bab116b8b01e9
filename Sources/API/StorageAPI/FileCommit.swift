import GatewayCore
import DatabaseService
package import DocumentModel
import Files
import WireFormat

/// Documents that an administrator commits together with a file: the body of a Commit request, in the member
/// `commit` of the file's metadata.
struct FileCommit: Sendable {
  /// The database of all writes.
  let database: DatabaseID
  /// The writes, at least one.
  let writes: [Write]

  /// Reads a CommitRequest without a transaction.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the request is malformed, contains no writes, or writes to several
  ///   databases.
  init(_ value: JSONValue) throws(FilesError) {
    var found: [AddressedWrite] = []
    do throws(WireError) {
      let decoder = JSONMessageDecoder()
      var members = try decoder.members(of: value, "google.firestore.v1.CommitRequest")
      while let (name, value) = members.next() {
        switch name {
        case "writes":
          decoder.enter("writes")
          found = try decoder.writes(value)
          decoder.leave()
        case "database": break
        default: throw decoder.unknown(name)
        }
      }
    } catch { throw .invalid("commit: \(Status(error, database: nil).message)") }
    guard let database = found.first?.database else {
      throw .invalid("commit: there is nothing to commit; send {\"writes\": […]}.")
    }
    guard found.allSatisfy({ $0.database == database }) else {
      throw .invalid("commit: all writes must be in one database.")
    }
    self.database = database
    writes = found.map(\.write)
  }
}

extension StorageRequest {
  /// Stores an object and commits documents: both or neither.
  ///
  /// - Throws: ``FilesError/commitRefused(httpStatus:message:fault:)`` if the documents cannot be committed; other
  ///   ``FilesError`` cases if the object cannot be stored.
  func put(
    _ name: ObjectName, _ incoming: IncomingContent, _ attributes: ObjectAttributes, declared: DeclaredChecksums,
    conditions: ObjectConditions, with commit: FileCommit
  ) throws(FilesError) -> (object: StoredObject, outcome: CommitOutcome?) {
    var outcome: CommitOutcome?
    let documents = DocumentsCommit(database: FileCommitDatabase.text(of: commit.database)) {
      (number) throws(FilesError) in
      do {
        outcome = try authorizer.service.commit(commit.writes, mark: number, in: commit.database, as: caller)
      } catch {
        let status = Status(error, database: commit.database)
        throw .commitRefused(
          httpStatus: ErrorJSON.httpStatus(status.code), message: status.message, fault: status.fault)
      }
    }
    let object = try store.put(
      name, incoming, attributes, declared: declared, conditions: conditions, with: documents)
    return (object, outcome)
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
