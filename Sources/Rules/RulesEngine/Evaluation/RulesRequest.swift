package import DocumentModel
import WireFormat

/// The access to a document that an `allow` statement names.
package enum RulesMethod: String, Sendable, CaseIterable {
  case get, list, create, update, delete

  var asSet: MethodSet {
    switch self {
    case .get: .get
    case .list: .list
    case .create: .create
    case .update: .update
    case .delete: .delete
    }
  }

  /// The name as bytes that are never freed.
  var bytes: UnsafeRawBufferPointer {
    switch self {
    case .get: RuleBytes.of("get")
    case .list: RuleBytes.of("list")
    case .create: RuleBytes.of("create")
    case .update: RuleBytes.of("update")
    case .delete: RuleBytes.of("delete")
    }
  }
}

/// Checks whether a token is still valid before its expiry. Streams and other long-lived connections call it.
package protocol TokenRevocationCheck: AnyObject, Sendable {
  /// A short reason why the token was revoked, or `nil` while it is valid. Cost: a few loads if nothing has changed
  /// that revokes tokens. Called on any thread.
  var revocationReason: String? { get }
  /// The ID of the service key that the token belongs to, or `nil` if it belongs to none.
  var keyID: String? { get }
}

extension TokenRevocationCheck {
  /// By default `nil`: the token belongs to no service key.
  package var keyID: String? { nil }
}

/// The caller's identity: the claims of a verified token as rules see them. Created once per token.
package struct RulesAuth: Sendable, Hashable {
  /// `request.auth.uid`, or `nil` if the token has no user ID.
  package let uid: String?
  /// `request.auth.token`: all claims, in canonical form.
  package let claims: EncodedFields
  /// The expiry of the token in microseconds since 1970, or `nil` if it has none. Rules cannot read it.
  package let expiry: Int64?
  /// Reports an early revocation of the token; `nil` if it cannot be revoked. Rules cannot read it.
  package let revocationCheck: (any TokenRevocationCheck)?
  /// Whether the token belongs to an anonymous user. A client can create any number of anonymous users.
  package let isAnonymous: Bool
  /// ``uid`` as UTF-8.
  let uidBytes: [UInt8]

  /// Encodes the claims. `uid` is usually the claim `sub`.
  package init(
    uid: String?, claims: MapValue, expiry: Int64? = nil, revocationCheck: (any TokenRevocationCheck)? = nil
  ) {
    self.uid = uid
    self.expiry = expiry
    self.revocationCheck = revocationCheck
    self.claims = EncodedFields(claims)
    isAnonymous =
      if case .map(let firebase) = claims["firebase"] {
        firebase["sign_in_provider"] == .string("anonymous")
      } else {
        false
      }
    uidBytes = Array((uid ?? "").utf8)
  }

  /// Whether two identities have equal claims and expiry. ``revocationCheck`` is ignored.
  package static func == (a: RulesAuth, b: RulesAuth) -> Bool {
    a.uidBytes == b.uidBytes && (a.uid == nil) == (b.uid == nil) && a.claims == b.claims && a.expiry == b.expiry
  }

  /// Hashes the properties that ``==(_:_:)`` compares.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(uidBytes)
    hasher.combine(claims)
    hasher.combine(expiry)
  }
}

