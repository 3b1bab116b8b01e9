import DatabaseService
import DocumentModel
import Transport

/// What a URL names that is about a database and not about its documents:
/// `projects/{project}/databases/{database}/{rest}`.
struct DatabaseRoute: Sendable {
  let database: DatabaseID
  /// What follows the database, decoded.
  let rest: String

  /// Parses a path without its front, or returns `nil` where it is none, or one of documents.
  /// - Throws: ``Status`` for bad encoding, ``ModelError`` for names that no database can have.
  init?(_ path: UnsafeRawBufferPointer) throws {
    var decoded: [UInt8] = []
    guard PercentEncoding.decode(path, into: &decoded), PercentEncoding.isUTF8(decoded) else {
      throw Status(.invalidArgument, "Malformed percent-encoding in the path of the URL.")
    }
    let parts = decoded.split(separator: UInt8(ascii: "/"), maxSplits: 4, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    guard parts.count == 5, parts[0] == "projects", parts[2] == "databases" else { return nil }
    rest = parts[4]
    if rest == "documents" || rest.hasPrefix("documents/") || rest.hasPrefix("documents:") { return nil }
    guard let id = DatabaseID(project: parts[1], database: parts[3]) else {
      throw ModelError.invalidDatabaseID("\(parts[1])/\(parts[3])")
    }
    database = id
  }
}
