package import DocumentModel
import WireFormat

/// What a request does to a document, as rules tell requests apart.
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

  /// The name as bytes that live forever.
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

/// What may end a token before its time. Asked by whatever stays open on the strength of one.
package protocol TokenRevocationCheck: AnyObject, Sendable {
  /// Why the token counts no more, in a few words; `nil` where it does. Cost: a few loads while nothing has changed that
  /// ends tokens; called on any thread.
  var revocationReason: String? { get }
}

/// Who asks: the claims of a verified token, as rules see them. Made once per token.
package struct RulesAuth: Sendable, Hashable {
  /// `request.auth.uid`; `nil` when the token names nobody.
  package let uid: String?
  /// `request.auth.token`: all claims, in canonical form.
  package let claims: EncodedFields
  /// When the token is over, in microseconds since 1970; `nil` where nobody said. Rules do not see it.
  package let expiry: Int64?
  /// What may end the token early; `nil` where nothing does. Rules do not see it.
  package let revocationCheck: (any TokenRevocationCheck)?
  /// Whether it is a guest's token: one of somebody who said nothing of who they are, and may come as any number.
  package let isGuest: Bool
  /// ``uid`` as UTF-8.
  let uidBytes: [UInt8]

  /// Encodes the claims. `uid` is usually the claim `sub`.
  package init(uid: String?, claims: MapValue, expiry: Int64? = nil, revocationCheck: (any TokenRevocationCheck)? = nil) {
    self.uid = uid
    self.expiry = expiry
    self.revocationCheck = revocationCheck
    self.claims = EncodedFields(claims)
    isGuest = if case .map(let firebase) = claims["firebase"] {
      firebase["sign_in_provider"] == .string("anonymous")
    } else {
      false
    }
    uidBytes = Array((uid ?? "").utf8)
  }

  /// Whether they say the same; what may end them does not count.
  package static func == (a: RulesAuth, b: RulesAuth) -> Bool {
    a.uidBytes == b.uidBytes && (a.uid == nil) == (b.uid == nil) && a.claims == b.claims && a.expiry == b.expiry
  }

  /// Feeds what ``==(_:_:)`` compares.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(uidBytes)
    hasher.combine(claims)
    hasher.combine(expiry)
  }
}

/// One document's part in a request, to be judged.
package struct RulesRequest: Sendable {
  /// What happens to the document.
  package var method: RulesMethod
  /// The database's id, such as `(default)`.
  package var database: String
  /// The document; for ``RulesMethod/list`` the collection, or for a collection group the parent document or the root.
  package var path: ResourcePath
  /// Who asks; `nil` without credentials.
  package var auth: RulesAuth?
  /// `request.time`.
  package var time: Timestamp
  /// The stored fields; `nil` when the document does not exist. Unused for queries.
  package var resource: EncodedFields?
  /// The fields after a write; `nil` for a delete. Unused for reads.
  package var newResource: EncodedFields?
  /// The query, for ``RulesMethod/list``.
  package var query: Query?
  /// The field paths that the transforms and the mask of a write name; `nil` for reads and whole writes.
  package var writeFields: [String]?
  /// The field paths that the transforms of a write name; `nil` where there are none.
  package var transforms: [String]?
  /// Whether a transaction is open.
  package var isInTransaction = false
  /// The most documents that this judgement may look up.
  package var lookupsMax = RulesRequest.lookupsMaxOfOne

  /// The documented number of lookups for one document or query.
  package static let lookupsMaxOfOne = 10
  /// The documented number of lookups for one file.
  package static let lookupsMaxOfFile = 2

  /// Describes a request without fields, query and transaction.
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

/// A request as bytes that lie elsewhere and stay valid during the decision: stored documents are judged in place.
package struct BorrowedRulesRequest {
  /// See ``RulesRequest``.
  package var method = RulesMethod.get
  /// The database's id, UTF-8.
  package var database = UnsafeRawBufferPointer(start: nil, count: 0)
  /// The bucket's name, UTF-8, where the request is for a file; then ``database`` is the one that lookups go to.
  package var bucket: UnsafeRawBufferPointer?
  /// The path below the documents root, or the object's name, UTF-8.
  package var path = UnsafeRawBufferPointer(start: nil, count: 0)
  /// The claims; `nil` without credentials.
  package var claims: UnsafeRawBufferPointer?
  /// The user's id, UTF-8.
  package var uid: UnsafeRawBufferPointer?
  /// `request.time`.
  package var time = Timestamp(uncheckedMicroseconds: 0)
  /// The stored fields, canonical; `nil` when the document does not exist.
  package var resource: UnsafeRawBufferPointer?
  /// The fields after a write, canonical.
  package var newResource: UnsafeRawBufferPointer?
  /// Whether a transaction is open.
  package var isInTransaction = false
  /// The most documents that this judgement may look up.
  package var lookupsMax = RulesRequest.lookupsMaxOfOne

  /// A `get` of nothing.
  package init() {}

  /// Calls `body` with a request without fields, query and transaction. Cost: no allocation.
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