/// The part of a request that concerns one document, for authorization.
package struct RulesRequest: Sendable {
  package var method: RulesMethod
  /// The database ID, such as `(default)`.
  package var database: String
  /// The document. For ``RulesMethod/list``, the collection, or for a collection group the parent document or the root.
  package var path: ResourcePath
  /// The caller, or `nil` without credentials.
  package var auth: RulesAuth?
  /// `request.time`.
  package var time: Timestamp
  /// The stored fields, or `nil` if the document does not exist. Ignored for queries.
  package var resource: EncodedFields?
  /// The fields after a write, or `nil` for a delete. Ignored for reads.
  package var newResource: EncodedFields?
  /// The query, for ``RulesMethod/list``.
  package var query: Query?
  /// Whether the query is the source of a pipeline. Rules cannot read its limit, offset and order (pipelines.md,
  /// section 7).
  package var isOfPipeline = false
  /// The edition of the database. It determines the values that the filters of a query can find.
  package var edition = Edition.standard
  /// The field paths of the transforms and the mask of a write; `nil` for reads and for writes of whole
  /// documents.
  package var writeFields: [String]?
  /// The field paths of a write's transforms, or `nil` if it has none.
  package var transforms: [String]?
  /// Whether the request belongs to a transaction.
  package var isInTransaction = false
  /// The greatest number of documents that this decision may look up.
  package var lookupsMax = RulesRequest.lookupsMaxPerDocument

  /// The documented limit of lookups for one document or query.
  package static let lookupsMaxPerDocument = 10
  /// The documented limit of lookups for one file.
  package static let lookupsMaxPerFile = 2

  /// A request without fields, query and transaction.
  package init(
    _ method: RulesMethod, _ path: ResourcePath, database: String = "(default)", auth: RulesAuth? = nil,
    time: Timestamp
  ) {
    self.method = method
    self.database = database
    self.path = path
    self.auth = auth
    self.time = time
  }

  /// Calls `body` with the request as borrowed bytes. Cost: no allocation.
  package func withBorrowed<R>(_ body: (BorrowedRulesRequest) -> R) -> R {
    BorrowedRulesRequest.with(method, path, database: database, auth: auth, time: time) { borrowed in
      var borrowed = borrowed
      borrowed.isInTransaction = isInTransaction
      borrowed.isOfPipeline = isOfPipeline
      borrowed.lookupsMax = lookupsMax
      return Self.withBytes(of: resource) { resource in
        borrowed.resource = resource
        return Self.withBytes(of: newResource) { newResource in
          borrowed.newResource = newResource
          return body(borrowed)
        }
      }
    }
  }

  private static func withBytes<R>(of fields: EncodedFields?, _ body: (UnsafeRawBufferPointer?) -> R) -> R {
    guard let fields else { return body(nil) }
    return fields.bytes.withUnsafeBytes { body($0) }
  }
}

/// A request whose bytes the caller owns. They must stay valid during the decision, which reads documents in place.
package struct BorrowedRulesRequest {
  package var method = RulesMethod.get
  /// The database ID, UTF-8.
  package var database = UnsafeRawBufferPointer(start: nil, count: 0)
  /// The bucket's name, UTF-8, if the request is for a file. Then ``database`` is the database of lookups.
  package var bucket: UnsafeRawBufferPointer?
  /// The path below the documents root, or the object's name, UTF-8.
  package var path = UnsafeRawBufferPointer(start: nil, count: 0)
  /// The claims, or `nil` without credentials.
  package var claims: UnsafeRawBufferPointer?
  /// The user ID, UTF-8.
  package var uid: UnsafeRawBufferPointer?
  /// `request.time`.
  package var time = Timestamp(uncheckedMicroseconds: 0)
  /// The stored fields in canonical form, or `nil` if the document does not exist.
  package var resource: UnsafeRawBufferPointer?
  /// The fields after a write, in canonical form.
  package var newResource: UnsafeRawBufferPointer?
  /// Whether the request belongs to a transaction.
  package var isInTransaction = false
  /// Whether the query is the source of a pipeline; see ``RulesRequest/isOfPipeline``.
  package var isOfPipeline = false
  /// The greatest number of documents that this decision may look up.
  package var lookupsMax = RulesRequest.lookupsMaxPerDocument

  /// A `get` with an empty path.
  package init() {}

  /// Calls `body` with a request without fields, query and transaction. Cost: no allocation.
  /// - Throws: The error of `body`.
  package static func with<R>(
    _ method: RulesMethod, _ path: ResourcePath, database: String, auth: RulesAuth?, time: Timestamp,
    _ body: (BorrowedRulesRequest) throws -> R
  ) rethrows -> R {
    var request = BorrowedRulesRequest()
    request.method = method
    request.time = time
    var database = database
    return try database.withUTF8 { database in
      request.database = UnsafeRawBufferPointer(database)
      return try path.bytes.withUnsafeBytes { path in
        request.path = path
        guard let auth else { return try body(request) }
        return try auth.claims.bytes.withUnsafeBytes { claims in
          request.claims = claims
          return try auth.uidBytes.withUnsafeBytes { uid in
            if auth.uid != nil { request.uid = uid }
            return try body(request)
          }
        }
      }
    }
  }
}
