import DocumentModel
import GatewayCore
import Transport
import WireFormat

/// The database of a stream: the one in its first request, otherwise the one in the call's header. Later requests
/// may only repeat it.
struct StreamDatabase {
  private var id: DatabaseID?
  /// The database in the call's header, for a first request without one.
  private let ofHead: DatabaseID?

  /// Creates the state of a stream whose header contains a database, or none.
  init(ofHead: DatabaseID? = nil) { self.ofHead = ofHead }

  /// Creates the state of a stream from its header field `google-cloud-resource-prefix`, or from the parameter
  /// `database` in `x-goog-request-params`.
  init(_ request: borrowing HTTPRequest) {
    self.init(ofHead: Self.prefix(of: request) ?? Self.parameter(of: request))
  }

  /// The database of a project in the call's header, or `nil` if the header names none of that project.
  func databaseOfHead(in project: String) -> String? {
    guard let ofHead, ofHead.project.utf8.elementsEqual(project.utf8) else { return nil }
    return ofHead.database
  }

  /// Returns the stream's database after a request that contains a database, or none.
  ///
  /// - Throws: ``ModelError`` if the request contains another database than before, or no database is known yet.
  mutating func of(_ named: DatabaseID?) throws(ModelError) -> DatabaseID {
    guard let known = id ?? named ?? ofHead else { throw .invalidDatabaseID("") }
    if let named, named != known { throw .otherDatabase(requested: known.name, accessed: named.name) }
    id = known
    return known
  }

  private static func prefix(of request: borrowing HTTPRequest) -> DatabaseID? {
    request.header("google-cloud-resource-prefix").flatMap { try? ResourceName.database($0) }
  }

  private static func parameter(of request: borrowing HTTPRequest) -> DatabaseID? {
    guard let parameters = request.header("x-goog-request-params") else { return nil }
    for parameter in parameters.split(separator: UInt8(ascii: "&")) {
      let parameter = UnsafeRawBufferPointer(rebasing: parameter)
      var name: [UInt8] = []
      guard let value = parameter.dropping("database="), PercentEncoding.decode(value, into: &name) else { continue }
      return try? ResourceName.database(name)
    }
    return nil
  }
}
