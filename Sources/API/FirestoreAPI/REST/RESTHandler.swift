package import DatabaseService
import DocumentModel
package import GatewayCore
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
  private final class JSONDecodingContext {
    let document = JSONDocument()
    let decoder = JSONMessageDecoder()
    var queries = PreparedQueries()
  }

  package let authenticator: Authenticator
  private let usual: UsualDatabase?

  /// Creates a handler for the documents of a service. Most requests name the default database of `project`.
  package init(_ service: FirestoreService, _ authenticator: Authenticator, project: String) {
    self.service = service
    self.authenticator = authenticator
    usual = UsualDatabase(of: project)
  }

  /// Returns the parts of a request that all methods need.
  ///
  /// - Throws: an error for ``refuse(_:_:_:)`` if the URL is malformed or the body is too large.
  func call(_ request: borrowing HTTPRequest, _ routed: RoutedCall) throws -> RESTRequest {
    let target = try DocumentsPath(request, routed, usual: usual)
    // The transport accepts the request sizes of the largest edition, so check the limit of this database's edition.
    if !request.body.isEmpty {
      let bytesMax = service.edition(of: target.database).requestBytesMax
      guard request.body.count <= bytesMax else { throw BodyTooLarge(bytesMax: bytesMax) }
    }
    return RESTRequest(
      target: target, parameters: try QueryParameters(request.target.pathAndQuery.query),
      responder: routed.responder, caller: routed.caller, requestID: request.requestID)
  }

  /// Parses a body and decodes it. An empty body means an empty message.
  func decode<R>(
    _ request: borrowing HTTPRequest, _ call: RESTRequest,
    _ body: (JSONMessageDecoder, JSONValue?) throws(WireError) -> R
  ) throws(WireError) -> R {
    try decode(request.body, call, body)
  }

  /// Parses a text and decodes it. At least ``JSONDocument/paddingBytes`` more bytes after it can be read.
  private func decode<R>(
    _ text: UnsafeRawBufferPointer, _ call: RESTRequest,
    _ body: (JSONMessageDecoder, JSONValue?) throws(WireError) -> R
  ) throws(WireError) -> R {
    let context = decoders.take() ?? JSONDecodingContext()
    defer { decoders.give(context) }
    context.decoder.reset(service.edition(of: call.database), in: call.database)
    guard text.contains(where: { $0 > 0x20 }) else { return try body(context.decoder, nil) }
    return try context.document.withParsed(text, isPadded: true) { (root) throws(WireError) in
      try body(context.decoder, root)
    }
  }

  /// Decodes a body that is a message. `message` contains what is known from the URL.
  func decode<M: DecodableMessage>(
    _ request: borrowing HTTPRequest, _ call: RESTRequest, _ message: M
  ) throws(WireError) -> M.Decoded {
    try decode(request.body, call, message)
  }

  private func decode<M: DecodableMessage>(
    _ text: UnsafeRawBufferPointer, _ call: RESTRequest, _ message: M
  ) throws(WireError) -> M.Decoded {
    try decode(text, call) { (decoder, root) throws(WireError) in
      guard let root else { return try message.decoded() }
      return try decoder.decode(root, message)
    }
  }

  /// Returns the query of a small body that came before, or `nil` if it must be decoded. A body that comes again and has a
  /// valid query is kept.
  func preparedQuery(
    _ request: borrowing HTTPRequest, _ call: RESTRequest, below parent: ResourcePath
  ) -> PreparedQuery? {
    let body = request.body
    guard !body.isEmpty, body.count <= PreparedQueries.bodyBytesMax else { return nil }
    let context = decoders.take() ?? JSONDecodingContext()
    defer { decoders.give(context) }
    let hash = PreparedQueries.hash(body, below: parent)
    let edition = service.edition(of: call.database)
    if let known = context.queries.query(hash, body, below: parent, in: call.database, edition) { return known }
    guard context.queries.note(hash), let run = try? decode(request, call, RunQueryRequest(below: parent)),
      let query = try? PreparedQuery(run, in: call.database, edition)
    else { return nil }
    context.queries.keep(query, hash, body, below: parent, edition)
    return query
  }

  /// Decodes a body that is a message and passes it to `handle`, on the loop. Another thread decodes a large body; see
  /// ``LargeRequests``. Its errors are sent, in an array if the method is a streaming one.
  ///
  /// - Throws: if the body is small, ``WireError`` if it is malformed, and the errors of `handle`.
  func decode<M: DecodableMessage & Sendable>(
    _ request: borrowing HTTPRequest, _ call: RESTRequest, _ message: M, isStreaming: Bool = false,
    _ handle: @escaping @Sendable (M.Decoded) throws -> Void
  ) throws where M.Decoded: Sendable {
    let body = request.body
    guard LargeRequests.contains(body) else { return try handle(decode(body, call, message)) }
    let padded = [UInt8](unsafeUninitializedCapacity: body.count + JSONDocument.paddingBytes) { buffer, count in
      let bytes = UnsafeMutableRawBufferPointer(buffer)
      bytes.copyMemory(from: body)
      bytes[body.count...].initializeMemory(as: UInt8.self, repeating: 0)
      count = bytes.count
    }
    LargeRequests.run { [self] in
      let decoded = Result {
        try padded.withUnsafeBytes {
          try decode(UnsafeRawBufferPointer(rebasing: $0.dropLast(JSONDocument.paddingBytes)), call, message)
        }
      }
      call.responder.onLoop {
        guard !call.responder.exchange.isClosed else { return }
        do { try handle(decoded.get()) } catch { call.fail(error, inArray: isStreaming) }
      }
    }
  }
}

