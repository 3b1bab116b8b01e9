package import GatewayCore
package import DatabaseService
import DocumentModel
package import Transport
import WireFormat

/// Serves `google.firestore.v1.Firestore` over gRPC. Extensions of this type in other files handle the methods.
///
/// A method decodes the request, calls the service and encodes the response. The REST API calls the same service
/// functions. Reads respond immediately on the loop's thread; commits respond on the same loop after the writer is
/// done. Listen and Write are bidirectional streams that read their requests piece by piece.
package final class GRPCHandler: Sendable {
  let service: FirestoreService
  private let decoders = ObjectPool<ProtobufMessageDecoder>()

  let authenticator: Authenticator

  package init(_ service: FirestoreService, _ authenticator: Authenticator) {
    self.service = service
    self.authenticator = authenticator
  }

  /// Whether a request is a gRPC call.
  package static func isGRPC(_ request: borrowing HTTPRequest) -> Bool {
    guard let type = request.header("content-type")?.dropping("application/grpc") else { return false }
    return type.isEmpty || type[0] == UInt8(ascii: "+") || type[0] == UInt8(ascii: ";")
  }

  /// Handles a unary call.
  package func handle(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let call = GRPCCall(exchange, GRPCRequestHead(request))
    do {
      try call.head.check()
      call.caller = try authenticator.caller(of: request)
      let (message, isCompressed) = try GRPCFrame.single(request.body)
      if isCompressed {
        try call.decompress(message).withUnsafeBytes { try route(path, $0, call) }
      } else {
        try route(path, message, call)
      }
    } catch { call.fail(error) }
    call.watchDeadline()
  }

  private func route(
    _ path: UnsafeRawBufferPointer, _ message: UnsafeRawBufferPointer, _ call: GRPCCall
  ) throws {
    guard let name = path.dropping("/google.firestore.v1.Firestore/") else {
      guard path.elementsEqual("/grpc.health.v1.Health/Check".utf8) else { throw Self.unknown(path) }
      return try checkHealth(message, call)
    }
    switch String(decoding: name, as: UTF8.self) {
    case "GetDocument": try getDocument(message, call)
    case "ListDocuments": try listDocuments(message, call)
    case "CreateDocument": try createDocument(message, call)
    case "UpdateDocument": try updateDocument(message, call)
    case "DeleteDocument": try deleteDocument(message, call)
    case "BatchGetDocuments": try batchGetDocuments(message, call)
    case "BeginTransaction": try beginTransaction(message, call)
    case "Commit": try commit(message, call)
    case "Rollback": try rollback(message, call)
    case "RunQuery": try runQuery(message, call)
    case "RunAggregationQuery": try runAggregationQuery(message, call)
    case "PartitionQuery": try partitionQuery(message, call)
    case "ListCollectionIds": try listCollectionIds(message, call)
    case "BatchWrite": try batchWrite(message, call)
    case "ExecutePipeline":
      throw Status(.unimplemented, "This version of hearth does not run pipelines yet; use RunQuery.")
    default: throw Self.unknown(path)
    }
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
    let edition = service.edition(of: database)
    guard message.count <= edition.requestBytesMax else { throw Self.tooLarge(edition.requestBytesMax) }
    let decoder = decoders.take() ?? ProtobufMessageDecoder()
    defer { decoders.give(decoder) }
    decoder.reset(edition)
    return try body(decoder)
  }

  /// Returns the last string field with a number, or an empty string if the message has none.
  ///
  /// Requests contain their database in field 1, but clients need not send that field first.
  static func text(_ number: Int, of message: UnsafeRawBufferPointer) throws(WireError) -> UnsafeRawBufferPointer {
    var text = UnsafeRawBufferPointer(start: nil, count: 0)
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == number, field.wireType == .lengthDelimited { text = try ProtobufMessageDecoder.text(field) }
    }
    return text
  }

  /// The database in field 1 of a request.
  static func database(of message: UnsafeRawBufferPointer) throws -> DatabaseID {
    try ResourceName.database(try text(1, of: message))
  }

  /// The parent in field 1 of a request.
  static func parent(of message: UnsafeRawBufferPointer) throws -> ResourceName {
    try ResourceName.parent(try text(1, of: message))
  }

  /// Decodes a page token, which is base64 as in REST.
  static func pageToken(_ field: ProtobufReader.Field) throws -> [UInt8] {
    guard let bytes = Base64.decode(try ProtobufMessageDecoder.string(field)) else { throw ModelError.invalidPageToken }
    return bytes
  }

  /// Checks that a name belongs to the request's database.
  static func check(_ database: DatabaseID, is requested: DatabaseID) throws {
    guard database == requested else {
      throw ModelError.otherDatabase(requested: requested.name, accessed: database.name)
    }
  }

  static func tooLarge(_ bytesMax: Int) -> Status {
    Status(.resourceExhausted, "The request's message is larger than \(bytesMax) bytes.")
  }
}
