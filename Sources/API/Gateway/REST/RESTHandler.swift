import DatabaseService
import DocumentModel
import DocumentStore
import Transport
import WireFormat

/// `google.firestore.v1` over HTTP and JSON: one file per call, each an extension of this type.
///
/// A call decodes, asks the service, encodes. Reads answer at once on the loop's thread; what commits answers when
/// the writer is done, on the loop it came from.
final class RESTHandler: Sendable {
  let service: FirestoreService
  private let decoders = ObjectPool<JSONDecodingContext>()

  /// A parser and a decoder that go together.
  private struct JSONDecodingContext {
    let document = JSONDocument()
    let decoder = JSONMessageDecoder()
  }

  private let admin: AdminHandler
  private let authenticator: Authenticator

  init(_ service: FirestoreService, _ authenticator: Authenticator) {
    self.service = service
    self.authenticator = authenticator
    admin = AdminHandler(service)
  }

  /// Answers a request for a path that stood behind `/v1/`.
  func handle(
    _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ responder: Responder
  ) {
    var call: RESTRequest?
    do {
      guard let target = try RESTRoute(path, of: request.method) else {
        return try admin.handle(path, request, responder, as: try authenticator.caller(of: request))
      }
      let parameters = try QueryParameters(query)
      call = RESTRequest(target: target, parameters: parameters, responder: responder)
      let feedToken = call?.feedToken
      call?.caller = try authenticator.caller(of: request, token: feedToken)
      if let call {
        // The transport lets requests to the largest databases through.
        let bytesMax = service.edition(of: target.database).requestBytesMax
        guard request.body.count <= bytesMax else { return responder.sendTooLarge(bytesMax: bytesMax) }
        try route(call, request)
      }
    } catch {
      responder.sendError(
        Status(error, database: call?.target.database), inArray: call?.target.verb?.isStreaming ?? false)
    }
  }

  /// Same-shaped URLs are told apart by method, verb and parity (firestore-api.md, section 1.1).
  private func route(_ call: RESTRequest, _ request: borrowing HTTPRequest) throws {
    switch (request.method, call.target.verb) {
    case (.get, nil), (.head, nil):
      if call.target.segmentCount == 0 { return call.responder.sendText(404, "Not Found\n") }
      if call.target.segmentCount.isMultiple(of: 2) {
        try getDocument(call, request)
      } else {
        try listDocuments(call, request)
      }
    case (.post, nil):
      if call.target.segmentCount == 0 { return call.responder.sendText(404, "Not Found\n") }
      try createDocument(call, request)
    case (.patch, nil): try updateDocument(call, request)
    case (.delete, nil): try deleteDocument(call)
    case (.post, .commit?): try commit(call, request)
    case (.post, .batchWrite?): try batchWrite(call, request)
    case (.post, .batchGet?): try batchGetDocuments(call, request)
    case (.post, .beginTransaction?): try beginTransaction(call, request)
    case (.post, .rollback?): try rollback(call, request)
    case (.post, .listCollectionIds?): try listCollectionIds(call, request)
    case (.post, .runQuery?): try runQuery(call, request)
    case (.post, .runAggregationQuery?): try runAggregationQuery(call, request)
    case (.post, .partitionQuery?): try partitionQuery(call, request)
    case (.post, .executePipeline?):
      throw Status(.unimplemented, "This version of hearth does not answer this call yet.")
    case (.get, .listen?), (.post, .listen?): try listen(call, request)
    case (.get, .changes?): try changes(call, request)
    case (.post, .write?):
      throw Status(.unimplemented, "Write is a stream: it comes by gRPC or by the web SDK's channel.")
    default: call.responder.sendText(404, "Not Found\n")
    }
  }

  /// Parses a body and decodes it; an empty body is an empty message.
  func decode<R>(
    _ request: borrowing HTTPRequest, _ call: RESTRequest, _ body: (JSONMessageDecoder, JSONValue?) throws(WireError) -> R
  ) throws(WireError) -> R {
    let tools = decoders.take() ?? JSONDecodingContext()
    defer { decoders.give(tools) }
    tools.decoder.reset(service.edition(of: call.database))
    let text = request.body
    guard text.contains(where: { $0 > 0x20 }) else { return try body(tools.decoder, nil) }
    return try tools.document.withParsed(text, isPadded: true) { (root) throws(WireError) in
      try body(tools.decoder, root)
    }
  }

  /// Refuses a call whose database in the URL is not the one its names give.
  static func check(_ database: DatabaseID, is requested: DatabaseID) throws(WireError) {
    guard database == requested else {
      throw .model(.otherDatabase(requested: requested.name, accessed: database.name))
    }
  }
}

/// One call: where it goes, what its query says, how it is answered.
struct RESTRequest: Sendable {
  let target: RESTRoute
  let parameters: QueryParameters
  let responder: Responder
  var caller = Caller.user(nil)

  var database: DatabaseID { target.database }
  /// The token in the query of a feed's URL: a browser's `EventSource` sends no headers of its own.
  var feedToken: String? {
    guard target.verb == .listen || target.verb == .changes else { return nil }
    return parameters.value("accessToken") ?? parameters.value("auth")
  }
  var style: JSONWriter.Style { parameters.wantsPrettyPrint ? .pretty : .compact }

  /// Answers with what `write` puts into an object, or with the error it throws.
  func send(_ write: (inout JSONWriter) throws -> Void) {
    do {
      var json = JSONWriter(style)
      json.beginObject()
      try write(&json)
      json.endObject()
      responder.sendJSON(json.finish())
    } catch {
      responder.sendError(Status(error, database: database))
    }
  }

  /// Answers with messages, all at once where they are few.
  /// - Throws: what fails before anything is sent.
  func send(_ answer: some ResponseProducer, mask: FieldMask?) throws {
    let stream = ResponseStream(
      answer, JSONResponseEncoder(style, database: database, mask: mask), database: database)
    if let body = try stream.whole() {
      responder.sendJSON(body)
    } else {
      stream.onFailure = { [weak exchange = responder.exchange] in exchange?.tell($0) }
      responder.streamJSON(from: stream)
    }
  }

  /// Answers with an empty message.
  func sendEmpty() { send { _ in } }
}

extension RESTVerb {
  /// Whether the answer is a stream, so that errors stand in an array too.
  var isStreaming: Bool {
    switch self {
    case .batchGet, .runQuery, .runAggregationQuery, .executePipeline: true
    default: false
    }
  }
}
