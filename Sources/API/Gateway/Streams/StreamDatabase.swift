import DocumentModel
import Transport
import WireFormat

/// The database that a stream is to: the one of its first request, or else the one that the call's head names. Later
/// requests may name it again, and no other.
struct StreamDatabase {
  private var id: DatabaseID?
  /// What the head says, for first requests that say nothing.
  private let ofHead: DatabaseID?

  /// A stream whose head names a database, or none.
  init(ofHead: DatabaseID? = nil) { self.ofHead = ofHead }

  /// A stream whose call has these fields: `google-cloud-resource-prefix`, or `x-goog-request-params` with the
  /// parameter `database`.
  init(_ request: borrowing HTTPRequest) {
    self.init(ofHead: Self.prefix(of: request) ?? Self.parameter(of: request))
  }

  /// The database of a request that names one, or none.
  /// - Throws: ``ModelError`` where it is another than before, or where none was ever named.
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
