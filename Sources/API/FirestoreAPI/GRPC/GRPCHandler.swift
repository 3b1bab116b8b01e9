package import DatabaseService
import DocumentModel
package import GatewayCore
package import Transport
import WireFormat

/// Serves `google.firestore.v1.Firestore` over gRPC. Extensions of this type in other files handle the methods.
///
/// A method decodes the request, calls the service and encodes the response. The REST API calls the same service
/// functions. Reads respond immediately on the loop's thread; commits respond on the same loop after the writer is
/// done. Listen and Write are bidirectional streams that read their requests piece by piece.
package final class GRPCHandler: API {
  let service: FirestoreService
  private let decoders = ObjectPool<ProtobufMessageDecoder>()

  package let authenticator: Authenticator

  /// Creates a handler for the documents of a service.
  package init(_ service: FirestoreService, _ authenticator: Authenticator) {
    self.service = service
    self.authenticator = authenticator
  }

  /// Whether a request is a gRPC call.
  static func isGRPC(_ request: borrowing HTTPRequest) -> Bool {
    guard request.version == .http2, let type = request.header("content-type")?.dropping("application/grpc") else {
      return false
    }
    return type.isEmpty || type[0] == UInt8(ascii: "+") || type[0] == UInt8(ascii: ";")
  }

  /// The methods of `google.firestore.v1.Firestore` and `grpc.health.v1.Health`.
  package static var routes: [Route<GRPCHandler>] {
    [
      unary("GetDocument", .always, .any) { try $0.getDocument($1, $2) },
      unary("Commit", .withID) { try $0.commit($1, $2) },
      unary("RunQuery", .always, .any) { try $0.runQuery($1, $2) },
      unary("BatchGetDocuments", .always, .any) { try $0.batchGetDocuments($1, $2) },
      unary("BeginTransaction", .always) { try $0.beginTransaction($1, $2) },
      unary("Rollback", .always) { try $0.rollback($1, $2) },
      unary("RunAggregationQuery", .always, .any) { try $0.runAggregationQuery($1, $2) },
      unary("PartitionQuery", .always, .any) { try $0.partitionQuery($1, $2) },
      unary("ListDocuments", .always, .any) { try $0.listDocuments($1, $2) },
      unary("ListCollectionIds", .always, .any) { try $0.listCollectionIds($1, $2) },
      unary("CreateDocument", .withID) { try $0.createDocument($1, $2) },
      unary("UpdateDocument", .withID) { try $0.updateDocument($1, $2) },
      unary("DeleteDocument", .withID) { try $0.deleteDocument($1, $2) },
      unary("BatchWrite", .withID) { try $0.batchWrite($1, $2) },
      unary("ExecutePipeline") { try $0.executePipeline($1, $2) },
      stream("/google.firestore.v1.Firestore/Listen", .any) { GRPCStream($1, GRPCListen($0, $1, StreamDatabase($2))) },
      stream("/google.firestore.v1.Firestore/Write") { GRPCStream($1, GRPCWrite($0, $1, StreamDatabase($2))) },
      unary(path: "/grpc.health.v1.Health/Check", .always) { try $0.checkHealth($1, $2) },
      stream("/grpc.health.v1.Health/Watch") { _, call, _ in GRPCStream(call, GRPCHealthWatch(call)) },
      Route(
        .all, ["/google.firestore.v1.Firestore/{method...}", "/{path...}"], kind: .grpc, access: .everyone,
        when: { isGRPC($0) }
      ) { _, request, _ in
        throw unknown(request.target.pathAndQuery.path)
      },
    ]
  }

  private static func unary(
    _ method: String, _ repetition: RequestRepetition = .never, _ node: RouteNode = .owner,
    _ handle: @escaping @Sendable (GRPCHandler, UnsafeRawBufferPointer, GRPCCall) throws -> Void
  ) -> Route<GRPCHandler> {
    unary(path: "/google.firestore.v1.Firestore/\(method)", repetition, node, handle)
  }

  /// A method with one request message.
  private static func unary(
    path: String, _ repetition: RequestRepetition = .never, _ node: RouteNode = .owner,
    _ handle: @escaping @Sendable (GRPCHandler, UnsafeRawBufferPointer, GRPCCall) throws -> Void
  ) -> Route<GRPCHandler> {
    Route(.all, [path], kind: .grpc, access: .caller, repetition: repetition, node: node, when: { isGRPC($0) }) {
      handler, request, routed in
      let call = try GRPCCall(request, routed)
      do {
        let (message, isCompressed) = try GRPCFrame.single(request.body)
        if isCompressed {
          try call.decompress(message).withUnsafeBytes { try handle(handler, $0, call) }
        } else {
          try handle(handler, message, call)
        }
      } catch { call.fail(error) }
      call.watchDeadline()
    }
  }

  /// A method whose requests are read message by message.
  private static func stream(
    _ path: String, _ node: RouteNode = .owner,
    _ make: @escaping @Sendable (GRPCHandler, GRPCCall, borrowing HTTPRequest) -> GRPCStream
  ) -> Route<GRPCHandler> {
    .streamed(.all, [path], kind: .grpc, access: .caller, node: node, when: { isGRPC($0) }) {
      handler, request, routed in
      let call = try GRPCCall(request, routed)
      let stream = make(handler, call, request)
      call.stream(stream)
      call.watchDeadline()
      return stream
    }
  }

  /// Responds with an error in header fields.
  package func refuse(_ error: any Error, _ request: borrowing HTTPRequest, _ responder: Responder) {
    GRPCCall(responder.exchange, GRPCRequestHead(request), .unauthenticated).fail(error)
  }

  private static func unknown(_ path: UnsafeRawBufferPointer) -> Status {
    Status(.unimplemented, "Unknown method \(String(decoding: path.prefix(200), as: UTF8.self)).")
  }

  // MARK: Helpers

  /// Checks the length of a request and calls `body` with a decoder for its database.
  ///
  /// - Throws: `RESOURCE_EXHAUSTED` if the request is too long, and the errors of `body`.
  func decode<R>(
    _ message: UnsafeRawBufferPointer, for database: DatabaseID, _ call: GRPCCall,
    _ body: (ProtobufMessageDecoder) throws -> R
  ) throws -> R {
    call.database = database
    return try decode(message, for: database, body)
  }

  private func decode<R>(
    _ message: UnsafeRawBufferPointer, for database: DatabaseID, _ body: (ProtobufMessageDecoder) throws -> R
  ) throws -> R {
    let edition = service.edition(of: database)
    guard message.count <= edition.requestBytesMax else { throw Self.tooLarge(edition.requestBytesMax) }
    let decoder = decoders.take() ?? ProtobufMessageDecoder()
    defer { decoders.give(decoder) }
    decoder.reset(edition, in: database)
    return try body(decoder)
  }

  /// Decodes a request to a database. `request` contains what ``database(of:)`` and the functions like it returned.
  ///
  /// - Throws: `RESOURCE_EXHAUSTED` if the message is too long; ``WireError`` if it is malformed or invalid.
  func decode<M: DecodableMessage>(
    _ message: UnsafeRawBufferPointer, _ request: M, in database: DatabaseID, _ call: GRPCCall
  ) throws -> M.Decoded {
    try decode(message, for: database, call) { try $0.decode(message, request) }
  }

  /// Decodes a request to a database and passes it to `handle`, on the loop. Another thread decodes a large message; see
  /// ``LargeRequests``. Its errors are sent.
  ///
  /// - Throws: if the message is small, the errors of ``decode(_:_:in:_:)`` and those of `handle`.
  func decode<M: DecodableMessage & Sendable>(
    _ message: UnsafeRawBufferPointer, _ request: M, in database: DatabaseID, _ call: GRPCCall,
    _ handle: @escaping @Sendable (M.Decoded, GRPCCall) throws -> Void
  ) throws where M.Decoded: Sendable {
    guard LargeRequests.contains(message) else {
      return try handle(decode(message, request, in: database, call), call)
    }
    call.database = database
    let copy = Array(message)
    let bound = call.bound
    LargeRequests.run { [self] in
      let decoded = Result {
        try copy.withUnsafeBytes { bytes in try decode(bytes, for: database) { try $0.decode(bytes, request) } }
      }
      bound.onLoop { call in
        guard !call.hasResponded, !call.exchange.isClosed else { return }
        do { try handle(decoded.get(), call) } catch { call.fail(error) }
      }
    }
  }

  /// The database in field 1 of a request. It is read first, because its edition determines how to decode the rest.
  static func database(of message: UnsafeRawBufferPointer) throws -> DatabaseID {
    try ResourceName.database(try ProtobufMessageDecoder.text(1, of: message))
  }

  /// The parent in field 1 of a request.
  static func parent(of message: UnsafeRawBufferPointer) throws -> ResourceName {
    try ResourceName.parent(try ProtobufMessageDecoder.text(1, of: message))
  }

  /// The document that field 1 of a request names.
  static func document(of message: UnsafeRawBufferPointer) throws -> (DatabaseID, DocumentKey) {
    try ResourceName.document(try ProtobufMessageDecoder.text(1, of: message))
  }

  /// The name of the document in field 1 of a request.
  static func document(inFieldOf message: UnsafeRawBufferPointer) throws -> (DatabaseID, DocumentKey) {
    try document(of: try ProtobufMessageDecoder.message(1, of: message))
  }

  /// The collection with an ID, below a document or the root.
  static func collection(_ id: UnsafeRawBufferPointer, below parent: ResourcePath) throws -> ResourcePath {
    let text = String(decoding: id, as: UTF8.self)
    guard !id.contains(UInt8(ascii: "/")) else { throw ModelError.slashInCollectionID(text) }
    return try ResourcePath(checking: parent.appending(Array(id)).bytes)
  }

  static func tooLarge(_ bytesMax: Int) -> Status {
    Status(.resourceExhausted, "The request's message is larger than \(bytesMax) bytes.")
  }
}
