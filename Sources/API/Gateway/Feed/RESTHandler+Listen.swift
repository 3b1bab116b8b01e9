import DatabaseService
import DocumentModel
import Transport
import WireFormat

// Feeds for everyone who can read a line: `:listen` and `:changes`.
//
// - `GET …/documents/{document}:listen` follows a document, `GET …/documents/{collection}:listen` a collection, with
//   `orderBy` and `pageSize` as in a listing.
// - `POST …/documents:listen` and `POST …/documents/{document}:listen` follow what their body says: a `ListenRequest`, or
//   `{"structuredQuery": …}` with the parent of the path.
//
// - `GET …/documents:changes` follows a whole database; see ``ChangesFeed``.
//
// The answer is lines of JSON, or server-sent events where the client accepts or asks (`alt=sse`) for those.
extension RESTHandler {
  /// Answers a call of `:listen`.
  func listen(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    var target = try request.method == .get ? Self.listenTarget(call) : listenTarget(call, request)
    if let resumePoint = try Self.resumePoint(call, request) { target.resumePoint = resumePoint }
    if try call.parameters.boolean("once") == true { target.endsWhenCurrent = true }
    try ChangeFeedResponse.start(call.responder, Self.feedFormat(call, request), of: call.database) { wake in
      try ListenFeed(service, target, in: call.database, as: call.caller, wake: wake)
    }
  }

  /// Answers a call of `:changes`.
  func changes(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly("since", "resumeToken", "auth")
    let since = Self.resumeToken(request.header("last-event-id"))
      ?? Self.resumeToken(call.parameters.value("since") ?? call.parameters.value("resumeToken"))
    try ChangeFeedResponse.start(call.responder, Self.feedFormat(call, request), of: call.database) { wake in
      try ChangesFeed(service, call.database, as: call.caller, since: since, wake: wake)
    }
  }

  /// The form that a client asks for.
  static func feedFormat(_ call: RESTRequest, _ request: borrowing HTTPRequest) -> FeedFormat {
    switch call.parameters.value("alt") {
    case "sse": return .events
    case nil: break
    default: return .lines
    }
    guard let accepted = request.header("accept") else { return .lines }
    return String(decoding: accepted, as: UTF8.self).lowercased().contains("text/event-stream") ? .events : .lines
  }

  /// Where a client left off: what a browser says when it comes back counts before what its URL says.
  private static func resumePoint(
    _ call: RESTRequest, _ request: borrowing HTTPRequest
  ) throws -> ListenTarget.ResumePoint? {
    if let token = resumeToken(request.header("last-event-id")) ?? resumeToken(call.parameters.value("resumeToken")) {
      return .token(token)
    }
    return try call.parameters.timestamp("readTime").map { .readTime($0) }
  }

  private static func resumeToken(_ header: UnsafeRawBufferPointer?) -> [UInt8]? {
    resumeToken(header.map { String(decoding: $0, as: UTF8.self) })
  }

  /// The bytes of a token. A text that is no base64 is a token that nobody gave: the feed starts anew, as for any other.
  static func resumeToken(_ text: String?) -> [UInt8]? {
    guard let text, !text.isEmpty else { return nil }
    // A plus sign that was not encoded in a URL arrives as a blank.
    return Base64.decode(text.contains(" ") ? text.replacing(" ", with: "+") : text) ?? Array(text.utf8)
  }

  // MARK: - Targets

  /// What the path and the parameters of a GET say.
  private static func listenTarget(_ call: RESTRequest) throws -> ListenTarget {
    if call.target.segmentCount.isMultiple(of: 2) {
      try call.parameters.allowOnly("resumeToken", "readTime", "once", "auth")
      return ListenTarget(id: targetID, .documents([try call.target.documentKey().path]))
    }
    try call.parameters.allowOnly("resumeToken", "readTime", "once", "auth", "orderBy", "pageSize")
    let collection = try call.target.collection()
    var query = Query(parent: collection.parent, collectionID: collection.id)
    if let order = call.parameters.value("orderBy"), !order.isEmpty { query.orders = try OrderBy.parse(order) }
    if let limit = try call.parameters.int32("pageSize"), limit != 0 {
      guard limit > 0 else { throw Status(.invalidArgument, "Page size must be nonnegative.") }
      query.limit = limit
    }
    return ListenTarget(id: targetID, .query(query))
  }

  /// What the body of a POST says.
  private func listenTarget(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws -> ListenTarget {
    try call.parameters.allowOnly("resumeToken", "readTime", "once", "auth")
    let parent = try call.target.parent()
    guard request.body.contains(where: { $0 > 0x20 }) else { throw Self.emptyBody }
    let target = try decode(request, call) { (decoder, root) throws(WireError) -> Result<ListenTarget, Status>? in
      guard let root else { return nil }
      return try Self.target(root, below: parent, in: call.database, decoder)
    }
    guard var target = try target?.get() else { throw Self.emptyBody }
    if target.id == 0 { target.id = Self.targetID }
    return target
  }

  private static func target(
    _ root: JSONValue, below parent: ResourcePath, in database: DatabaseID, _ decoder: JSONMessageDecoder
  ) throws(WireError) -> Result<ListenTarget, Status> {
    var target: ListenTarget?
    var resumePoint: ListenTarget.ResumePoint?
    var isOnce = false
    var members = try decoder.members(of: root, "google.firestore.v1.ListenRequest")
    while let (name, value) = members.next() {
      switch name {
      case "structuredQuery", "structured_query":
        decoder.enter("structured_query")
        target = ListenTarget(id: targetID, .query(try decoder.query(value, below: parent)))
        decoder.leave()
      case "resumeToken", "resume_token": resumePoint = .token(try decoder.bytes(value, "resume_token"))
      case "readTime", "read_time": resumePoint = .readTime(try decoder.alignedTimestamp(value, "read_time"))
      case "once": isOnce = try decoder.bool(value, "once")
      default:
        // Anything else is a member of a ListenRequest, or of nothing.
        return listenRequest(try decoder.listenRequest(root, in: database))
      }
    }
    guard var target else { return .failure(emptyBody) }
    target.resumePoint = resumePoint
    target.endsWhenCurrent = isOnce
    return .success(target)
  }

  /// The target that a ListenRequest adds.
  private static func listenRequest(_ request: DecodedListenRequest) -> Result<ListenTarget, Status> {
    switch request {
    case .accepted(.add(let target)): .success(target)
    case .accepted(.remove): .failure(emptyBody)
    case .refused(_, .invalid(let error)): .failure(Status(error, database: nil))
    case .refused(_, .pipeline): .failure(Status(.unimplemented, "Pipelines cannot be listened to."))
    }
  }

  private static let emptyBody = Status(
    .invalidArgument, "The body must hold addTarget, as a ListenRequest does, or structuredQuery.")

  private static let targetID: Int32 = 1
}
