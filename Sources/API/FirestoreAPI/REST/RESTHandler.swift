package import GatewayCore
package import DatabaseService
import DocumentModel
package import Transport
import WireFormat

/// Serves `google.firestore.v1` over HTTP and JSON. Extensions of this type in other files handle the methods.
///
/// A method decodes the request, calls the service and encodes the response. Reads respond immediately on the
/// loop's thread; commits respond on the same loop after the writer is done.
package final class RESTHandler: Sendable {
  let service: FirestoreService
  private let decoders = ObjectPool<JSONDecodingContext>()

  /// A parser and a decoder that are used together.
  private struct JSONDecodingContext {
    let document = JSONDocument()
    let decoder = JSONMessageDecoder()
  }

  private let admin: AdminHandler
  private let authenticator: Authenticator

  package init(_ service: FirestoreService, _ authenticator: Authenticator) {
    self.service = service
    self.authenticator = authenticator
    admin = AdminHandler(service)
  }

  /// Handles a request for a path after `/v1/`.
  package func handle(
    _ path: UnsafeRawBufferPointer, _ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest,
    _ responder: Responder
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
        // The transport accepts the request sizes of the largest edition, so check the limit of this database's
        // edition.
        let bytesMax = service.edition(of: target.database).requestBytesMax
        guard request.body.count <= bytesMax else { return responder.sendTooLarge(bytesMax: bytesMax) }
        try route(call, request)
      }
    } catch {
      responder.sendError(
        Status(error, database: call?.target.database), inArray: call?.target.verb?.isStreaming ?? false)
    }
  }

  /// Selects the handler. URLs of the same form differ in method, verb and parity (firestore-api.md, section 1.1).
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
      throw Status(.unimplemented, "This version of hearth does not run pipelines yet. Use runQuery.")
    case (.get, .listen?), (.post, .listen?): try listen(call, request)
    case (.get, .changes?): try changes(call, request)
    case (.post, .write?):
      throw Status(.unimplemented, "Write is available only as a gRPC stream or a WebChannel. Use commit.")
    default: call.responder.sendText(404, "Not Found\n")
    }
  }

  /// Parses a body and decodes it. An empty body means an empty message.
  func decode<R>(
    _ request: borrowing HTTPRequest, _ call: RESTRequest,
    _ body: (JSONMessageDecoder, JSONValue?) throws(WireError) -> R
  ) throws(WireError) -> R {
    let context = decoders.take() ?? JSONDecodingContext()
    defer { decoders.give(context) }
    context.decoder.reset(service.edition(of: call.database))
    let text = request.body
    guard text.contains(where: { $0 > 0x20 }) else { return try body(context.decoder, nil) }
    return try context.document.withParsed(text, isPadded: true) { (root) throws(WireError) in
      try body(context.decoder, root)
    }
  }

  /// Checks that a name belongs to the database in the URL.
  static func check(_ database: DatabaseID, is requested: DatabaseID) throws(WireError) {
    guard database == requested else {
      throw .model(.otherDatabase(requested: requested.name, accessed: database.name))
    }
  }
}

/// One request: its target, parameters and caller, and the functions that respond to it.
struct RESTRequest: Sendable {
  let target: RESTRoute
  let parameters: QueryParameters
  let responder: Responder
  var caller = Caller.user(nil)

  var database: DatabaseID { target.database }
  /// The token in the query of a feed's URL. A browser's `EventSource` cannot send header fields.
  var feedToken: String? {
    guard target.verb == .listen || target.verb == .changes else { return nil }
    return parameters.value("accessToken") ?? parameters.value("auth")
  }
  var style: JSONWriter.Style { parameters.wantsPrettyPrint ? .pretty : .compact }

  /// Responds with a JSON object whose members `write` appends, or with the error that it throws.
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

  /// Responds with a sequence of messages, in one piece if it is short.
  ///
  /// - Throws: an error that occurs before anything is sent.
  func send(_ producer: some ResponseProducer, mask: FieldMask?) throws {
    let stream = ResponseStream(
      producer, JSONResponseEncoder(style, database: database, mask: mask), database: database)
    if let body = try stream.whole() {
      responder.sendJSON(body)
    } else {
      stream.onFailure = { [weak exchange = responder.exchange] in exchange?.logFailure(of: $0) }
      responder.streamJSON(from: stream)
    }
  }

  /// Responds with an empty message.
  func sendEmpty() { send { _ in } }
}

extension RESTVerb {
  /// Whether the response is a stream, in which errors are array elements too.
  var isStreaming: Bool {
    switch self {
    case .batchGet, .runQuery, .runAggregationQuery, .executePipeline: true
    default: false
    }
  }
}
