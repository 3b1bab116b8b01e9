package import GatewayCore
package import DatabaseService
import DocumentModel
import DocumentStore
import Transport
import WireFormat

/// Serves `google.firestore.v1` over HTTP and JSON. Extensions of this type in other files handle the methods.
///
/// A method decodes the request, calls the service and encodes the response. Reads respond immediately on the
/// loop's thread; commits respond on the same loop after the writer is done.
package final class RESTHandler: API {
  let service: FirestoreService
  private let decoders = ObjectPool<JSONDecodingContext>()

  /// A parser and a decoder that are used together.
  private struct JSONDecodingContext {
    let document = JSONDocument()
    let decoder = JSONMessageDecoder()
  }

  package let authenticator: Authenticator

  package init(_ service: FirestoreService, _ authenticator: Authenticator) {
    self.service = service
    self.authenticator = authenticator
  }

  /// Calls a function with the target and the parameters of a request. In a streaming method an error is in an array.
  func run(
    _ request: borrowing HTTPRequest, _ routed: RoutedCall, isStreaming: Bool = false,
    _ handle: (RESTRequest, borrowing HTTPRequest) throws -> Void
  ) {
    var database: DatabaseID?
    do {
      let call = RESTRequest(
        target: try DocumentsPath(request, routed), parameters: try QueryParameters(request.target.pathAndQuery.query),
        responder: routed.responder, caller: routed.caller)
      database = call.database
      // The transport accepts the request sizes of the largest edition, so check the limit of this database's
      // edition.
      let bytesMax = service.edition(of: call.database).requestBytesMax
      guard request.body.count <= bytesMax else { return routed.responder.sendTooLarge(bytesMax: bytesMax) }
      try handle(call, request)
    } catch {
      routed.responder.sendError(Status(error, database: database), inArray: isStreaming)
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
  let target: DocumentsPath
  let parameters: QueryParameters
  let responder: Responder
  let caller: Caller

  var database: DatabaseID { target.database }
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