/// The error for a body above the limit of the database's edition.
struct BodyTooLarge: Error {
  let bytesMax: Int
}

/// One request: its target, parameters, caller and ID, and the functions that respond to it.
struct RESTRequest: Sendable {
  let target: DocumentsPath
  let parameters: QueryParameters
  let responder: Responder
  let caller: Caller
  /// The ID of a request that may arrive again, or `nil`.
  let requestID: RequestID?

  var database: DatabaseID { target.database }
  var style: JSONWriter.Style { parameters.wantsPrettyPrint ? .pretty : .compact }

  /// Responds with a message.
  func send(_ message: some EncodableMessage) {
    do { try send(message, etag: nil) } catch { fail(error) }
  }

  /// Responds with a message, which is encoded in the output of the connection.
  ///
  /// - Throws: ``WireError`` if a stored document is damaged. Then nothing is sent.
  func send(_ message: some EncodableMessage, etag: String?) throws {
    try responder.sendJSON(etag: etag) { out in
      try message.appendJSON(style, to: &out)
      out.append(UInt8(ascii: "\n"))
    }
  }

  /// Responds with a message or an error.
  func send<E: Error>(_ result: Result<some EncodableMessage, E>) {
    do { send(try result.get()) } catch { fail(error) }
  }

  /// Responds with the fields of a document that a mask selects, or with an error.
  func send(_ result: Result<Document, Status>, mask: FieldMask?) {
    do {
      EncodedDocument.with(try result.get(), root: target.root) {
        send(MaskedDocument($0, mask: mask))
      }
    } catch { fail(error) }
  }

  /// Responds with an error, in an array if the method is a streaming one.
  func fail(_ error: any Error, inArray: Bool = false) {
    responder.sendError(Status(error, database: database), inArray: inArray)
  }

  /// Responds with a sequence of messages, in one piece if it is short, or with an error.
  func send(_ producer: some ResponseProducer) {
    responder.exchange.produce {
      let stream = ResponseStream(producer, JSONResponseEncoder(style), database: database, on: responder.exchange)
      do {
        if let body = try stream.whole() { return responder.sendJSON(body) }
      } catch {
        return responder.sendError(Status(error, database: database), inArray: true)
      }
      stream.onFailure = { [weak exchange = responder.exchange] in exchange?.logFailure(of: $0) }
      responder.streamJSON(from: stream)
    }
  }
}
