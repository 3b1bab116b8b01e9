import DatabaseService
import DocumentModel
import GatewayCore
import Glibc
import Transport
import WireFormat

/// The part of a URL that names documents: a database, and a path from its documents root.
struct DocumentsPath {
  let database: DatabaseID
  /// The name of the database's documents root, in UTF-8.
  let root: [UInt8]
  /// The segments after `documents`, joined by `/`, not checked yet.
  let path: [UInt8]
  /// The number of segments in the path.
  let segmentCount: Int

  /// Reads the captured parts of a route: a project, a database and, if the route captures one, a path. Segments are
  /// decoded after the path was split at `/`.
  ///
  /// - Throws: ``Status`` if the percent-encoding is malformed, ``ModelError`` if no database can have the name, or
  ///   an ID contains an encoded `/`.
  init(_ request: borrowing HTTPRequest, _ call: RoutedCall, usual: UsualDatabase? = nil) throws {
    if let usual, usual.isNamed(by: call.part(0, of: request), call.part(1, of: request)) {
      (database, root) = (usual.id, usual.root)
    } else {
      database = try Self.database(request, call)
      root = database.documentsRootBytes
    }
    (path, segmentCount) = try Self.decoded(call.part(2, of: request))
  }

  /// The spellings of a route's path below a documents root. The first two captured parts are project and database.
  static func patterns(_ path: String) -> [String] {
    ["/v1", "/v1beta1"].map { "\($0)/projects/{project}/databases/{database}/documents/\(path)" }
  }

  /// The spellings of the path of a database's feed.
  static let changesPatterns = ["/v1", "/v1beta1"].map {
    "\($0)/projects/{project}/databases/{database}/documents:changes"
  }

  /// Returns the database that the first two captured parts name.
  ///
  /// - Throws: ``Status`` if the percent-encoding is malformed, ``ModelError`` if no database can have the name.
  static func database(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws -> DatabaseID {
    let (project, database) = (try call.text(0, of: request), try call.text(1, of: request))
    guard let id = DatabaseID(project: project, database: database) else {
      throw ModelError.invalidDatabaseID("\(project)/\(database)")
    }
    return id
  }

  /// Returns the database in the path of a URL, or `nil` if the path is malformed. For errors only.
  static func database(in path: UnsafeRawBufferPointer) -> DatabaseID? {
    let parts = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count > 5, let project = try? RoutedCall.decoded(UnsafeRawBufferPointer(rebasing: parts[3])),
      let database = try? RoutedCall.decoded(UnsafeRawBufferPointer(rebasing: parts[5]))
    else { return nil }
    return DatabaseID(project: project, database: database)
  }

  private static func decoded(_ path: UnsafeRawBufferPointer) throws -> (path: [UInt8], segmentCount: Int) {
    guard !path.isEmpty else { return ([], 0) }
    var decoded: [UInt8] = []
    decoded.reserveCapacity(path.count)
    guard PercentEncoding.decode(path, into: &decoded), PercentEncoding.isUTF8(decoded) else {
      throw Status(.invalidArgument, "Malformed percent-encoding in the path of the URL.")
    }
    let slash = UInt8(ascii: "/")
    let count = path.count { $0 == slash } + 1
    // A `/` that was encoded belongs to an ID, which cannot contain one.
    if decoded.count(where: { $0 == slash }) >= count {
      throw ModelError.slashInResourceID(try segment(withSlash: path))
    }
    return (decoded, count)
  }

  /// Returns the first segment that contains an encoded `/`, decoded.
  private static func segment(withSlash path: UnsafeRawBufferPointer) throws -> String {
    for part in path.split(separator: UInt8(ascii: "/")) {
      let text = try RoutedCall.decoded(UnsafeRawBufferPointer(rebasing: part))
      if text.contains("/") { return text }
    }
    return ""
  }

  /// Returns the document that the path names.
  ///
  /// - Throws: ``ModelError`` with the documented text if the path does not name a document.
  func documentKey() throws -> DocumentKey {
    guard let key = DocumentKey(try ResourcePath(checking: path)) else {
      let name = name
      throw ModelError.nameLacksSlash(name: name, index: name.utf8.count, isParent: false)
    }
    return key
  }

  /// Returns the root or document that the path names, for methods with a parent.
  ///
  /// - Throws: ``ModelError`` if the path does not name one.
  func parent() throws -> ResourcePath {
    let path = try ResourcePath(checking: self.path)
    guard !path.isCollection else {
      let name = name
      throw ModelError.nameLacksSlash(name: name, index: name.utf8.count, isParent: true)
    }
    return path
  }

  /// Returns the collection that the path names.
  ///
  /// - Throws: ``ModelError`` if the path does not name a collection.
  func collection() throws -> ResourcePath {
    let path = try ResourcePath(checking: self.path)
    guard path.isCollection else {
      let parent = ResourceName(database: database, path: path.parent).text
      throw ModelError.nameLacksSlash(name: parent, index: parent.utf8.count, isParent: true)
    }
    return path
  }

  private var name: String {
    path.isEmpty
      ? database.documentsRoot : database.documentsRoot + "/" + String(decoding: path, as: UTF8.self)
  }
}

/// The default database of the server's project, which most requests name. Its names need not be decoded and checked for
/// each request.
struct UsualDatabase: Sendable {
  let id: DatabaseID
  /// The name of its documents root, in UTF-8.
  let root: [UInt8]
  private let project: [UInt8]
  private let database: [UInt8]

  /// Describes the default database of a project; `nil` if no database can have the name.
  init?(of project: String) {
    guard let id = DatabaseID(project: project) else { return nil }
    self.id = id
    root = id.documentsRootBytes
    self.project = Array(id.project.utf8)
    database = Array(id.database.utf8)
  }

  /// Whether parts of a URL are the names of the database, without an encoded character.
  func isNamed(by project: UnsafeRawBufferPointer, _ database: UnsafeRawBufferPointer) -> Bool {
    Self.isEqual(project, self.project) && Self.isEqual(database, self.database)
  }

  private static func isEqual(_ part: UnsafeRawBufferPointer, _ name: [UInt8]) -> Bool {
    guard part.count == name.count, let start = part.baseAddress else { return false }
    return name.withUnsafeBytes { name in name.baseAddress.map { memcmp(start, $0, name.count) == 0 } ?? false }
  }
}
