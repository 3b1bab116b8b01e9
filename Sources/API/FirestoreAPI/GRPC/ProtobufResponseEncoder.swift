import DatabaseService
import DocumentModel
import Transport
import WireFormat

/// Encodes a streamed response as gRPC messages.
struct ProtobufResponseEncoder: ResponseEncoder {
  /// The field numbers that differ between the response messages of the streaming methods.
  struct Response {
    let transaction: Int
    let readTime: Int
    let explainMetrics: Int

    /// RunQueryResponse.
    static let query = Response(transaction: 2, readTime: 3, explainMetrics: 11)
    /// RunAggregationQueryResponse.
    static let aggregation = Response(transaction: 2, readTime: 3, explainMetrics: 10)
    /// BatchGetDocumentsResponse, which has no explain metrics.
    static let batchGet = Response(transaction: 3, readTime: 4, explainMetrics: 0)
  }

  private var bytes: [UInt8] = []
  private let response: Response
  private let root: [UInt8]
  private let mask: FieldMask?
  private let compression: GRPCCompression
  private var failure: Status?

  init(_ response: Response, database: DatabaseID, mask: FieldMask?, _ compression: GRPCCompression) {
    self.response = response
    root = database.documentsRootBytes
    self.mask = mask
    self.compression = compression
  }

  var byteCount: Int { bytes.count }

  mutating func begin() {}

  mutating func append(_ message: ResponseMessage) throws {
    let start = GRPCFrame.begin(in: &bytes)
    switch message.content {
    case .nothing: break
    case .document(let key, let document), .found(let key, let document):
      let documentStart = ProtobufWriter.beginMessage(1, to: &bytes)
      try EncodedDocument.with(key, document, root: root) { (encoded) throws(WireError) in
        try DocumentProtobuf.append(encoded, mask: mask, to: &bytes)
      }
      ProtobufWriter.endMessage(documentStart, in: &bytes)
    case .missing(let key):
      ProtobufWriter.bytes(2, root + [UInt8(ascii: "/")] + key.path.bytes, to: &bytes)
    case .aggregates(let values):
      ProtobufWriter.message(1, to: &bytes) { DocumentProtobuf.append(values, to: &$0) }
    }
    if let transaction = message.transaction {
      ProtobufWriter.bytes(response.transaction, transaction.bytes, to: &bytes)
    }
    if let readTime = message.readTime { ProtobufWriter.timestamp(response.readTime, readTime, to: &bytes) }
    if message.skippedResults > 0 { ProtobufWriter.int64(4, Int64(message.skippedResults), to: &bytes) }
    if let metrics = message.explainMetrics {
      ProtobufWriter.message(response.explainMetrics, to: &bytes) { DocumentProtobuf.append(metrics, to: &$0) }
    }
    compression.end(start, in: &bytes)
  }

  mutating func end() {}

  mutating func fail(_ status: Status) { failure = status }

  mutating func take(into out: inout [UInt8]) {
    out.append(contentsOf: bytes)
    bytes.removeAll(keepingCapacity: true)
  }

  func addTrailers(to trailers: inout HeaderWriter) {
    if let failure {
      GRPCStatus.add(failure, to: &trailers)
    } else {
      GRPCStatus.addOK(to: &trailers)
    }
  }
}

/// The compression of a response's messages.
struct GRPCCompression {
  /// The exchange whose loop compresses, or `nil` for no compression.
  let exchange: Exchange?

  /// Smaller messages, in bytes, are not compressed.
  private static let messageBytesMin = 1024

  /// Fills in the head of the message that starts at `start`, and compresses the message if that is enabled and
  /// pays off.
  func end(_ start: Int, in out: inout [UInt8]) {
    guard let exchange, out.count - start >= Self.messageBytesMin else { return GRPCFrame.end(start, in: &out) }
    GRPCFrame.end(start, in: &out) { exchange.compress($0) }
  }

  /// Appends a framed message whose content `write` appends. Appends nothing if `write` throws.
  func frame<E: Error>(in out: inout [UInt8], _ write: (inout [UInt8]) throws(E) -> Void) throws(E) {
    let start = GRPCFrame.begin(in: &out)
    do throws(E) {
      try write(&out)
    } catch {
      out.removeLast(out.count - start + GRPCFrame.headBytes)
      throw error
    }
    end(start, in: &out)
  }
}
