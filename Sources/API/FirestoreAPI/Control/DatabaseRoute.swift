import DatabaseService
import DocumentModel
import Transport

/// A URL about a database rather than its documents: `projects/{project}/databases/{database}/{rest}`.
struct DatabaseRoute: Sendable {
  let database: DatabaseID
  /// The part of the path after the database, decoded.
  let rest: String

  /// Parses a path without its prefix. Returns `nil` if it is not about a database, or about documents.
  ///
  /// - Throws: ``Status`` if the percent-encoding is malformed, ``ModelError`` if no database can have the name.
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
