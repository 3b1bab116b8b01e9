import DatabaseService
import Files
import FileService
import WireFormat

/// The JSON form: the body of a Commit request, in the member `commit` of the file's metadata.
extension FileCommit {
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
    self.init(found.map(\.write), in: database)
  }
}
