import DatabaseService
import DocumentModel
import Transport
import WireFormat

/// `google.firestore.v1.Firestore` over gRPC: each kind of call in a file, an extension of this type.
///
/// A call decodes, asks the service, encodes; the service functions are those of the REST dialect. Reads answer at once
/// on the loop's thread; what commits answers when the writer is done, on the loop it came from. Listen and Write stream
/// both ways, and take the body of their request piece by piece.
final class GRPCHandler: Sendable {
  let service: FirestoreService
  private let decoders = ObjectPool<ProtobufMessageDecoder>()

  let authenticator: Authenticator

  init(_ service: FirestoreService, _ authenticator: Authenticator) {
    self.service = service
    self.authenticator = authenticator
  }

  /// Whether a request is a gRPC call.
  static func takes(_ request: borrowing HTTPRequest) -> Bool {
    guard let type = request.header("content-type")?.dropping("application/grpc") else { return false }
    return type.isEmpty || type[0] == UInt8(ascii: "+") || type[0] == UInt8(ascii: ";")
  }

  /// Answers one call.
  func handle(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ exchange: Exchange) {
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

  // MARK: What the calls share

  /// Lends a decoder made for a database, after the check that a request to it may be that long.
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

  /// The last string field of that number; empty where there is none.
  ///
  /// Requests name their database in their first field, but nothing obliges a client to send that first.
  static func text(_ number: Int, of message: UnsafeRawBufferPointer) throws(WireError) -> UnsafeRawBufferPointer {
    var text = UnsafeRawBufferPointer(start: nil, count: 0)
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == number, field.wireType == .lengthDelimited { text = try ProtobufMessageDecoder.text(field) }
    }
    return text
  }

  /// The database that a request names in its first field.
  static func database(of message: UnsafeRawBufferPointer) throws -> DatabaseID {
    try ResourceName.database(try text(1, of: message))
  }

  /// The parent that a request names in its first field.
  static func parent(of message: UnsafeRawBufferPointer) throws -> ResourceName {
    try ResourceName.parent(try text(1, of: message))
  }

  /// A page token: base64, as over REST.
  static func pageToken(_ field: ProtobufReader.Field) throws -> [UInt8] {
    guard let bytes = Base64.decode(try ProtobufMessageDecoder.string(field)) else { throw ModelError.invalidPageToken }
    return bytes
  }

  /// Refuses a name of another database than the request's.
  static func check(_ database: DatabaseID, is requested: DatabaseID) throws {
    guard database == requested else {
      throw ModelError.otherDatabase(requested: requested.name, accessed: database.name)
    }
  }

  static func tooLarge(_ bytesMax: Int) -> Status {
    Status(.resourceExhausted, "The request's message is larger than \(bytesMax) bytes.")
  }
}
