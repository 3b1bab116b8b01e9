import DatabaseService
import DocumentModel
import GatewayCore
import Transport
import WireFormat

// Feeds of changes for HTTP clients: `:listen` and `:changes`.
//
// - `GET …/documents/{document}:listen` follows a document. `GET …/documents/{collection}:listen` follows a
//   collection, with `orderBy` and `pageSize` as in a list.
// - `POST …/documents:listen` and `POST …/documents/{document}:listen` follow the target in the body: a
//   `ListenRequest`, `{"structuredQuery": …}` with the parent in the path, or `{"structuredPipeline": …}`.
//
// - `GET …/documents:changes` follows a whole database; see ``ChangesFeed``.
//
// The response consists of server-sent events if the client accepts them (or asks with `alt=sse`), otherwise of
// NDJSON.
extension RESTHandler {
  /// Handles a request with `:listen`.
  func listen(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    var target = try request.method == .get ? Self.listenTarget(call) : listenTarget(call, request)
    if let resumePoint = try Self.resumePoint(call, request) { target.resumePoint = resumePoint }
    if try call.parameters.boolean("once") == true { target.endsWhenCurrent = true }
    try ChangeFeedResponse.start(call.responder, Self.feedFormat(call, request), of: call.database) { wake in
      try ListenFeed(service, target, in: call.database, as: call.caller, wake: wake)
    }
  }

  /// Handles a request with `:changes`.
  func changes(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    try call.parameters.allowOnly("since", "resumeToken", "readTime", "auth")
    let readTime = try call.parameters.timestamp("readTime")
    let since =
      Self.resumeToken(request.header("last-event-id"))
      ?? Self.resumeToken(call.parameters.value("since") ?? call.parameters.value("resumeToken"))
    try ChangeFeedResponse.start(call.responder, Self.feedFormat(call, request), of: call.database) { wake in
      try ChangesFeed(service, call.database, as: call.caller, since: since, readTime: readTime, wake: wake)
    }
  }

  /// The format that a client asks for.
  static func feedFormat(_ call: RESTRequest, _ request: borrowing HTTPRequest) -> ChangeFeedFormat {
    switch call.parameters.value("alt") {
    case "sse": return .events
    case nil: break
    default: return .lines
    }
    guard let accepted = request.header("accept") else { return .lines }
    return String(decoding: accepted, as: UTF8.self).lowercased().contains("text/event-stream") ? .events : .lines
  }

  /// The position from which a client resumes. `Last-Event-ID`, which browsers send when they reconnect, overrides
  /// the URL.
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

  /// Decodes a token. A text that is not base64 is kept as an unknown token, with which the feed starts from the
  /// beginning.
  static func resumeToken(_ text: String?) -> [UInt8]? {
    guard let text, !text.isEmpty else { return nil }
    // A plus sign that was not percent-encoded in a URL arrives as a space.
    return Base64.decode(text.contains(" ") ? text.replacing(" ", with: "+") : text) ?? Array(text.utf8)
  }

  // MARK: - Targets

  /// The target of a GET request, in its path and parameters.
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

  /// The target of a POST request, in its body.
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
      case "structuredPipeline", "structured_pipeline":
        decoder.enter("structured_pipeline")
        let pipeline = try decoder.decode(value, StructuredPipelineMembers())
        decoder.leave()
        do throws(Status) {
          target = try ListenTarget(id: targetID, .documents([])).following(pipeline, in: database)
        } catch { return .failure(error) }
      case "resumeToken", "resume_token": resumePoint = .token(try decoder.bytes(value, "resume_token"))
      case "readTime", "read_time": resumePoint = .readTime(try decoder.alignedTimestamp(value, "read_time"))
      case "once": isOnce = try decoder.bool(value, "once")
      default:
        // Any other member must belong to a ListenRequest.
        return listenRequest(try decoder.listenRequest(root, in: database), in: database)
      }
    }
    guard var target else { return .failure(emptyBody) }
    target.resumePoint = resumePoint
    target.endsWhenCurrent = isOnce
    return .success(target)
  }

  /// The target that a ListenRequest adds.
  private static func listenRequest(
    _ request: DecodedListenRequest, in database: DatabaseID
  ) -> Result<ListenTarget, Status> {
    switch request {
    case .accepted(.add(let target)): .success(target)
    case .accepted(.remove): .failure(emptyBody)
    case .pipeline(let target, let pipeline):
      Result { () throws(Status) in try target.following(pipeline, in: database) }
    case .refused(_, let error): .failure(Status(error, database: nil))
    }
  }

  private static let emptyBody = Status(
    .invalidArgument, "The body must contain addTarget, as in a ListenRequest, structuredQuery or structuredPipeline.")

  private static let targetID: Int32 = 1
}
